"""Options of the command line, in groups that several commands share."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ..documents.loaders import BUNDLED_CORPUS, check_address, corpus_files, kinds
from ..documents.splitters import Splitting, check_splitting
from ..errors import InputError, check_question
from ..generation.settings import DEFAULT_ANSWER
from ..models.embedding_head import MODEL_DEFAULT
from ..models.precision import AUTO, chosen_precision
from ..models.second_models import SECOND_MODELS
from ..progress import quiet
from ..retrieval.filters import DocumentFilter
from ..retrieval.retrievers import RETRIEVERS
from ..settings import OWN_LABEL, SETTINGS, Configuration, check_value, default
from ..weights.catalog import DEFAULT_DECODER
from .settings_file import SETTINGS_FILE, apply_settings_file

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
SampleOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Most questions: of more, a seed draws a sample, and of a large corpus one of its documents. "
        "0 takes all.",
    ),
]
EncoderOption = Annotated[
    str, typer.Option("--model", help="Encoder: a known name, a model folder or a Hugging Face id.")
]
DECODER = "Decoder: a known name, a .gguf file, a folder or a Hugging Face id."
DocumentOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A document to search; may be given several times.",
        show_default="all",
        rich_help_panel="Documents",
    ),
]


def second_option(kind: str) -> Any:
    """Return the option that names a model of `SECOND_MODELS`."""
    each = SECOND_MODELS[kind]
    users = " and ".join(repr(name) for name, one in RETRIEVERS.items() if one.needs == kind)
    known = f"a known name, a folder or a Hugging Face id; {each.default} by default"
    source = known if each.default else "a folder or a Hugging Face id"
    text = f"A {each.label} for the retriever{'s' if ' and ' in users else ''} {users}: {source}."
    return typer.Option(help=text, show_default=False, rich_help_panel="Search")


# What the command line adds to the help of a setting.
ADDED_HELP = {
    "model": " The key of a server is in GLASSBOX_SERVER_KEY.",
    "precision": f" {AUTO} is int8 where the processor multiplies bytes.",
    "answer_threshold": " From 0 to 1.",
    "refuse_threshold": " From 0 to 1.",
}


def setting_help(key: str) -> str:
    """Return the help of the option of a setting: what it does, and its choices."""
    setting = SETTINGS[key]
    names = ", ".join([*setting.choices, *filter(None, [setting.own])])
    line = f"{setting.help.removesuffix('.')}: {names}." if setting.choices else setting.help
    return line + ADDED_HELP.get(key, "")


# The headings of commands in the help, besides those that search and answer.
MEASURE, MODELS, ELSEWHERE = "Measure", "Models", "Take elsewhere"
# The heading of the options of a stage in the help.
PANELS = {"cut": "Chunks", "embedding": "Embedding", "search": "Search", "answer": "Answer"}
DOCUMENTS = "Documents"


def check_option(key: str, value: Any) -> Any:
    """Return the value of the option of a setting; raise `InputError` for one that is none of its values."""
    if SETTINGS[key].choices or key == "k":  # typer has read numbers already
        check_value(key, chosen_precision(value) if key == "precision" else value)
    return value


@dataclass(frozen=True)
class EmbeddingOptions:
    """How documents are cut and embedded."""

    model: str = default("model")
    splitter: str = default("splitter")
    chunk_tokens: int = default("chunk_tokens")
    overlap: int = default("overlap")
    context: str = default("context")
    max_tokens: int | None = default("max_tokens")
    pooling: str = MODEL_DEFAULT
    prompts: str = default("prompts")
    precision: str = default("precision")
    cache: Annotated[
        Path | None,
        typer.Option(
            help="A file that keeps embeddings between runs (SQLite).", rich_help_panel=PANELS["embedding"]
        ),
    ] = None

    def __post_init__(self) -> None:
        check_splitting(self.splitting, n_special=0)  # those of the model are known once it is loaded
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}: give 1 or more, or leave it out")

    @property
    def splitting(self) -> Splitting:
        """How documents are cut."""
        return Splitting(self.splitter, self.chunk_tokens, self.overlap, self.context)


@dataclass(frozen=True)
class SecondModelOptions:
    """The second models, by the keys of `SECOND_MODELS`."""

    reranker: Annotated[str, second_option("reranker")] = ""
    sparse: Annotated[str, second_option("sparse")] = ""
    multi_vector: Annotated[str, second_option("multi_vector")] = ""

    @property
    def named(self) -> dict[str, str]:
        """The models that are named."""
        return {kind: source for kind in SECOND_MODELS if (source := getattr(self, kind))}


@dataclass(frozen=True)
class SearchOptions(SecondModelOptions, EmbeddingOptions):
    """How documents are cut, embedded and searched."""

    parent_tokens: int = default("parent_tokens")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_splitting(self.splitting, 0, self.parent_tokens)


@dataclass(frozen=True)
class CorpusOptions(SearchOptions):
    """What is searched."""

    corpus: Annotated[
        Path,
        typer.Option(
            help=f"A file ({kinds()}), or a folder.", show_default="bundled corpus", rich_help_panel=DOCUMENTS
        ),
    ] = BUNDLED_CORPUS


@dataclass(frozen=True)
class SearchedOptions(CorpusOptions):
    """What is searched, which may be embedded already."""

    index: Annotated[
        Path | None,
        typer.Option(
            help="A folder that the command `index` wrote, to search in place of a corpus: only the question "
            "is embedded. The folder knows how its chunks were made.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None

    document: DocumentOption = None
    tag: Annotated[
        list[str] | None,
        typer.Option(
            help="A tag of the documents to search; may be given several times, for those with any of them.",
            show_default="all",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None
    since: Annotated[
        str,
        typer.Option(
            metavar="DAY",
            help="The first day of the documents to search, such as 2026-05-01.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = ""
    until: Annotated[
        str,
        typer.Option(
            metavar="DAY", help="The last day of the documents to search.", rich_help_panel=DOCUMENTS
        ),
    ] = ""
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Chunks with their vectors to search in place of a corpus: .npz as `embed` writes it, or "
            ".parquet with the columns document, start, end, text, vector. --model, --pooling and --prompts "
            "are those that made them.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None

    @property
    def filter(self) -> DocumentFilter:
        """Which documents are searched, by their tags and dates."""
        return DocumentFilter(tuple(self.tag or ()), self.since, self.until)


@dataclass(frozen=True)
class AnsweringOptions:
    """How passages are found, and questions answered."""

    retriever: str = default("retriever")
    decoder: Annotated[str, typer.Option(help=DECODER, rich_help_panel=PANELS["answer"])] = DEFAULT_DECODER
    k: int = default("k")
    min_relevance: float = default("min_relevance")
    max_prompt_tokens: int = default("max_prompt_tokens")
    max_new_tokens: int = default("max_new_tokens")
    reads: str = default("reads")
    answer_threshold: float = DEFAULT_ANSWER.answer_threshold
    refuse_threshold: float = DEFAULT_ANSWER.refuse_threshold
    think: bool = default("think")
    write: bool = default("write")


def be_quiet(context: typer.Context, is_wanted: bool) -> None:
    """Print no lines about the work in progress until the command ends, if that is wanted."""
    context.with_resource(quiet(is_wanted))


class SweptValues(dict[str, list[Any]]):
    """The values of every setting that a sweep varies, by key: an option each, with commas between values."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are dataclasses, and for `SweptValues`.

    Fields and parameters without a `typer.Option` of their own are settings, with the help of `SETTINGS`.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        group: Callable[..., Any]
        if hint is SweptValues:
            options, group = swept_parameters(), read_swept
        elif isinstance(hint, type) and is_dataclass(hint):
            options, group = option_parameters(hint), hint
        else:
            hint = hint if hint is typer.Context else option_hint(parameter.name, hint)
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group, [option.name for option in options]
        parameters += options
    parameters += COMMON

    @wraps(command)
    def wrapped(**values: Any) -> None:
        for each in COMMON:  # whose callbacks have run
            del values[each.name]
        for name, value in values.items():
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, Path):
                    check_address(path)
                    if name in ("corpus", "path"):
                        corpus_files(path)
        for name, (group, names) in groups.items():
            values[name] = group(**{option: values.pop(option) for option in names})
        command(**values)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def option_hint(name: str, hint: Any) -> Any:
    """Return the type of an option with its help: its own, or that of the setting of its name."""
    if hasattr(hint, "__metadata__"):
        return hint
    setting = SETTINGS[name]
    flags = [f"--{name.replace('_', '-')}"] if isinstance(setting.default, bool) else []
    shown = OWN_LABEL if setting.none == OWN_LABEL else True
    option = typer.Option(
        *flags,
        help=setting_help(name),
        show_default=shown,
        callback=lambda value: check_option(name, value),
        autocompletion=lambda: [*setting.choices],
        rich_help_panel=PANELS[setting.stage],
    )
    return Annotated[hint, option]


def option_parameters(group: Any) -> list[inspect.Parameter]:
    """Return a parameter for each field of a dataclass, as typer reads them."""
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter_of(
            field.name,
            option_hint(field.name, hints[field.name]),
            inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]


def swept_parameters() -> list[inspect.Parameter]:
    """Return a parameter for each setting that a sweep varies; as text, 0 is the model's own number."""
    found = []
    for key, value in asdict(Configuration()).items():
        own = " 0 is the model's own." if value is None else ""
        panel = PANELS[SETTINGS[key].stage]
        option = typer.Option(help=f"{setting_help(key)}{own}", rich_help_panel=panel)
        text = str(SETTINGS[key].own or value or 0)
        found.append(parameter_of(key, Annotated[str, option], text))
    return found


def parameter_of(name: str, hint: Any, value: Any) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=hint)


# The options of all commands. They take effect before the others are read.
COMMON = [
    parameter_of(
        "quiet",
        Annotated[
            bool,
            typer.Option(
                "--quiet",
                help="Print nothing about the work in progress; warnings are printed.",
                callback=be_quiet,
                is_eager=True,
            ),
        ],
        False,
    ),
    parameter_of(
        "settings",
        Annotated[
            Path | None,
            typer.Option(
                help="A file with values of options: TOML, or the JSON that the app writes. Options that are "
                "given go first.",
                show_default=f"{SETTINGS_FILE}, where there is one",
                callback=apply_settings_file,
                is_eager=True,
            ),
        ],
        None,
    ),
]


def read_swept(**texts: str) -> SweptValues:
    """Read the values between commas, whole numbers for settings that are numbers."""
    values = SweptValues()
    for key, text in texts.items():
        option = f"--{key.replace('_', '-')}"
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise InputError(f"{option} is empty: give one value or more, with commas between")
        values[key] = parts if not SETTINGS[key].tried else [whole_number(option, part) for part in parts]
    values["max_tokens"] = [limit or None for limit in values["max_tokens"]]
    return values


def as_utf8(text: str) -> str:
    """Return an argument as UTF-8, also where a locale of ASCII made halves of pairs of its bytes."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def question_of(text: str) -> str:
    """Return a question as UTF-8; raise `InputError` for a blank one."""
    check_question(as_utf8(text))
    return as_utf8(text)


def whole_number(option: str, text: str) -> int:
    """Read a whole number; raise `InputError` if it is none."""
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{option} has {text!r}: give whole numbers, with commas between") from error


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
