"""A script in another library that cuts documents into the same chunks and finds the same passages."""

import ast
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from textwrap import wrap
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..documents import abbreviations, sentences
from ..documents.chunk_context import CONTEXT_SHARE, CONTEXTS, RULE, heads_above, says
from ..documents.formats.markdown import closes, fence_of, heading_of
from ..documents.splitters import SPLITTERS, Barriers, check_splitting
from ..documents.units import LINE_END, PARAGRAPH_END, TOPIC_PERCENTILE, section_starts, topic_starts
from ..errors import InputError
from ..evaluation.grid import reason_left_out, resolved
from ..evaluation.library_model import LibraryModel
from ..layers.pooling import POOLINGS, pooling_label
from ..models.embedding_head import MODEL_DEFAULT
from ..models.sentence_transformer_folder import POOLING_MODES
from ..retrieval.embedding_model import Model
from ..retrieval.fusion import DENSE_WEIGHT, RRF_CONSTANT
from ..retrieval.mmr import MMR_DIVERSITY, mmr_order
from ..retrieval.rerank import RERANK_DEPTH
from ..retrieval.retrievers import RETRIEVERS, Retriever, check_retriever, second_model
from ..settings import Configuration
from ..weights.catalog import DEFAULT_ENCODER, KNOWN_MODELS
from ..weights.fetch import cache_folder, local_path
from ..wording import model_name
from .libraries import LIBRARIES, check_library, import_lines, packages

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH = 80  # characters of the words on a line of a script
TEMPLATES = Path(__file__).parent / "templates"
# Functions of the script, by the engine's that find the same places.
BARRIERS: dict[Barriers, str] = {section_starts: "section_starts", topic_starts: "topic_starts"}


@dataclass(frozen=True)
class Export:
    """A script, and in words each setting that it does not carry over."""

    script: str
    left_out: tuple[str, ...]


def export(configuration: Configuration, model: Model, to: str, parent_tokens: int = 0) -> Export:
    """Write a script that cuts documents into the same chunks and finds the same passages.

    The script, in the library ``to`` of `LIBRARIES`, reads a folder and a question, and prints the best
    passages, each in the larger chunk of ``parent_tokens`` around it if that is not 0. `InputError` for
    settings that cannot be combined.
    """
    check_library(to)
    check_retriever(configuration.retriever)
    if configuration.k < 1:
        raise InputError(f"k is {configuration.k}: ask for 1 passage or more")
    check_splitting(configuration.splitting, model.tokenizer.n_special, parent_tokens)
    model.with_prompts(configuration.prompts)  # whether the use of prompts is a known one
    if reason := reason_left_out(replace(resolved(configuration, model), prompts="own"), model):
        raise InputError(reason)
    wanted = resolved(configuration, model)
    configuration = replace(wanted, retriever="weighted") if RETRIEVERS[wanted.retriever].pairs else wanted
    fields = script_fields(configuration, model, to, parent_tokens)
    body = rendered(f"{to.replace('-', '_')}.jinja", fields)
    imports = import_lines(body, LIBRARIES[to])
    head = rendered("head.jinja", fields | {"packages": packages(imports, LIBRARIES[to])})
    return Export(spaced(f"{head}\n\n{imports}\n\n{body}"), left_out(wanted, model))


def spaced(script: str) -> str:
    """Put two empty lines before each class and function, and one line break at the end."""
    script = re.sub(r"\n+(?=(?:class|def|if)\b|@)", "\n\n\n", script)
    script = re.sub(r"^(@.*)\n+", r"\1\n", script, flags=re.MULTILINE)
    return re.sub(r"\n{4,}", "\n\n\n", script).strip() + "\n"


def script_fields(configuration: Configuration, model: Model, to: str, parent_tokens: int) -> dict[str, Any]:
    """Return the fields of the templates."""
    splitter, retriever = SPLITTERS[configuration.splitter], RETRIEVERS[configuration.retriever]
    own, limit, normalizes = facts_of(model)
    pooling, prompts = configuration.pooling, model.with_prompts(configuration.prompts).prompts
    dense = retriever.uses_vectors
    bert = dense and pooling not in (MODEL_DEFAULT, *POOLING_MODES)
    barriers = BARRIERS[splitter.barriers] if splitter.barriers else ""
    topics, context = barriers == "topic_starts", configuration.context

    def chunk_text(name: str, text: str) -> str:
        return f"{text}[start:end]" if context == "off" else f"indexed({name}, {text}, start, end)"

    return {
        "label": LIBRARIES[to].label,
        "model": repr_of(public_name(configuration.model)),
        "tokenizer": repr_of(public_name(DEFAULT_ENCODER)) if isinstance(model, LibraryModel) else "",
        "max_tokens": configuration.max_tokens or limit,
        "chunk_tokens": configuration.chunk_tokens,
        "context": context,
        "context_label": CONTEXTS[context].label,
        "context_share": CONTEXT_SHARE,
        "context_sources": "\n\n\n".join(inspect.getsource(each).rstrip() for each in (says, heads_above)),
        "rule": f'r"{RULE.pattern}"',
        "chunk_text": chunk_text,
        "overlap": configuration.overlap,
        "overlaps": configuration.overlap > 0 and not splitter.is_sliding,
        "parents": parent_tokens,
        "query_prompt": repr_of(prompts.of("query")),
        "document_prompt": repr_of(prompts.of("document")),
        "k": configuration.k,
        "splitter": splitter.label,
        "retriever_label": retriever.label,
        "pooling_label": pooling_label(pooling),
        "levels": [find_starts.__name__ for find_starts in splitter.units],
        "slides": splitter.is_sliding,
        "cuts": not splitter.is_sliding or parent_tokens > 0,
        "barriers": barriers,
        "sentence_model": "sentence_model" if topics and pooling != own else "model",
        "topic_percentile": TOPIC_PERCENTILE,
        "normalizes": normalizes,
        "sentences": "\n\n\n".join([abbreviations_source(), source_of(sentences)]),
        "headings": "\n\n\n".join(
            inspect.getsource(each).rstrip() for each in (fence_of, closes, heading_of)
        ),
        "paragraph_end": f'r"{PARAGRAPH_END.pattern}"',
        "line_end": f'r"{LINE_END.pattern}"',
        "pooling": pooling,
        "pooling_script": POOLINGS[pooling].script if bert else "",
        "needs_idf": bert and POOLINGS[pooling].needs == "idf",
        "own_pooling": own,
        "st": (dense and not bert) or topics,
        "bert": bert,
        "dense": dense,
        "words": retriever.uses_bm25,
        "retriever": configuration.retriever,
        "native": configuration.retriever in LIBRARIES[to].native and not parent_tokens,
        "constant": RRF_CONSTANT,
        "weight": DENSE_WEIGHT,
        "diversity": MMR_DIVERSITY,
        "mmr_order": inspect.getsource(mmr_order).replace(": Array", ": np.ndarray").rstrip(),
        "rerank_depth": RERANK_DEPTH,
        **{f"{kind}_model": beside_name(kind, retriever, model) for kind in ("sparse", "multi_vector")},
    }


def beside_name(kind: str, retriever: Retriever, model: Model) -> str:
    """Return as Python the name of a second model, empty where the retriever needs none."""
    return repr_of(public_name(second_model(kind, model.as_encoder).name)) if retriever.needs == kind else ""


def facts_of(model: Model) -> tuple[str, int | None, bool]:
    """Return a model's own pooling, its token limit, and whether its vectors have length 1."""
    if (encoder := model.as_encoder) is not None:
        return encoder.pooling, encoder.max_tokens, encoder.head.normalize
    if isinstance(model, LibraryModel):
        return MODEL_DEFAULT, model.most_tokens, True
    raise InputError(
        f"{model_name(model.name)} is behind a server, which a script cannot load: export another model"
    )


def public_name(model: str) -> str:
    """Return how other libraries find a model: by its id on the Hub, or the full path of its folder."""
    if model in KNOWN_MODELS:
        return KNOWN_MODELS[model].hub_id or str(cache_folder() / model)
    folder = local_path(model)
    return str(folder.resolve()) if folder is not None and folder.is_dir() else model


def repr_of(text: str) -> str:
    """Return a string as Python, in double quotes where it can be."""
    return repr(text) if '"' in text or "\\" in repr(text) else f'"{text}"'


def source_of(module: ModuleType) -> str:
    """Return the source of a module without its docstring and imports."""
    source = inspect.getsource(module)
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(source.splitlines()[(imports[-1].end_lineno or 0) :]).strip()


def abbreviations_source() -> str:
    """Return the source of the abbreviations, with the words of their table in it."""
    lines = [(row["table"], line) for row in abbreviations.ROWS for line in wrap(row["words"], WIDTH)]
    words = "\n".join(map(": ".join, lines))
    cells = '{"table": line.partition(": ")[0], "words": line.partition(": ")[2]}'
    rows = f'ROWS = [\n    {cells}\n    for line in """\\\n{words}\n""".splitlines()\n]'
    return source_of(abbreviations).replace('ROWS = rows_of("abbreviations.csv")', rows)


def rendered(name: str, fields: dict[str, Any]) -> str:
    """Fill a template."""
    return environment().get_template(name).render(fields)


@cache
def environment() -> "Environment":
    """Return the templates, each compiled once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to load

    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.globals["refuse"] = refuse
    return templates


def refuse(setting: str, name: str, place: str) -> None:
    """Raise `InputError` for a setting that the templates have no code for."""
    raise InputError(f"{setting} {name!r} cannot be exported yet, for lack of {place}: choose another")


def left_out(configuration: Configuration, model: Model) -> tuple[str, ...]:
    """Return in words the settings that a script does not carry over."""
    found: Sequence[tuple[bool, str]] = (
        (
            RETRIEVERS[configuration.retriever].pairs > 0,
            f"{RETRIEVERS[configuration.retriever].label}: the script has only the hybrid search, without "
            "the model that reorders its best passages",
        ),
        (
            configuration.splitter == "markdown" or configuration.context != "off",
            "headings of files other than Markdown, those that lines below them underline, and titles in "
            "front matter: the script takes lines with # for headings",
        ),
        (
            configuration.splitter == "semantic"
            and configuration.max_tokens not in (None, facts_of(model)[1]),
            "the model's own token limit for single sentences, which are compared under the limit of chunks",
        ),
        (
            configuration.precision != "float32",
            f"the precision {configuration.precision}: the script embeds in float32, which finds nearly the "
            "same",
        ),
        (
            (encoder := model.as_encoder) is not None
            and not encoder.head.include_prompt
            and bool(model.prompts.in_search)
            and configuration.pooling not in (MODEL_DEFAULT, model.pooling),
            "prompts kept out of the pooling: the script pools their tokens, too",
        ),
    )
    return tuple(words for is_left_out, words in found if is_left_out)
