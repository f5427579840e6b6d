"""Language models as rerankers: they are asked whether a passage fits a question, and answer yes or no.

The score is the difference of two logits behind the prompt, so that one pass gives it (Qwen3-Reranker, Zhang
et al. 2025; mxbai-rerank-v2). Prompts and their parts, which are tokenized one by one, are those of the
models' own code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ModelFileError
from ..layers.tracing import Array, Tracer, no_trace
from ..tokenizers.encoding import Encoding, check_text
from ..tokenizers.text_tokenizer import TextTokenizer

QUESTION, PASSAGE = "{question}", "{passage}"
MAX_TOKENS = 8192  # as in the models' own code
SYSTEM, USER = "<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n"
ASSISTANT = "<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class PairTemplate:
    """The parts of a prompt, where one ends with the passage, and the two tokens that answer it."""

    parts: tuple[str, ...]
    yes: str
    no: str

    def read(self, tokenizer: TextTokenizer, question: str, passage: str, max_tokens: int | None) -> Encoding:
        """Return the tokens of a pair; beyond ``max_tokens`` the end of the passage is cut off.

        Offsets are those of question and passage, and type ids tell them apart; tokens of the prompt have
        empty offsets.
        """
        check_text(question, "the question")
        check_text(passage, "the passage")
        read = [placed_part(part, tokenizer, question, passage) for part in self.parts]
        n_over = 0 if max_tokens is None else sum(map(len, read)) - max_tokens
        rows = [
            row
            for part, own in zip(self.parts, read, strict=True)
            for row in (own[: max(len(own) - n_over, 1)] if part.endswith(PASSAGE) and n_over > 0 else own)
        ]
        ids, tokens, offsets, types = (list(column) for column in zip(*rows, strict=True))
        return Encoding(ids, tokens, offsets, types)


Row = tuple[int, str, tuple[int, int], int]  # id, token, offsets and type id


def placed_part(part: str, tokenizer: TextTokenizer, question: str, passage: str) -> list[Row]:
    """Fill a part of a prompt, and return its tokens, each with its characters in question or passage."""
    text, spans = part, []
    for mark, filled, side in ((QUESTION, question, 0), (PASSAGE, passage, 1)):
        before, found, rest = text.partition(mark)
        if found:
            spans.append((len(before), len(before) + len(filled), side))
            text = before + filled + rest
    encoding = tokenizer.encode(text)
    own = zip(encoding.ids, tokenizer.readable_tokens(encoding), encoding.offsets, strict=True)
    _, plain, _ = tokenizer.around(list(own))  # without special tokens around the part
    rows = []
    for number, token, (start, end) in plain:
        place, kind = (0, 0), 0
        for first, last, side in spans:
            if start < last and end > first:
                place, kind = (max(start, first) - first, min(end, last) - first), side
        rows.append((number, token, place, kind))
    return rows


# By the family of the model.
TEMPLATES: Mapping[str, PairTemplate] = {
    "qwen3": PairTemplate(
        (
            f"{SYSTEM}Judge whether the Document meets the requirements based on the Query and the Instruct "
            f'provided. Note that the answer can only be "yes" or "no".{USER}',
            "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
            f"<Query>: {QUESTION}\n<Document>: {PASSAGE}",
            f"{ASSISTANT}<think>\n\n</think>\n\n",
        ),
        "yes",
        "no",
    ),
    "qwen2": PairTemplate(
        (
            f"{SYSTEM}You are Qwen, created by Alibaba Cloud. You are a helpful assistant.{USER}",
            f"query: {QUESTION}",
            "\n",
            f"document: {PASSAGE}",
            "\n",
            "You are a search relevance expert who evaluates how well documents match search queries. For "
            "each query-document pair, carefully analyze the semantic relationship between them, then "
            "provide your binary relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:",
            ASSISTANT,
        ),
        "1",
        "0",
    ),
}


@dataclass(frozen=True)
class YesNoHead:
    """From a pair's last token vector to the logit of yes over no; ``weight`` is ``(d_model,)``."""

    weight: Array = field(repr=False)
    output: str = "Sigmoid"

    def logits(self, hidden: Sequence[Array], trace: Tracer = no_trace) -> Array:
        """Score pairs by their token vectors, ``(n_tokens, d_model)`` each: ``(n_pairs,)``."""
        last = trace("pooled", np.stack([own[-1] for own in hidden]))
        return trace("logit", last @ self.weight)

    @classmethod
    def of(cls, template: PairTemplate, tokenizer: TextTokenizer, table: Array) -> "YesNoHead":
        """Return the head of an unembedding ``(vocab_size, d_model)``."""
        rows = [tokenizer.id_of(token) for token in (template.yes, template.no)]
        if None in rows:
            raise ModelFileError(f"its tokenizer lacks the answers {template.yes!r} and {template.no!r}")
        yes, no = (table[row] for row in rows)
        return cls(yes - no)
