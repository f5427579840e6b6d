"""The reader: a question and a passage in, the words of the passage that answer it out.

A BERT encoder reads ``[CLS] question [SEP] passage [SEP]``, and two rows of weights give each token a score
as the start and as the end of the answer (Devlin et al. 2019, section 4.2). The scores of [CLS] stand for "no
answer in this passage" (section 4.3).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ..atomic_write import write_atomically
from ..errors import UNREADABLE, InputError, MadeByMethod, ModelFileError, check_question, check_several
from ..installed import bundled
from ..kernels.primitives import best_primitives
from ..layers.activation import softmax
from ..layers.linear import Linear, linear
from ..layers.primitives import NUMPY
from ..layers.quantization import StoredMatrix, quantize
from ..layers.tracing import Array, Tracer, no_trace
from ..tokenizers.text_tokenizer import TextTokenizer
from ..trace import MAX_TRACE_BYTES, Trace, check_trace
from ..weights.catalog import DEFAULT_ENCODER
from ..weights.mapped import map_safetensors
from ..weights.tensors import HEADER_KEY, TensorReader, damaged_files, read_header
from ..wording import reason_of
from . import bert
from .bert import EncoderConfig, EncoderWeights
from .encoder import Encoder, check_bert
from .parallel import run_packs
from .precision import in_precision

READER_SHA256 = "c5a7b7007e9cdfe843a7ee5daadfab37c3efbf86a82e767a6670e42e1a912c5c"  # of the file below
READER_FILE = bundled("reader/reader.safetensors")
HEAD = "qa_outputs"  # as transformers names the two rows of scores
LONGEST_ANSWER = 24  # tokens
QUESTION_TOKENS = 40  # read of a question
# Tokens of a passage that are read at once, and by how many the next window starts later.
WINDOW_TOKENS, STRIDE_TOKENS = 256, 128
BATCH_TOKENS = 1024  # of a pack, the windows that one core reads at once


@dataclass(frozen=True)
class Window:
    """A question with consecutive tokens of a passage, as the model reads them."""

    passage: int  # its number
    ids: list[int]
    type_ids: list[int]  # 0 for the question, 1 for the passage
    first: int  # place of the passage's first token in ``ids``
    offsets: list[tuple[int, int]]  # characters of the passage, of each of its tokens


@dataclass(frozen=True)
class Scores:
    """Logits as start and as end of a window's passage tokens, ``(n_tokens, 2)``, and of [CLS], ``(2,)``."""

    window: Window
    logits: Array
    cls_logits: Array

    @property
    def no_answer(self) -> float:
        """The score of no answer in this window."""
        return float(self.cls_logits.sum())

    @property
    def probabilities(self) -> Array:
        """Probabilities as start and as end, first of [CLS], then of the passage: ``(1 + n_tokens, 2)``.

        Each column sums to 1: the softmax of training, without the question's tokens and [SEP].
        """
        return softmax(np.vstack([self.cls_logits, self.logits]).T).T


@dataclass(frozen=True)
class Span:
    """Words of a passage, its characters ``[start, end)``, with their score."""

    passage: int
    start: int
    end: int
    score: float  # start's and end's logit, over those of no answer


@dataclass(frozen=True)
class ReaderHeader:
    """The JSON of a reader's file: the model whose embeddings it reads with, and its width."""

    format: Literal["glassbox-reader-weights-1"]
    base: str
    d_model: int
    n_layers: int


@dataclass(frozen=True)
class Reader(MadeByMethod):
    """A model that finds the words of a passage that answer a question.

    Attributes
    ----------
    head
        Weights ``(2, d_model)`` and biases of the scores as start and as end.
    max_tokens
        Limit of question and passage window together, special tokens included.
    """

    name: str
    config: EncoderConfig
    weights: EncoderWeights = field(repr=False)
    head: Linear = field(repr=False)
    tokenizer: TextTokenizer
    max_tokens: int
    compiled: bool = False
    precision: str = "float32"

    @classmethod
    def load(cls, path: Path = READER_FILE, encoder: Encoder | None = None) -> "Reader":
        """Load a reader's layers and head; embeddings and tokenizer are those of all-MiniLM-L6-v2.

        Parameters
        ----------
        path
            A file that `save` wrote.
        encoder
            The model of the embeddings, if it is loaded already and in float32.

        Raises
        ------
        ModelFileError
            The file is missing, damaged, or of another model.
        """
        content, header = read_content(path)
        if encoder is None or encoder.name != header.base or encoder.precision != "float32":
            encoder = Encoder.load(header.base)
        config = encoder.config
        if (header.d_model, header.n_layers) != (config.d_model, config.n_layers):
            raise ModelFileError(
                f"{path} has {header.n_layers} layers of {header.d_model} dimensions, {encoder.name} "
                f"{config.n_layers} of {config.d_model}: the reader belongs to another model"
            )
        with damaged_files(path):
            tensors: dict[str, Any] = {
                name: StoredMatrix(array, content[f"{name}.scale"]) if array.dtype == np.int8 else array
                for name, array in content.items()
                if not name.endswith(".scale")
            } | bert.embedding_tensors(encoder.weights)
            weights = bert.read_weights(tensors, config, np.dtype(np.float32))
            head = TensorReader(tensors, np.dtype(np.float32)).dense(HEAD, config.d_model, 2)
        return cls.of(encoder, weights, head, path.parent.name)

    @classmethod
    def of(cls, encoder: Encoder, weights: EncoderWeights, head: Linear, name: str = "reader") -> "Reader":
        """Return a reader with these layers and head, and the tokenizer of the encoder they began as."""
        check_bert(encoder, "the reader")
        limit = encoder.config.max_positions
        return cls(name, encoder.config, weights, head, encoder.tokenizer, limit, encoder.compiled)

    def save(self, path: Path, base: str = DEFAULT_ENCODER) -> None:
        """Write layers and head: matrices in 8 bits with a scale a row, the rest in float32.

        Where the disk is full, the file that was there stays.

        Raises
        ------
        InputError
            The reader is not in float32.
        """
        if self.precision != "float32":
            raise InputError(f"{self.name} is rounded to {self.precision} already: save it as float32")
        tensors: dict[str, Array] = {}
        for name, array in bert.layer_tensors(self.weights).items():
            if array.ndim == 2:
                tensors[name], tensors[f"{name}.scale"] = quantize(array)
            else:
                tensors[name] = array
        tensors |= {
            f"{HEAD}.weight": np.asarray(self.head.weight),
            f"{HEAD}.bias": np.asarray(self.head.bias),
        }
        header = ReaderHeader("glassbox-reader-weights-1", base, self.config.d_model, self.config.n_layers)
        contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        write_atomically(path, save(contiguous, {HEADER_KEY: json.dumps(asdict(header))}))

    def with_precision(self, precision: str) -> "Reader":
        """Return this float32 reader in a precision, as `Encoder.with_precision`; its head stays."""
        return in_precision(self, precision)

    def windows(self, question: str, passages: Sequence[str]) -> list[Window]:
        """Cut passages into windows that the model reads together with a question.

        A question is cut at `QUESTION_TOKENS`; a passage without a token has no window.
        """
        tokenizer = self.tokenizer
        before, asked, after = tokenizer.around(tokenizer.encode(question).ids)
        head = [*before, *self.words(asked[:QUESTION_TOKENS]), *after]
        room = min(WINDOW_TOKENS, self.max_tokens - len(head) - len(after))
        found = []
        for number, encoding in enumerate(tokenizer.encode_batch(list(passages))):
            ids = self.words(tokenizer.around(encoding.ids)[1])
            _, offsets, _ = tokenizer.around(encoding.offsets)
            for start in window_starts(len(ids), room):
                own = ids[start : start + room]
                types = [0] * len(head) + [1] * (len(own) + len(after))
                window = Window(
                    number, [*head, *own, *after], types, len(head), offsets[start : start + room]
                )
                found.append(window)
        return found

    def words(self, ids: Sequence[int]) -> list[int]:
        """Return a text's ids with control tokens that it spells out, such as "[CLS]", as unknown words."""
        special = self.tokenizer.special_ids
        unknown = next(number for number in special if self.tokenizer.token(number) == "[UNK]")
        return [unknown if number in special else number for number in ids]

    def scores(self, question: str, passages: Sequence[str]) -> list[Scores]:
        """Score every token of passages as the start and as the end of the answer, window by window.

        Raises
        ------
        InputError
            A bare string for the passages, something else than a text, or an empty question.
        """
        check_several(passages)
        check_question(question)
        return self.scores_of(self.windows(question, passages))

    def scores_of(self, windows: Sequence[Window]) -> list[Scores]:
        """Score every token of windows as the start and as the end of the answer."""
        found: list[Array] = [np.empty(0)] * len(windows)

        def run(batch: slice) -> None:
            found[batch] = self.logits(windows[batch])

        run_packs(run, [window.ids for window in windows], BATCH_TOKENS)
        return [
            Scores(window, logits[window.first : -1], logits[0])
            for window, logits in zip(windows, found, strict=True)
        ]

    def logits(self, windows: Sequence[Window], trace: Tracer = no_trace) -> list[Array]:
        """Run one pack of windows: ``(n_tokens, 2)`` each. Tracing runs NumPy's functions."""
        ops = best_primitives() if self.compiled and trace is no_trace else NUMPY
        ids, types = [window.ids for window in windows], [window.type_ids for window in windows]
        hidden = bert.encoder_forward(ids, self.weights, self.config, trace, ops, types)
        return [trace("logits", linear(own, *self.head)) for own in hidden]

    def read(
        self,
        question: str,
        passages: Sequence[str],
        skipped: Sequence[Sequence[tuple[int, int]]] = (),
        n_best: int = 5,
    ) -> list[Span]:
        """Return the best spans of each passage that do not overlap, best first over all passages.

        Parameters
        ----------
        skipped
            For each passage, the spans of characters that hold no answer, such as its own questions.
        n_best
            Spans of a passage at most.
        """
        return best_spans(self.scores(question, passages), skipped, n_best)

    def score(self, question: str, passages: Sequence[str]) -> Array:
        """Score passages by their best span, over no answer: float32 ``(n_passages,)``, larger is better.

        A passage without a token has the lowest score, ``-inf``.
        """
        found = np.full(len(passages), -np.inf, np.float32)
        for span in self.read(question, passages, n_best=1):
            found[span.passage] = span.score
        return found

    def trace(
        self, question: str, passage: str, keep: Sequence[str] = ("*",), max_bytes: int = MAX_TRACE_BYTES
    ) -> Trace:
        """Run the first window of a passage and keep its intermediates.

        The names are those of `Encoder.trace` up to the last layer, then ``logits``, ``(n_tokens, 2)``.

        Raises
        ------
        InputError
            The passage is empty, the trace would be larger than ``max_bytes``, or a pattern matches nothing.
        """
        windows = self.windows(question, [passage])
        if not windows:
            raise InputError("the passage is empty: give one with words")
        ids = windows[0].ids
        shapes = bert.trace_shapes(self.config, len(ids)) | {"logits": (len(ids), 2)}
        check_trace(shapes, keep, self.weights.token_table.dtype, max_bytes)
        trace = Trace(keep)
        trace("tokens", np.array([self.tokenizer.token(number) for number in ids]))
        trace("ids", np.array(ids))
        self.logits(windows[:1], trace)
        return trace


def shipped_reader(encoder: Encoder | None = None) -> Reader:
    """Return the reader of `READER_FILE`, loaded once a process; see `Reader.load`."""
    with _loading:
        if not _shipped:
            _shipped.append(Reader.load(encoder=encoder))
        return _shipped[0]


_shipped: list[Reader] = []
_loading = Lock()


def window_starts(n_tokens: int, room: int) -> list[int]:
    """Return where the windows of ``room`` tokens start that cover a passage, the last one at its end."""
    if n_tokens <= room:
        return [0] if n_tokens else []
    return [*range(0, n_tokens - room, STRIDE_TOKENS), n_tokens - room]


def best_spans(
    scores: Sequence[Scores], skipped: Sequence[Sequence[tuple[int, int]]] = (), n_best: int = 5
) -> list[Span]:
    """Return the best spans by the scores of windows: see `Reader.read`."""
    of_passages: dict[int, list[Span]] = {}
    for each in scores:
        number, offsets = each.window.passage, each.window.offsets
        hidden = skipped[number] if skipped else ()
        allowed = np.array([not any(a < end and start < b for a, b in hidden) for start, end in offsets])
        for start, end, score in window_spans(each.logits, allowed, 4 * n_best):
            span = Span(number, offsets[start][0], offsets[end][1], score - each.no_answer)
            of_passages.setdefault(number, []).append(span)
    found: list[Span] = []
    for spans in of_passages.values():
        kept: list[Span] = []
        for span in sorted(spans, key=lambda each: -each.score):
            if all(span.end <= other.start or other.end <= span.start for other in kept):
                kept.append(span)
        found += kept[:n_best]
    return sorted(found, key=lambda span: -span.score)


def window_spans(logits: Array, allowed: Array, n_best: int) -> list[tuple[int, int, float]]:
    """Return the best spans of tokens: first and last token, and the sum of their logits.

    ``logits`` are ``(n_tokens, 2)``; a span has at most `LONGEST_ANSWER` tokens, all of them ``allowed``.
    """
    ends = np.arange(len(logits))[:, None] + np.arange(LONGEST_ANSWER)  # (start, length - 1)
    is_within = ends < len(logits)
    ends = np.where(is_within, ends, 0)
    n_hidden = np.concatenate([[0], np.cumsum(~allowed)])
    is_free = n_hidden[ends + 1] == n_hidden[:-1, None]  # no hidden token from start to end
    totals = np.where(is_within & is_free, logits[:, :1] + logits[ends, 1], -np.inf)
    order = np.argsort(-totals, axis=None, kind="stable")[:n_best]
    starts, lengths = np.unravel_index(order, totals.shape)
    best = zip(starts.tolist(), ends[starts, lengths].tolist(), totals[starts, lengths].tolist(), strict=True)
    return [span for span in best if span[2] > -np.inf]


def read_content(path: Path) -> tuple[dict[str, Array], ReaderHeader]:
    """Read the tensors and the header of a reader's file.

    Raises `ModelFileError` where the file is missing, not a reader's, or not the one that is shipped under
    its name.
    """
    if not path.is_file():
        raise ModelFileError(f"there is no reader at {path}: train one by train-reader")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read ({error.strerror}): check it out again") from error
    if path == READER_FILE and sha256(content).hexdigest() != READER_SHA256:
        raise ModelFileError(f"{path} is damaged, or not the reader of this version: check it out again")
    header = read_header(content, ReaderHeader, "a reader")
    try:
        return map_safetensors(path) if path == READER_FILE else load(content), header
    except (SafetensorError, *UNREADABLE) as error:
        raise ModelFileError(f"{path} is damaged ({reason_of(error)}): check it out again") from error
