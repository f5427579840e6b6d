"""The text of a model, as it comes: its words, a thought before them, and how it ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from .answer import AnswerEnd
from .generated_token import GeneratedToken
from .server import TextDelta
from .thinking import ThoughtSplitter


def ignore(_: str) -> None:
    """Do nothing with a text."""


@dataclass(frozen=True)
class StreamedText:
    """A text and the thought before it, without the white space around them."""

    text: str
    ids: tuple[int, ...]  # the text's tokens, empty for a server
    log_probabilities: tuple[float, ...]  # theirs in nats
    finish_reason: AnswerEnd
    first_at: float | None  # when the first came, by `perf_counter`, or None
    n_guessed: int  # tokens of text and thought that were guessed
    thought: str
    thought_ids: tuple[int, ...]


def read_stream(
    deltas: Iterable[GeneratedToken | TextDelta],
    on_text: Callable[[str], None] = ignore,
    on_thought: Callable[[str], None] = ignore,
    stop: Callable[[], bool] = lambda: False,
    opened: bool = False,
    most_tokens: int | None = None,
) -> StreamedText:
    """Read tokens or deltas until they end, ``stop()`` is true, or the text has ``most_tokens``.

    A thought before the text is kept apart; ``opened`` is whether the prompt ends within one. The token
    that ends a thought belongs to it, unless it also begins the text.
    """
    splitter, thought, text = ThoughtSplitter(opened), "", ""
    first_at, n_thought = None, 0
    tokens: list[GeneratedToken] = []
    reason: AnswerEnd = "stopped"

    def add(more_thought: str, more_text: str) -> None:
        nonlocal thought, text
        thought, text = thought + more_thought, text + more_text
        if more_thought:
            on_thought(more_thought)
        if more_text:
            on_text(more_text)

    for delta in deltas:
        first_at = first_at or perf_counter()
        was_answer = splitter.part == "answer"
        more_thought, more_text = splitter.push(delta.text)
        add(more_thought, more_text)
        if isinstance(delta, GeneratedToken):
            tokens.append(delta)
            if splitter.part == "thought" or (splitter.thought_ended and not was_answer):
                n_thought = len(tokens) - bool(more_text.strip())
        reason = delta.finish_reason or "stopped"
        if stop():
            break
        if most_tokens is not None and len(tokens) - n_thought >= most_tokens and n_thought:
            reason = delta.finish_reason or "length"
            break
    add(*splitter.finish())
    answered = tokens[n_thought:]
    return StreamedText(
        text=text.strip(),
        ids=tuple(token.token_id for token in answered),
        log_probabilities=tuple(token.log_probability for token in answered),
        finish_reason=reason,
        first_at=first_at,
        n_guessed=sum(token.guessed for token in tokens),
        thought=thought.strip(),
        thought_ids=tuple(token.token_id for token in tokens[:n_thought]),
    )
