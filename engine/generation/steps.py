"""Texts of one decoder take their steps together: its matrices are read once for all of them.

There is no thread for this: of the threads that wait for a token one takes the step for all, and one that is
alone takes every step itself.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from threading import Condition, Lock, RLock, get_ident
from typing import TYPE_CHECKING
from weakref import finalize

from ..layers.tracing import Array
from ..models.decoders import (
    BLOCK_TOKENS,
    DecoderConfig,
    DecoderWeights,
    decoder_forward,
    is_compiled,
    unembed,
)
from ..models.kv_cache import KVCache
from .generated_token import GeneratedToken

if TYPE_CHECKING:
    from ..models.recorded_pass import RecordedPass

# Tokens to read into a cache, and a guess of those behind them, which may be read along.
Unread = tuple[list[int], list[int]]
# Tokens that the steps of others choose for a text whose own thread does not come for them.
MOST_WAITING = 64


@dataclass(eq=False)
class Row:
    """A text that is generated."""

    config: DecoderConfig
    cache: KVCache
    choices: Generator[Unread, Array, None]  # yields what must be read, and is sent the logits after it
    said: deque[GeneratedToken]  # tokens that ``choices`` chose
    unread: Unread | None = None  # None at the end of the text
    error: Exception | None = None

    def choose(self, logits: Array) -> None:
        """Choose tokens by logits, up to those that must be read next."""
        try:
            self.unread = self.choices.send(logits)
        except StopIteration:
            self.unread = None
        except Exception as error:  # of any kind: it ends only this text
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the text by an error, which its own thread raises."""
        self.unread, self.error = None, error


class Steps:
    """The steps of all texts that are generated with the same weights."""

    def __init__(self) -> None:
        self._rows: list[Row] = []  # those that waited longest for a step come first
        self._stepping: Sequence[Row] = ()  # those of the step under way
        self._leader = 0  # the thread that takes it
        self._changed = Condition(RLock())
        self._prompts, self._tape = Lock(), Lock()
        self._recorded: RecordedPass | None = None

    def tokens(self, row: Row, weights: DecoderWeights) -> Iterator[GeneratedToken]:
        """Yield the tokens of a text."""
        row.unread = next(row.choices)
        with self._changed:
            self._rows.append(row)
        try:
            while True:
                while row.said:
                    yield row.said.popleft()
                if row.error is not None:
                    raise row.error
                if row.unread is None:
                    return
                if can_step(row, weights):
                    self._step(row, weights)
                else:
                    row.choose(self._read_alone(row.unread[0], row, weights))
        finally:  # also where nobody wants the rest
            with self._changed:
                # Garbage may be collected by the thread that takes the step: it would wait for itself.
                self._changed.wait_for(lambda: row not in self._stepping or self._leader == get_ident())
                self._rows.remove(row)

    def next_logits(
        self, ids: Sequence[int], weights: DecoderWeights, config: DecoderConfig, cache: KVCache
    ) -> Array:
        """Read a few tokens of a text between steps: the logits after each, ``(n_tokens, vocab_size)``."""
        with self._tape:
            return self._read([(ids, cache)], weights, config)[0].copy()

    def _read_alone(self, ids: Sequence[int], row: Row, weights: DecoderWeights) -> Array:
        """Read a prompt; prompts take turns, so that the first is not as late as the last."""
        for start in range(0, len(ids), BLOCK_TOKENS):
            with self._prompts:
                hidden = decoder_forward(ids[start : start + BLOCK_TOKENS], weights, row.config, row.cache)
        return unembed(hidden[-1:], weights, row.config)

    def _step(self, row: Row, weights: DecoderWeights) -> None:
        """Take a step, or wait until another thread has taken one for this row."""
        with self._changed:
            self._changed.wait_for(lambda: row.said or not self._stepping)
            if row.said or not can_step(row, weights):
                return
            rows, self._leader = self._next_rows(weights), get_ident()
            self._stepping = rows
        try:
            self._advance(rows, weights)
        finally:
            with self._changed:
                self._stepping = ()
                self._changed.notify_all()

    def _next_rows(self, weights: DecoderWeights) -> list[Row]:
        """Return the rows of the next step, and put them behind the others."""
        from ..models.recorded_pass import FEW_TOKENS  # needs numba

        ready = [row for row in self._rows if can_step(row, weights) and len(row.said) < MOST_WAITING]
        rows = [row for row in ready if row.config == ready[0].config][:FEW_TOKENS]
        self._rows = [*(row for row in self._rows if row not in rows), *rows]
        return rows

    def _advance(self, rows: Sequence[Row], weights: DecoderWeights) -> None:
        """Read the newest token of each row, and choose the next."""
        from ..models.recorded_pass import FEW_TOKENS  # needs numba

        n_guessed = FEW_TOKENS // len(rows) - 1
        texts = []
        for row in rows:
            assert row.unread is not None, "or it would not be ready"
            [newest], guess = row.unread
            texts.append(([newest, *guess[:n_guessed]], row.cache))
        with self._tape:
            try:
                found = self._read(texts, weights, rows[0].config)
            except Exception as error:  # of any kind: the texts end, and no thread waits for ever
                for row in rows:
                    row.fail(error)
                return
            for row, logits in zip(rows, found, strict=True):
                row.choose(logits)

    def _read(
        self, texts: Sequence[tuple[Sequence[int], KVCache]], weights: DecoderWeights, config: DecoderConfig
    ) -> list[Array]:
        """Replay the recorded pass, or record it anew for larger caches."""
        from ..models.recorded_pass import read_together, record_pass  # needs numba

        n_needed, recorded = max(cache.length + len(ids) for ids, cache in texts), self._recorded
        if recorded is None or recorded.capacity < n_needed or recorded.config != config:
            recorded = record_pass(weights, config, 2 * n_needed)
        self._recorded = recorded
        return read_together(texts, weights, recorded)


def can_step(row: Row, weights: DecoderWeights) -> bool:
    """Whether a row's next token can be read with others: not its prompt, and not NumPy's texts."""
    return row.unread is not None and len(row.unread[0]) == 1 and is_compiled(weights, row.cache)


_steps: dict[int, Steps] = {}
_lock = Lock()


def steps_of(weights: DecoderWeights) -> Steps:
    """Return the steps with these weights, in every session that has them."""
    with _lock:
        if id(weights) not in _steps:
            _steps[id(weights)] = Steps()
            finalize(weights, _steps.pop, id(weights))
        return _steps[id(weights)]
