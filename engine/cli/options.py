"""Options of the command line, in groups that several commands share."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from engine.documents.loaders import BUNDLED_CORPUS, kinds
from engine.documents.splitters import DEFAULT_SPLITTING, SPLITTERS, Splitting
from engine.errors import InputError
from engine.generation.sampling import RULES
from engine.generation.settings import CONTEXTS, DEFAULT_ANSWER, DEFAULT_MIN_RELEVANCE, DEFAULT_SEARCH
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import OWN
from engine.models.kv_cache import KV_BITS
from engine.models.precision import AUTO, PRECISIONS
from engine.models.prompts import PROMPT_USES
from engine.retrieval.filters import DocumentFilter
from engine.retrieval.retrievers import DEFAULT_RETRIEVER, RETRIEVERS
from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
EncoderOption = Annotated[
    str, typer.Option("--model", help="Encoder: a known name, a model folder or a Hugging Face id.")
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="What embeds: a known name, a folder or a Hugging Face id, or http://host:port#model-name for a "
        "server that speaks OpenAI's protocol, whose key is in GLASSBOX_SERVER_KEY.",
    ),
]
PoolingOption = Annotated[
    str,
    typer.Option(help=f"How token vectors become one: {', '.join(POOLINGS)}; own is the model's own way."),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        help=f"Of model and reranker: {', '.join((*PRECISIONS, AUTO))}. int8 is about twice as fast "
        f"where the processor multiplies bytes; {AUTO} takes it there."
    ),
]
RerankerOption = Annotated[
    str,
    typer.Option(
        help="A cross-encoder for the retriever 'cross-encoder': a folder or a Hugging Face id.",
        show_default=False,
    ),
]
ParentOption = Annotated[
    int,
    typer.Option(help="Tokens of the larger chunk around each, given in its place; 0: the chunk itself."),
]
SAMPLING_HELP = {name: rule.help for name, rule in RULES.items()} | {
    "seed": "Makes drawing at a temperature repeatable."
}


@dataclass(frozen=True)
class EmbeddingOptions:
    """How documents are cut and embedded."""

    model: ModelOption = DEFAULT_ENCODER
    splitter: Annotated[str, typer.Option(help=f"How documents are cut: {', '.join(SPLITTERS)}.")] = (
        DEFAULT_SPLITTING.method
    )
    chunk_tokens: Annotated[int, typer.Option(help="Tokens of a chunk, special tokens included.")] = (
        DEFAULT_SPLITTING.chunk_tokens
    )
    overlap: Annotated[int, typer.Option(help="Tokens a chunk repeats from the one before.")] = (
        DEFAULT_SPLITTING.overlap
    )
    pooling: PoolingOption = OWN
    prompts: Annotated[
        str,
        typer.Option(
            help=f"The model's prompts before questions and chunks, if it has any: {', '.join(PROMPT_USES)}."
        ),
    ] = "own"
    precision: PrecisionOption = "float32"
    cache: Annotated[
        Path | None, typer.Option(help="A file that keeps embeddings between runs (SQLite).")
    ] = None

    @property
    def splitting(self) -> Splitting:
        """How documents are cut."""
        return Splitting(self.splitter, self.chunk_tokens, self.overlap)


@dataclass(frozen=True)
class CorpusOptions(EmbeddingOptions):
    """What is searched."""

    corpus: Annotated[
        Path,
        typer.Option(help=f"A file ({kinds()}), or a folder.", show_default="bundled corpus"),
    ] = BUNDLED_CORPUS
    parent_tokens: ParentOption = 0
    reranker: RerankerOption = ""


@dataclass(frozen=True)
class SearchedOptions(CorpusOptions):
    """What is searched, which may be embedded already."""

    index: Annotated[
        Path | None,
        typer.Option(
            help="A folder that the command `index` wrote, to search in place of a corpus: only the question "
            "is embedded. The folder knows how its chunks were made."
        ),
    ] = None

    document: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A document to search; may be given several times.", show_default="all"
        ),
    ] = None
    tag: Annotated[
        list[str] | None,
        typer.Option(
            help="A tag of the documents to search; may be given several times, for those with any of them.",
            show_default="all",
        ),
    ] = None
    since: Annotated[
        str,
        typer.Option(metavar="DAY", help="The first day of the documents to search, such as 2026-05-01."),
    ] = ""
    until: Annotated[str, typer.Option(metavar="DAY", help="The last day of the documents to search.")] = ""
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Chunks with their vectors to search in place of a corpus: .npz as `embed` writes it, or "
            ".parquet with the columns document, start, end, text, vector. --model, --pooling and --prompts "
            "are those that made them."
        ),
    ] = None

    @property
    def filter(self) -> DocumentFilter:
        """Which documents are searched, by their tags and dates."""
        return DocumentFilter(tuple(self.tag or ()), self.since, self.until)


@dataclass(frozen=True)
class RetrievalOptions:
    """How passages are found."""

    retriever: Annotated[
        str, typer.Option(help=f"How passages are found and ordered: {', '.join(RETRIEVERS)}.")
    ] = DEFAULT_RETRIEVER


@dataclass(frozen=True)
class AnsweringOptions:
    """How questions are answered."""

    decoder: Annotated[
        str,
        typer.Option(help="Decoder: a known name, a .gguf file, a folder or a Hugging Face id."),
    ] = DEFAULT_DECODER
    k: Annotated[int, typer.Option(help="How many passages to search for.")] = DEFAULT_SEARCH.k
    min_relevance: Annotated[
        float,
        typer.Option(
            help="A passage counts as relevant where at least this share (percent) of unrelated questions "
            "finds nothing as close; 0: all count."
        ),
    ] = DEFAULT_MIN_RELEVANCE
    max_prompt_tokens: Annotated[int, typer.Option(help="Token budget of the prompt.")] = (
        DEFAULT_ANSWER.max_prompt_tokens
    )
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens of the model's text.")] = (
        DEFAULT_ANSWER.max_new_tokens
    )
    context: Annotated[
        str,
        typer.Option(
            help="What the model reads: " + ", ".join(f"{name} ({what})" for name, what in CONTEXTS.items())
        ),
    ] = DEFAULT_ANSWER.context
    answer_at: Annotated[
        float, typer.Option(help="Confidence (0 to 1) from which an answer is shown as one.")
    ] = DEFAULT_ANSWER.answer_threshold
    refuse_below: Annotated[float, typer.Option(help="Confidence below which the answer is refused.")] = (
        DEFAULT_ANSWER.refuse_threshold
    )
    quotes_only: Annotated[
        bool, typer.Option("--quotes-only", help="Only quote: the model writes no text.")
    ] = False
    kv_bits: Annotated[
        int,
        typer.Option(
            help="Bits of a number in the decoder's KV cache, 16 or 8: 8 take about half of the memory."
        ),
    ] = KV_BITS[0]
    think: Annotated[
        bool,
        typer.Option(
            "--think",
            help="Let a model with a thinking mode (Qwen3, SmolLM3) think first; its thought is no part of "
            "the answer.",
        ),
    ] = False


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are dataclasses.

    Fields without a `typer.Option` of their own are those of `Sampling`, with the help of `RULES`.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        options = option_parameters(hint)
        groups[parameter.name] = hint, [option.name for option in options]
        parameters += options

    @wraps(command)
    def wrapped(**values: Any) -> None:
        for name, (group, names) in groups.items():
            values[name] = group(**{option: values.pop(option) for option in names})
        command(**values)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def option_parameters(group: Any) -> list[inspect.Parameter]:
    """Return a parameter for each field of a dataclass, as typer reads them."""
    hints = get_type_hints(group, include_extras=True)
    found = []
    for field in fields(group):
        hint = hints[field.name]
        if not hasattr(hint, "__metadata__"):
            hint = Annotated[hint, typer.Option(help=SAMPLING_HELP[field.name])]
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind = inspect.Parameter.KEYWORD_ONLY
        found.append(inspect.Parameter(field.name, kind, default=default, annotation=hint))
    return found


def check_folder_of(path: Path, option: str) -> None:
    """Raise `InputError` unless the folder of a file to write exists: before anything is computed."""
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: give {option} a file in one that does")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors in writing a file into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): give another file") from error
