"""The decoder: a prompt in, tokens out, one step at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from engine.errors import ContextLengthError, InputError
from engine.generation.chat import Message, RenderedChat, render_chat
from engine.generation.sampling import check_sampling, sample
from engine.generation.stream import TextStream
from engine.layers.activation import log_softmax
from engine.layers.tracing import Array, Shapes, Tracer, no_trace
from engine.models.decoders import (
    DecoderConfig,
    DecoderWeights,
    decoder_forward,
    read_folder_model,
    read_gguf_model,
    trace_shapes,
    unembed,
)
from engine.models.kv_cache import KVCache
from engine.tokenizers.bpe import BPETokenizer
from engine.tokenizers.encoding import Encoding, check_vocab_size
from engine.trace import MAX_TRACE_BYTES, Trace, check_trace, matches
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import Progress, model_path
from engine.weights.tensors import GGUF, read_json

# Prompt tokens go through the layers in blocks of this many, which bounds the attention scores
# held at once to (n_heads, 512, n_tokens).
BLOCK_TOKENS = 512

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Step:
    """One generated token.

    ``text`` is what may be shown now: it lags behind the tokens where a character or a stop string
    may go on. ``log_probability`` is that of the token under the model's own distribution.
    """

    token_id: int
    text: str
    log_probability: float
    finish_reason: FinishReason | None


@dataclass(frozen=True)
class Decoder:
    """A Llama-family decoder with its tokenizer and chat template."""

    name: str
    config: DecoderConfig
    weights: DecoderWeights = field(repr=False)
    tokenizer: BPETokenizer
    chat_template: str | None = field(repr=False)
    bos_id: int | None
    add_bos: bool
    end_ids: frozenset[int]

    @classmethod
    def load(cls, source: str | Path = DEFAULT_DECODER, on_progress: Progress | None = None) -> "Decoder":
        """Load a decoder from a known name, a .gguf file, a folder or a Hub id; weights as float32.

        Parameters
        ----------
        source
            A name of ``engine.weights.catalog``, a .gguf file, a folder with config.json,
            model.safetensors and tokenizer.json, or a Hugging Face id.
        on_progress
            Called with bytes done and bytes in all while downloading.

        Raises
        ------
        ModelUnavailableError
            The model cannot be found or downloaded.
        ModelFileError
            Its files are damaged, incomplete, or of another architecture.
        """
        path = model_path(source, on_progress)
        return load_folder(str(source), path) if path.is_dir() else load_gguf(str(source), path)

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
        ``layers.{i}.ffn.*``, ``layers.{i}.output``, ``norm`` and ``logits``.

        Parameters
        ----------
        prompt
            A text, chat messages or token ids, as in `generate`.
        keep
            Patterns of the names to keep, such as ``layers.*.attention.weights``.
        max_bytes
            The most that the trace may hold.

        Raises
        ------
        InputError
            The trace would be larger than ``max_bytes``, a pattern matches nothing, or there are no
            tokens.
        ContextLengthError
            The prompt has more tokens than the model has positions.
        """
        ids = self.prompt_ids(prompt)
        self.check_ids(ids)
        check_trace(self.trace_shapes(len(ids)), keep, self.weights.token_table.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array([self.tokenizer.decode([number]) for number in ids]))
        trace("ids", np.asarray(ids))
        hidden = self.inspect(ids, trace)
        if matches("logits", keep):
            trace("logits", self.unembed(hidden))
        return trace

    def inspect(self, ids: Sequence[int], trace: Tracer = no_trace) -> Array:
        """Run ``ids`` under a tracer; return the final hidden states ``(n_tokens, d_model)``."""
        cache = KVCache(self.config, capacity=self.check_ids(ids))
        return decoder_forward(ids, self.weights, self.config, cache, trace)

    def unembed(self, hidden: Array) -> Array:
        """Hidden states to logits: ``(n_tokens, d_model) -> (n_tokens, vocab_size)``."""
        return unembed(hidden, self.weights)

    def chat_encoding(self, messages: Sequence[Message]) -> tuple[RenderedChat, Encoding]:
        """Render messages with the model's template; return the prompt and its tokens.

        Special tokens count as such only where the template put them: in a message's content they
        are plain text.
        """
        if self.chat_template is None:
            raise InputError(f"{self.name} has no chat template: give the prompt as one text")
        bos = "" if self.bos_id is None else self.special_text(self.bos_id)
        end = self.special_text(min(self.end_ids, default=-1))
        chat = render_chat(self.chat_template, messages, bos, end)
        return chat, self.tokenizer.encode(chat.text, literal=chat.contents)

    def special_text(self, number: int) -> str:
        """Text of a special token, empty for an id that is none."""
        return next((text for text, other in self.tokenizer.special.items() if other == number), "")

    def prompt_ids(self, prompt: str | Sequence[Message] | Sequence[int]) -> list[int]:
        """Token ids of a text, of chat messages, or of ids that are given already."""
        if isinstance(prompt, str):
            start = [self.bos_id] if self.add_bos and self.bos_id is not None else []
            return start + self.tokenizer.encode(prompt).ids
        messages = [item for item in prompt if isinstance(item, Mapping)]
        if messages:
            return self.chat_encoding(messages)[1].ids
        return [int(item) for item in prompt if not isinstance(item, Mapping)]

    def generate(
        self,
        prompt: str | Sequence[Message] | Sequence[int],
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: Sequence[str] = (),
        kv_cache: bool = True,
    ) -> Iterator[Step]:
        """Generate a continuation, token by token.

        Parameters
        ----------
        prompt
            A text, chat messages (``{"role": …, "content": …}``), or token ids.
        max_new_tokens
            Most tokens to generate; prompt and answer together fit the model's context.
        temperature, top_k, top_p
            0 picks the most probable token; otherwise tokens are drawn after dividing the logits
            by the temperature and keeping the ``top_k`` best and the nucleus ``top_p``.
        seed
            Makes the draw repeatable.
        stop
            Texts before which the answer ends; they are not part of it.
        kv_cache
            Without it every step reads the whole text again: slower, and the same tokens.

        Yields
        ------
        Step
            The last one has a ``finish_reason``.

        Raises
        ------
        ContextLengthError
            The prompt leaves no room for a token.
        InputError
            A setting outside its range, or an empty prompt.
        """
        check_sampling(temperature, top_k, top_p)
        ids = self.prompt_ids(prompt)
        self.check_ids(ids)
        if max_new_tokens < 1:
            raise InputError(f"max_new_tokens is {max_new_tokens}: give 1 or more")
        self.check_length(len(ids) + 1)  # at least one new token
        n_new = min(max_new_tokens, self.max_tokens - len(ids))
        texts = TextStream([stop] if isinstance(stop, str) else stop)

        def steps() -> Iterator[Step]:
            rng = np.random.default_rng(seed)
            cache = KVCache(self.config, capacity=len(ids) + n_new)
            unread, n_prompt = ids[:], len(ids)
            while True:
                logits = self.next_logits(unread, cache)
                token = sample(logits, temperature, top_k, top_p, rng)
                ids.append(token)
                text = "" if token in self.end_ids else texts.push(self.tokenizer.token_bytes(token))
                reason: FinishReason | None = None
                if token in self.end_ids or texts.stopped:
                    reason = "stop"
                elif len(ids) - n_prompt == n_new:
                    reason = "length"
                if reason:
                    text += texts.finish()
                yield Step(token, text, float(log_softmax(logits)[token]), reason)
                if reason:
                    return
                if kv_cache:
                    unread = [token]
                else:
                    unread, cache.length = ids, 0

        return steps()

    def next_logits(self, ids: Sequence[int], cache: KVCache) -> Array:
        """Read ``ids`` into the cache; return the logits after the last one: ``(vocab_size,)``."""
        for start in range(0, len(ids), BLOCK_TOKENS):
            hidden = decoder_forward(ids[start : start + BLOCK_TOKENS], self.weights, self.config, cache)
        return self.unembed(hidden[-1:])[0]

    def check_ids(self, ids: Sequence[int]) -> int:
        """Return the number of ids, or raise for an empty or too long sequence or an id out of range."""
        outside = [number for number in ids if not 0 <= number < self.config.vocab_size]
        if outside:
            raise InputError(
                f"token id {outside[0]} is not one of {self.name}: 0 to {self.config.vocab_size - 1}"
            )
        if len(ids) == 0:
            raise InputError("the prompt is empty: give at least one token")
        return self.check_length(len(ids))

    def check_length(self, n_tokens: int) -> int:
        """Return ``n_tokens``, or raise where the model has not as many positions."""
        if n_tokens > self.max_tokens:
            raise ContextLengthError(
                f"{n_tokens} tokens exceed the {self.max_tokens} positions of {self.name} by "
                f"{n_tokens - self.max_tokens}: shorten the prompt or give fewer passages"
            )
        return n_tokens


def load_gguf(name: str, path: Path) -> Decoder:
    """Load a decoder from a .gguf file."""
    file = GGUF(path)
    ends = {file.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot")} - {None}
    config, weights = read_gguf_model(file)
    return Decoder(
        name=name,
        config=config,
        weights=weights,
        tokenizer=BPETokenizer.from_gguf(file),
        chat_template=file.get("tokenizer.chat_template"),
        bos_id=file.get("tokenizer.ggml.bos_token_id"),
        add_bos=file.get("tokenizer.ggml.add_bos_token", False),
        end_ids=frozenset(ends),
    )


def load_folder(name: str, folder: Path) -> Decoder:
    """Load a decoder from a folder with config.json, model.safetensors and tokenizer.json."""
    config, weights = read_folder_model(folder)
    tokenizer = BPETokenizer.from_json(folder / "tokenizer.json")
    check_vocab_size(tokenizer.vocab_size, config.vocab_size, folder)
    model, generation, chat = (
        read_json(path) if (path := folder / file).is_file() else {}
        for file in ("config.json", "generation_config.json", "tokenizer_config.json")
    )
    template = folder / "chat_template.jinja"
    end = generation.get("eos_token_id", model.get("eos_token_id"))
    return Decoder(
        name=name,
        config=config,
        weights=weights,
        tokenizer=tokenizer,
        chat_template=template.read_text("utf-8") if template.is_file() else chat.get("chat_template"),
        bos_id=model.get("bos_token_id"),
        add_bos=bool(chat.get("add_bos_token", False)),
        end_ids=frozenset([end] if isinstance(end, int) else end or []),
    )
