"""The prompt: earlier turns, numbered sources and the question, within a token budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ContextLengthError, check_question
from ..retrieval.index import Hit
from ..tokenizers.encoding import Encoding
from .chat import Message
from .conversation import Turn
from .decoder import Decoder
from .prompt_words import OPENING, REQUEST, SYSTEM, passage_frame

MIN_SOURCE_TOKENS = 16  # less of a passage than this is not worth its place
TURNS_SHARE = 0.25  # of the budget, for the earlier turns of a conversation


@dataclass(frozen=True)
class Source:
    """A passage in the prompt: ``document.text[start:end] == text``."""

    number: int
    document: str
    start: int
    end: int
    text: str
    score: float
    n_tokens: int
    cut: bool  # whether the passage's end was cut off to fit


@dataclass(frozen=True)
class Prompt:
    """The exact prompt, and the tokens of its parts."""

    messages: tuple[Message, ...]
    text: str  # ``messages`` in the model's chat template
    ids: tuple[int, ...]
    question_tokens: int
    sources: tuple[Source, ...]
    left_out: tuple[Hit, ...]  # that did not fit
    max_tokens: int  # budget of the prompt
    turns: tuple[Turn, ...] = ()  # the earlier ones in it
    turn_tokens: int = 0  # theirs, without the template's
    spans: tuple[tuple[int, int], ...] = ()  # places of the sources' texts in the last message

    @property
    def source_tokens(self) -> int:
        """Tokens of all sources together."""
        return sum(source.n_tokens for source in self.sources)


@dataclass(frozen=True)
class _Draft:
    """A prompt under construction: its tokens, and how many lie in each passage, question and turns."""

    messages: tuple[Message, ...]
    text: str
    encoding: Encoding
    spans: list[tuple[int, int]]
    passage_tokens: list[int]
    question_tokens: int
    turn_tokens: int


def assemble_prompt(
    question: str, hits: Sequence[Hit], decoder: Decoder, max_prompt_tokens: int, turns: Sequence[Turn] = ()
) -> Prompt:
    """Put the question and as many passages as fit, best first, into the model's chat template.

    Before them stand the last turns of the conversation with an answer that fit in `TURNS_SHARE` of the
    budget, ``max_prompt_tokens`` with the template. The first passage that does not fit whole is cut at the
    end of a token if at least `MIN_SOURCE_TOKENS` of it fit; those after it are left out.
    """
    check_question(question)
    question = question.strip()
    bare = draft(question, [], decoder)
    if len(bare.encoding) > max_prompt_tokens:
        raise ContextLengthError(
            f"the question alone makes a prompt of {len(bare.encoding)} tokens, {max_prompt_tokens} are "
            f"allowed: shorten it or allow more prompt tokens"
        )
    n_bare, kept = len(bare.encoding), tuple(turn for turn in turns if turn.answer)
    room = min(int(TURNS_SHARE * max_prompt_tokens), max_prompt_tokens - n_bare)
    while kept and len(draft(question, [], decoder, kept).encoding) - n_bare > room:
        kept = kept[1:]
    passages: list[str] = []
    for hit in hits:
        passage = fitting_part(question, passages, hit.chunk.text, decoder, max_prompt_tokens, kept)
        if passage:
            passages.append(passage)
        if passage != hit.chunk.text:
            break
    final = draft(question, passages, decoder, kept)
    sources = tuple(
        Source(
            number=number,
            document=hit.chunk.document,
            start=hit.chunk.start,
            end=hit.chunk.start + len(passage),
            text=passage,
            score=hit.score,
            n_tokens=n_tokens,
            cut=passage != hit.chunk.text,
        )
        for number, (hit, passage, n_tokens) in enumerate(
            zip(hits, passages, final.passage_tokens, strict=False), start=1
        )
    )
    return Prompt(
        messages=final.messages,
        text=final.text,
        ids=tuple(final.encoding.ids),
        question_tokens=final.question_tokens,
        sources=sources,
        left_out=tuple(hits[len(passages) :]),
        max_tokens=max_prompt_tokens,
        turns=kept,
        turn_tokens=final.turn_tokens,
        spans=tuple(final.spans),
    )


def fitting_part(
    question: str, before: list[str], passage: str, decoder: Decoder, budget: int, turns: Sequence[Turn]
) -> str:
    """Return the longest beginning of ``passage`` that fits after the passages before it, or ``""``."""

    def excess(text: str) -> int:
        return len(draft(question, [*before, text], decoder, turns).encoding) - budget

    too_many = excess(passage)
    if too_many <= 0:
        return passage
    encoding = decoder.tokenizer.encode(passage)
    n_kept = len(encoding)
    while too_many > 0:
        n_kept -= too_many
        if n_kept < MIN_SOURCE_TOKENS:
            return ""
        text = passage[: token_end(encoding, n_kept)].rstrip()
        too_many = excess(text)
    return text


def token_end(encoding: Encoding, n_tokens: int) -> int:
    """Return where the text of the first ``n_tokens`` tokens ends, before any incomplete character."""
    end = encoding.offsets[n_tokens - 1][1]
    if n_tokens < len(encoding):
        end = min(end, encoding.offsets[n_tokens][0])
    return end


def draft(question: str, passages: Sequence[str], decoder: Decoder, turns: Sequence[Turn] = ()) -> _Draft:
    """Render and tokenize the prompt, and count the tokens of its parts."""
    content, spans = f"{OPENING}\n\n" if passages else "", []
    for number, passage in enumerate(passages, start=1):
        before, after = passage_frame(number)
        content += before
        spans.append((len(content), len(content) + len(passage)))
        content += passage + after
    question_start = len(content)
    content += f"{question} {REQUEST}"
    messages: tuple[Message, ...] = (
        {"role": "system", "content": SYSTEM},
        *(
            {"role": role, "content": content}
            for turn in turns
            for role, content in (("user", turn.question), ("assistant", turn.answer))
        ),
        {"role": "user", "content": content},
    )
    chat, encoding = decoder.chat_encoding(messages)
    offset = chat.contents[-1][0]

    def count(start: int, end: int) -> int:
        return sum(start < token_end and token_start < end for token_start, token_end in encoding.offsets)

    return _Draft(
        messages,
        chat.text,
        encoding,
        spans,
        passage_tokens=[count(start + offset, end + offset) for start, end in spans],
        question_tokens=count(question_start + offset, question_start + len(question) + offset),
        turn_tokens=sum(count(*span) for span in chat.contents[-1 - 2 * len(turns) : -1]),
    )
