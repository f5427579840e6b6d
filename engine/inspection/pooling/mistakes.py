"""Common mistakes with mean pooling, each as the vectors that it gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...documents.document import Chunk
from ...evaluation.metrics import reciprocal_rank
from ...evaluation.questions import Question, relevance
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...models.encoder import BATCH_TOKENS, Encoder
from ...models.parallel import run_packs
from ...tokenizers.encoding import Encoding
from ...weights.fetch import Progress
from ..model.faults import PAD_TOKENS, Faults, broken, padded_ids

# Stop words of English, which many search pipelines remove. As in most lists, "no" and "not" are among them,
# though they reverse a sentence's meaning.
WORDS = """
a about after again all also am an and any are as at be because been before being between both but by
can could did do does doing down during each few for from had has have having he her here hers him his
how i if in into is it its itself just may me might more most must my no nor not of off on once only or
other our ours out over own same she should so some such than that the their theirs them then there
these they this those through to too under until up very was we were what when where which while who
whom why will with would you your yours
"""
STOP_WORDS = frozenset(WORDS.split())
STOP_WORD = re.compile(rf"\b(?:{'|'.join(sorted(STOP_WORDS))})\b(?!['’]\w)", re.IGNORECASE)


@dataclass(frozen=True)
class Mistake:
    """A mistake: its name, what is wrong, and whether it needs a forward pass of BERT with faults."""

    label: str
    help: str
    is_of_bert: bool = False


MISTAKES = {
    "padding_averaged": Mistake(
        "padding averaged in",
        f"A batch is padded to {PAD_TOKENS} tokens and the mean forgets the mask. Attention masks the "
        "padding as it should.",
        is_of_bert=True,
    ),
    "padding_attended": Mistake(
        "padding read and averaged in",
        "The attention mask is forgotten altogether: [PAD] is a token like any other.",
        is_of_bert=True,
    ),
    "no_special_tokens": Mistake(
        "special tokens left out",
        "The mean leaves out the special tokens around the text, such as [CLS] and [SEP]. The default model "
        "was trained with them in it.",
    ),
    "no_stop_words": Mistake(
        "stop words left out of the mean",
        f"The layers read the whole text, and the mean leaves out {len(STOP_WORDS)} function words such as "
        "“the”, “of”, “not”.",
    ),
    "stop_words_deleted": Mistake(
        "stop words deleted from the text", "The same words are deleted before the model reads the text."
    ),
    "not_normalized": Mistake(
        "lengths kept, inner product",
        "Vectors are not brought to length 1, so the inner product favours long vectors. Their direction is "
        "right.",
    ),
}
PADDED = Faults(pad_mean=True)


def mistaken_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    mistake: str | None,
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
) -> Array:
    """Embed texts by mean pooling with one of `MISTAKES`, or none: ``(n_texts, d_model)``."""
    limit = encoder.token_limit(max_tokens)
    match mistake:
        case "padding_averaged":
            padded = broken(encoder, PADDED)
            return padded.encode(texts, "mean", max_tokens=limit, on_progress=on_progress)
        case "padding_attended":
            sequences = [encoder.truncate(ids, limit) for ids in encoder.tokenizer.ids_batch(texts)]
            attended = [padded_ids(ids, encoder, PADDED) for ids in sequences]
            return encoder.encode_ids(attended, "mean", on_progress=on_progress)
        case "no_special_tokens" | "no_stop_words":
            mask_of = special_mask if mistake == "no_special_tokens" else stop_word_mask
            read = [encoder.cut(whole, limit) for whole in encoder.tokenizer.encode_batch(texts)]
            masks = [mask_of(each, text) for each, text in zip(read, texts, strict=True)]
            return masked_vectors(encoder, [each.ids for each in read], masks, on_progress)
        case "stop_words_deleted":
            texts = [without_stop_words(text) for text in texts]
    return encoder.encode(
        texts,
        "mean",
        normalize_embeddings=mistake != "not_normalized",
        max_tokens=limit,
        on_progress=on_progress,
    )


def special_mask(encoding: Encoding, text: str) -> Array:
    """1 for tokens of the text, 0 for special ones: ``(n_tokens,)``."""
    return mask_without([start == end for start, end in encoding.offsets])


def stop_word_mask(encoding: Encoding, text: str) -> Array:
    """0 for the tokens of stop words, 1 for all others: ``(n_tokens,)``."""
    spans = iter([*stop_word_spans(text), (len(text), len(text))])
    dropped, (start, end) = [], next(spans)
    for token_start, token_end in encoding.offsets:
        while end <= token_start < len(text):
            start, end = next(spans)
        dropped.append(start <= token_start < token_end <= end)
    return mask_without(dropped)


def stop_word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character spans of the stop words of a text."""
    return [match.span() for match in STOP_WORD.finditer(text)]


def without_stop_words(text: str) -> str:
    """Return a text without its stop words, one space between the others."""
    return " ".join(STOP_WORD.sub(" ", text).split())


def mask_without(dropped: Sequence[bool]) -> Array:
    """Return a mask of the tokens that are not dropped; all ones where every token would be."""
    kept = ~np.array(dropped)
    return (kept if kept.any() else np.ones(len(dropped))).astype(float)


def masked_vectors(
    encoder: Encoder,
    sequences: Sequence[Sequence[int]],
    masks: Sequence[Array],
    on_progress: Progress | None = None,
) -> Array:
    """Embed tokenized texts by the mean over the tokens that masks ``(n_tokens,)`` keep; length 1."""
    vectors = np.empty((len(sequences), encoder.config.d_model), encoder.dtype)

    def embed(batch: slice) -> None:
        states = encoder.token_states(sequences[batch])
        each_masked = zip(states, masks[batch], strict=True)
        vectors[batch] = [encoder.pool(each, "mean", mask) for each, mask in each_masked]

    run_packs(embed, sequences, BATCH_TOKENS, on_progress)
    return l2_normalize(vectors)


def possible_mistakes(encoder: Encoder) -> tuple[str, ...]:
    """Return those of `MISTAKES` that an encoder can be used with: those of padding only if it is BERT."""
    is_bert = encoder.model_type == "bert"
    return tuple(name for name, mistake in MISTAKES.items() if is_bert or not mistake.is_of_bert)


@dataclass(frozen=True)
class MistakeReport:
    """The effect of a mistake on a search."""

    mistake: str | None  # one of `MISTAKES`, None for none
    mean_cosine: float  # mean cosine of the chunks' mistaken vectors with the correct ones
    reciprocal_ranks: Array  # 1 over the rank of the first relevant chunk, ``(n_questions,)``
    best_chunks: Array  # the chunk that each question finds first, ``(n_questions,)``

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank."""
        return float(self.reciprocal_ranks.mean())


def mistake_report(
    encoder: Encoder,
    chunks: Sequence[Chunk],
    right: Array,
    questions: Sequence[Question],
    mistake: str | None,
    max_tokens: int | None = None,
    on_progress: Progress | None = None,
) -> MistakeReport:
    """Search chunks, whose correct vectors are ``right``, for the answers to questions, with a mistake."""
    texts = [chunk.indexed for chunk in chunks] + [question.text for question in questions]
    vectors = mistaken_vectors(encoder, texts, mistake, max_tokens, on_progress)
    found, asked = np.split(vectors, [len(chunks)])
    scores = asked @ found.T  # (n_questions, n_chunks)
    turned = float((l2_normalize(found) * right).sum(axis=1).mean())
    ranks = reciprocal_rank(scores, relevance(questions, chunks))
    return MistakeReport(mistake, turned, ranks, scores.argmax(axis=1))
