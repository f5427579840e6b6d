"""The decoder: a prompt in, tokens out, one step at a time."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ContextLengthError, InputError, MadeByMethod, ModelFileError
from ..layers.activation import softmax
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from ..models.decoders import (
    BLOCK_TOKENS,
    DecoderConfig,
    DecoderWeights,
    decoder_forward,
    is_compiled,
    is_packed,
    new_cache,
    trace_shapes,
    unembed,
)
from ..models.kv_cache import KVCache
from ..tokenizers.bpe import BPETokenizer
from ..tokenizers.encoding import Encoding
from ..trace import MAX_TRACE_BYTES, Trace, check_trace, matches
from ..weights.catalog import DEFAULT_DECODER
from ..weights.fetch import Progress, model_path
from .chat import Message, RenderedChat, render_chat
from .decoder_files import read_folder, read_gguf
from .generated_token import Candidate, FinishReason, GeneratedToken
from .prefix_cache import PrefixCache
from .prompt_lookup import PromptLookup
from .prompt_words import BY_EXAMPLES
from .sampling import GREEDY, Sampling, chances, entropy, log_probability, most_probable, sample
from .steps import Row, Unread, steps_of
from .stream import TextStream

# Hidden states are turned into logits this many at a time: (64, vocab_size) are in memory at once.
LOGIT_TOKENS = 64
# The cache has room for this many tokens of an answer from the start, and grows for more.
ROOM_TOKENS = 256


@dataclass(frozen=True)
class Decoder(MadeByMethod):
    """A decoder of one of the `FAMILIES`, with its tokenizer and chat template.

    ``start_ids`` are the tokens that the model expects before a text that is no chat. ``thinks`` is
    whether chats are rendered so that a model with a thinking mode thinks first: ``replace(decoder,
    thinks=True)``.
    """

    name: str
    config: DecoderConfig
    weights: DecoderWeights = field(repr=False)
    tokenizer: BPETokenizer
    chat_template: str | None = field(repr=False)
    bos_id: int | None
    start_ids: tuple[int, ...]
    end_ids: frozenset[int]
    thinks: bool = False

    @classmethod
    def load(
        cls, source: str | Path = DEFAULT_DECODER, on_progress: Progress | None = None, compiled: bool = True
    ) -> "Decoder":
        """Load a decoder.

        Parameters
        ----------
        source
            A name of ``engine.weights.catalog``, a .gguf file, a folder with config.json,
            model.safetensors and tokenizer.json, or a Hugging Face id.
        compiled
            Hold matrices in the few bits of their file and generate with compiled kernels, where numba
            is installed and has them for this processor and model; else all weights are float32.
        """
        path = model_path(source, on_progress)
        files = (read_folder if path.is_dir() else read_gguf)(path, compiled)
        return cls(str(source), **vars(files))

    @property
    def max_tokens(self) -> int:
        """Tokens of prompt and answer together that the model has positions for."""
        return self.config.max_positions

    def logits(self, ids: Sequence[int]) -> Array:
        """Return the next-token logits after every token: float32 ``(n_tokens, vocab_size)``."""
        return self.unembed(self.inspect(ids))

    def trace_shapes(self, n_tokens: int) -> Shapes:
        """Name and shape of every array in a trace of ``n_tokens``, besides tokens and ids."""
        return trace_shapes(self.config, n_tokens) | {"logits": (n_tokens, self.config.vocab_size)}

    def trace(
        self,
        prompt: str | Sequence[Message] | Sequence[int],
        keep: Sequence[str] = ("*",),
        max_bytes: int = MAX_TRACE_BYTES,
    ) -> Trace:
        """Run a prompt and keep its intermediates.

        The names are ``tokens``, ``ids``, ``embeddings.output``, ``layers.{i}.attention.*``,
        ``layers.{i}.ffn.*``, ``layers.{i}.output``, ``norm`` and ``logits``; ``keep`` has patterns of those
        to keep, such as ``layers.*.attention.weights``. The trace may have up to ``max_bytes``.
        """
        ids = self.prompt_ids(prompt)
        self.check_ids(ids)
        check_trace(self.trace_shapes(len(ids)), keep, self.weights.token_table.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array([self.token_text(number) for number in ids]))
        trace("ids", np.asarray(ids))
        hidden = self.inspect(ids, trace)
        if matches("logits", keep):
            trace("logits", self.unembed(hidden))
        return trace

    def inspect(self, ids: Sequence[int], trace: Tracer = no_trace) -> Array:
        """Run ``ids`` under a tracer; return the final hidden states ``(n_tokens, d_model)``."""
        n_tokens = self.check_ids(ids)
        # A trace shows keys and values in full precision.
        cache = self.new_cache(n_tokens) if trace is no_trace else KVCache(self.config, n_tokens)
        return decoder_forward(ids, self.weights, self.config, cache, trace)

    def new_cache(self, capacity: int, limit: int | None = None) -> KVCache:
        """Return an empty cache with room for ``capacity`` tokens, which grows up to ``limit``."""
        return new_cache(self.weights, self.config, capacity, limit)

    def borrow(self, kept: PrefixCache, ids: Sequence[int], at_most: int) -> AbstractContextManager[KVCache]:
        """Borrow what is known of the first ``at_most`` of ``ids``: see `PrefixCache.borrow`."""
        empty = self.new_cache(capacity=0, limit=self.max_tokens)
        return kept.borrow(ids, at_most, self.weights, self.config, empty)

    def unembed(self, hidden: Array) -> Array:
        """Hidden states to logits: ``(n_tokens, d_model) -> (n_tokens, vocab_size)``."""
        return unembed(hidden, self.weights, self.config)

    def chat_encoding(self, messages: Sequence[Message]) -> tuple[RenderedChat, Encoding]:
        """Render messages with the model's template; return the prompt and its tokens.

        A model without a template, which was not made to answer, gets the messages `BY_EXAMPLES`. Special
        tokens count as such only where the template put them: in a message's content they are plain text.
        """
        bos = "" if self.bos_id is None else self.special_text(self.bos_id)
        if self.chat_template is None and not self.start_ids:
            bos = ""
        end = self.special_text(min(self.end_ids, default=-1))
        chat = render_chat(self.chat_template or BY_EXAMPLES, messages, bos, end, self.thinks)
        if not chat.has_last and messages[-1]["content"].strip():
            raise ModelFileError(
                "the model's chat template leaves out the last message: give the prompt as one text"
            )
        return chat, self.tokenizer.encode(chat.text, literal=chat.contents)

    def special_text(self, number: int) -> str:
        """Text of a special token, empty for an id that is none."""
        return next((text for text, other in self.tokenizer.special.items() if other == number), "")

    def token_text(self, number: int) -> str:
        """Text of one token; special ones such as ``<|im_end|>`` show as they are written."""
        return self.special_text(number) or self.tokenizer.token_bytes(number).decode("utf-8", "replace")

    def prompt_ids(self, prompt: str | Sequence[Message] | Sequence[int]) -> list[int]:
        """Token ids of a text, of chat messages, or of ids that are given already."""
        if isinstance(prompt, str):
            return [*self.start_ids, *self.tokenizer.encode(prompt).ids]
        messages = [item for item in prompt if isinstance(item, Mapping)]
        if messages:
            return self.chat_encoding(messages)[1].ids
        return [int(item) for item in prompt if not isinstance(item, Mapping)]

    def generate(
        self,
        prompt: str | Sequence[Message] | Sequence[int],
        max_new_tokens: int = 256,
        sampling: Sampling = GREEDY,
        stop: str | Sequence[str] = (),
        stop_ids: Sequence[int] = (),
        kv_cache: bool = True,
        n_candidates: int = 0,
        reuse: PrefixCache | None = None,
        prompt_lookup: bool = True,
        **changes: Any,
    ) -> Iterator[GeneratedToken]:
        """Generate a continuation, token by token.

        Its options are keywords, not one object, because scripts call it directly, as they do ``generate`` of
        transformers.

        Parameters
        ----------
        prompt
            A text, chat messages (``{"role": …, "content": …}``), or token ids.
        max_new_tokens
            Most tokens to generate; prompt and answer together fit the model's context.
        sampling
            How each token is chosen.
        stop
            Texts before which the answer ends, at the first that is complete; they are not part of it.
        stop_ids
            Tokens that end the answer, besides the model's own.
        kv_cache
            Without it the whole text is read again for every token: slower, and the same tokens.
        n_candidates
            How many of the most probable tokens to yield with every token; the chosen one follows them if it
            is not among them.
        reuse
            The cache of the last prompt: the beginning that this one shares with it is not read again.
        prompt_lookup
            Where the text repeats itself, read the tokens that followed the last time along with the
            newest one (`PromptLookup`): faster, and the same tokens. Only compiled decoders with a cache do.
        **changes
            Fields of `Sampling` by name, such as ``temperature=0.8, seed=1``, in place of those of
            ``sampling``.

        Yields
        ------
        GeneratedToken
            The last one has a ``finish_reason``.
        """
        sampling = replace(sampling, **changes)
        ids = self.prompt_ids(prompt)
        n_prompt = self.check_ids(ids)
        if max_new_tokens < 1:
            raise InputError(f"max_new_tokens is {max_new_tokens}: give 1 or more")
        if not 0 <= n_candidates <= self.config.vocab_size:
            raise InputError(f"n_candidates is {n_candidates}: give 0 to {self.config.vocab_size}")
        self.check_length(n_prompt + 1)  # at least one new token
        n_new = min(max_new_tokens, self.max_tokens - n_prompt)
        texts = TextStream([stop] if isinstance(stop, str) else stop)
        end_ids = self.end_ids | set(stop_ids)
        kept = PrefixCache() if reuse is None else reuse
        lookup = PromptLookup() if prompt_lookup and kv_cache and is_packed(self.weights) else None
        said = deque[GeneratedToken]()

        def say(token: int, logits: Array, guessed: bool) -> bool:
            text = "" if token in end_ids else texts.push(self.tokenizer.token_bytes(token))
            reason: FinishReason | None = None
            if token in end_ids or texts.stopped:
                reason = "stop"
            elif len(ids) == n_prompt + n_new:
                reason = "length"
            if reason:
                text += texts.finish()
            log_p = float(log_probability(logits[None], np.array([token]))[0])
            others = self.candidates(logits, n_candidates, token, sampling, ids[:-1])
            spread = entropy(logits) if n_candidates else None
            said.append(GeneratedToken(token, text, log_p, reason, spread, others, guessed))
            return reason is not None

        def steps() -> Iterator[GeneratedToken]:
            n_reused = n_prompt - 1 if kv_cache else 0
            with self.borrow(kept, ids, n_reused) as cache:
                cache.reserve(n_prompt + min(n_new, ROOM_TOKENS))
                choices = self.choices(ids, n_new, sampling, cache, lookup, kv_cache, say)
                yield from steps_of(self.weights).tokens(Row(self.config, cache, choices, said), self.weights)

        return steps()

    def choices(
        self,
        ids: list[int],
        n_new: int,
        sampling: Sampling,
        cache: KVCache,
        lookup: PromptLookup | None,
        kv_cache: bool,
        say: Callable[[int, Array, bool], bool],
    ) -> Generator[Unread, Array, None]:
        """Choose up to ``n_new`` tokens that follow ``ids``, and append each to them.

        Parameters
        ----------
        say
            Called with a token, the logits that it was chosen by, ``(vocab_size,)``, and whether it had been
            guessed; returns whether the text ends there.

        Yields
        ------
        tuple
            Tokens to read into the cache, and where it is one, a guess of those behind it. The logits after
            the last of them, and after some of the guess, are sent back: ``(1 + n_guessed, vocab_size)``.
        """
        rng, n_all = np.random.default_rng(sampling.seed), len(ids) + n_new
        while True:
            if not kv_cache:
                cache.rollback(0)
            unread, guess = ids[cache.length :], list[int]()
            if lookup is not None and len(unread) == 1:
                guess = lookup.guess(ids, n_all - 1 - len(ids))
            rows = yield unread, guess
            read = guess[: len(rows) - 1]
            for place, logits in enumerate(rows):
                token = sample(logits, sampling, ids, rng)
                guessed = token in read[place : place + 1]
                if not guessed:
                    cache.rollback(len(ids))  # behind them only a wrong guess was read
                ids.append(token)
                if say(token, logits, guessed):
                    return
                if not guessed:
                    break

    def candidates(
        self, logits: Array, n: int, chosen: int, sampling: Sampling, seen: Sequence[int]
    ) -> tuple[Candidate, ...]:
        """Return the ``n`` most probable next tokens, and the chosen one; none for ``n`` of 0."""
        if n == 0:
            return ()
        numbers = most_probable(logits, n).tolist()
        probability, chance = softmax(logits), chances(logits, sampling, seen)
        return tuple(
            Candidate(number, self.token_text(number), float(probability[number]), float(chance[number]))
            for number in (numbers if chosen in numbers else [*numbers, chosen])
        )

    def log_probabilities(self, ids: Sequence[int], start: int, reuse: PrefixCache | None = None) -> Array:
        """Log-probability of each token from ``start``, 1 or more, on, given all before it.

        In nats, ``(n_tokens - start,)``. As in `generate`, the beginning of ``ids[:start]`` may be in
        ``reuse`` already.
        """
        n_tokens = self.check_ids(ids)
        if not 1 <= start <= n_tokens:
            raise InputError(f"start is {start}: give 1 to {n_tokens}, the number of tokens")
        found = [np.empty(0, np.float32)]
        with self.prefilled(ids, start - 1, reuse) as cache:
            for hidden in self.read(ids[start - 1 : -1], cache):  # (n_block, d_model), each before its token
                behind = np.asarray(ids[cache.length - len(hidden) + 1 : cache.length + 1])
                for first in range(0, len(hidden), LOGIT_TOKENS):
                    block = slice(first, first + LOGIT_TOKENS)
                    found.append(log_probability(self.unembed(hidden[block]), behind[block]))
        return np.concatenate(found)

    def next_logits(self, ids: Sequence[int], cache: KVCache) -> Array:
        """Read ``ids`` into the cache; return the logits after the last one: ``(1, vocab_size)``."""
        if len(ids) == 1 and is_compiled(self.weights, cache):
            return steps_of(self.weights).next_logits(ids, self.weights, self.config, cache)
        for hidden in self.read(ids, cache):
            last = hidden[-1:]
        return self.unembed(last)

    def read(self, ids: Sequence[int], cache: KVCache) -> Iterator[Array]:
        """Read ``ids`` into the cache block by block; yield the final hidden states of each block."""
        for start in range(0, len(ids), BLOCK_TOKENS):
            yield decoder_forward(ids[start : start + BLOCK_TOKENS], self.weights, self.config, cache)

    @contextmanager
    def prefilled(
        self, ids: Sequence[int], n_tokens: int, reuse: PrefixCache | None = None
    ) -> Iterator[KVCache]:
        """Yield a cache of the first ``n_tokens`` of ``ids``, with room for all, from ``reuse`` if given."""
        with self.borrow(PrefixCache() if reuse is None else reuse, ids, n_tokens) as cache:
            cache.reserve(len(ids))
            self.prefill(ids[:n_tokens], cache)
            yield cache

    def prefill(self, ids: Sequence[int], cache: KVCache) -> None:
        """Read the rest of ``ids`` into the cache, which has their beginning."""
        for _ in self.read(ids[cache.length :], cache):
            pass

    def check_ids(self, ids: Sequence[int]) -> int:
        """Return the number of ids, or raise for an empty or too long sequence or an id out of range."""
        outside = [number for number in ids if not 0 <= number < self.config.vocab_size]
        if outside:
            raise InputError(
                f"token id {outside[0]} is not one of the model's: 0 to {self.config.vocab_size - 1}"
            )
        if len(ids) == 0:
            raise InputError("the prompt is empty: give at least one token")
        return self.check_length(len(ids))

    def check_length(self, n_tokens: int) -> int:
        """Return ``n_tokens``, or raise where the model has fewer positions."""
        if n_tokens > self.max_tokens:
            raise ContextLengthError(
                f"{n_tokens} tokens exceed the {self.max_tokens} positions of the model by "
                f"{n_tokens - self.max_tokens}: shorten the prompt or give fewer passages"
            )
        return n_tokens
