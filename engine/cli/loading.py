"""Models, documents and indexes of the commands, with a line for each step that takes long."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.document import Document, Failure, Loaded
from ..documents.loaders import all_documents, left_out, read_corpus, unique
from ..documents.truncation import limit_warning
from ..errors import InputError, ModelFileError, ModelUnavailableError
from ..evaluation.embedding_server import SERVER_KEY, is_server, server_at
from ..evaluation.library_model import LibraryModel, load_model
from ..generation.decoder import Decoder
from ..generation.listed_decoders import weight_bytes
from ..generation.settings import AnswerSettings
from ..generation.writer import Writer
from ..layers.tracing import Array
from ..models.decoders import forward_module
from ..models.embedding_head import similarity_note
from ..models.encoder import Encoder
from ..models.fingerprint import arrays_in
from ..models.precision import AUTO, chosen_precision, is_slower
from ..models.reader import Reader, shipped_reader
from ..models.second_models import SECOND_MODELS, SecondModel
from ..progress import progress, say
from ..retrieval.embedding_model import Model, cut_documents
from ..retrieval.index import Index, build_index
from ..retrieval.language_fit import language_note
from ..retrieval.relevance import NullScores, null_scores_by, null_scores_of
from ..retrieval.retrievers import RETRIEVERS, check_retriever, option_of, second_model
from ..retrieval.stored.index_folder import StoredIndex, as_indexed, open_index
from ..retrieval.vector_cache import VectorCache
from ..retrieval.vector_files import read_index
from ..settings import SETTINGS
from ..weights.catalog import KNOWN_MODELS
from ..weights.fetch import is_cached, model_path
from ..wording import counted, model_name, readable_bytes, readable_number, some_of
from .options import AnsweringOptions, EmbeddingOptions, SearchedOptions, SecondModelOptions
from .printing import download_progress, page_progress

OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_ADDRESSES = ("https://api.openai.com/", "https://api.openai.com#")
MAX_NAMES_SHOWN = 20  # names and files in messages
MAX_NAMED = 1000  # files that are left out


def require_accepted(name: str, is_accepted: bool = False) -> None:
    """Raise `InputError` for a model that has terms of use, is not on this machine, and was not accepted."""
    model = KNOWN_MODELS.get(name)
    if model is not None and model.licence.terms and not is_accepted and not is_cached(name):
        raise InputError(
            f"{name} is under the {model.licence.name} licence: read {model.licence.url}, and accept it by "
            f"`download {name} --accept-licence`"
        )


def load_embedding_model(name: str) -> Model:
    """Load a model, or connect to its server; report which tokenizer cuts its chunks."""
    if is_server(name):
        server_at(name)  # before it is printed: an address with a password is refused
    say(f"Loading {name}")
    with download_progress(name) as show:
        model = load_model(name, show, server_key(name))
    if model.as_encoder is not None:
        say_encoder(model.as_encoder)
    elif isinstance(model, LibraryModel):
        say(f"The engine does not run it: {model.reason}")
        is_own = model.tokenizer.path.is_relative_to(model_path(name))
        whose = "its own" if is_own else "the default encoder's"
        say(f"{name} is run by sentence-transformers, its chunks are cut by {whose} tokenizer")
    else:
        say(f"{name} is on a server, and its chunks are cut by the default encoder's tokenizer")
    if note := similarity_note(model_name(name), model.similarity_fn_name):
        say(f"note: {note}")
    return model


def say_encoder(encoder: Encoder) -> None:
    """Say in a line what an encoder is: family, parameters, tokens, length of vectors, memory."""
    arrays = [*arrays_in(encoder.weights)]
    n_parameters, n_bytes = (sum(getattr(each, key) for each in arrays) for key in ("size", "nbytes"))
    say(
        f"{model_name(encoder.name)}: {encoder.model_type}, {readable_number(n_parameters)} parameters, "
        f"{encoder.max_tokens:,} tokens, {encoder.width():,} dimensions, {readable_bytes(n_bytes)}"
    )


def server_key(address: str) -> str:
    """Return the key for servers in the environment, "" for none; OpenAI's goes only to OpenAI."""
    of_openai = os.environ.get(OPENAI_KEY, "") if address.startswith(OPENAI_ADDRESSES) else ""
    return os.environ.get(SERVER_KEY, "") or of_openai


def say_if_slower(*precisions: str) -> None:
    """Warn of precisions that take longer than float32 on this processor."""
    for name in precisions:
        if name != AUTO and is_slower(chosen_precision(name)):
            say(f"{name} takes longer than float32 on this processor, which has no fast products of it")


def load_second_model(kind: str, source: str) -> SecondModel:
    """Load a model of `SECOND_MODELS` by its known name, folder or Hub id."""
    say(f"Loading {source}")
    each = SECOND_MODELS[kind]
    with download_progress(source) as show:
        model: SecondModel = each.load(source, on_progress=show)
    sizes = {id(array): array.size for array in arrays_in(model.weights)}  # a shared table once
    n_parameters = sum(sizes.values())
    say(
        f"{model_name(source)}: {each.label}, {readable_number(n_parameters)} parameters, "
        f"{model.max_tokens:,} tokens"
    )
    return model


def load_encoder(name: str, dtype: type[np.floating] = np.float32) -> Encoder:
    """Load the encoder."""
    say(f"Loading {name}")
    with download_progress(name) as show:
        encoder = Encoder.load(name, dtype, on_progress=show)
    say_encoder(encoder)
    return encoder


def load_decoder(name: str) -> Decoder:
    """Load the decoder, and say what it is."""
    require_accepted(name)
    say(f"Loading {name}")
    with download_progress(name) as show:
        decoder = Decoder.load(name, on_progress=show)
    family = type(decoder.config).__name__.removesuffix("Config")
    n_parameters = forward_module(decoder.config).parameter_count(decoder.config)
    say(
        f"{model_name(name)}: {family}, {readable_number(n_parameters)} parameters, "
        f"{decoder.max_tokens:,} tokens, {readable_bytes(weight_bytes(decoder))}"
    )
    return decoder


def load_writer(answering: AnsweringOptions, settings: AnswerSettings) -> Writer | None:
    """Load the decoder that writes texts with these settings; None where none is asked for."""
    if not settings.write:
        return None
    writer = Writer(load_decoder(answering.decoder))
    writer.check(settings)
    return writer


def load_reader(encoder: Model) -> Reader | None:
    """Load the reader; without it answers are quotes, which is said in one line."""
    try:
        return shipped_reader(encoder.as_encoder)
    except (ModelFileError, ModelUnavailableError) as error:
        say(f"warning: no reader, so quotes only ({error})")
        return None


def check_second_models(
    retrievers: Sequence[str], options: SecondModelOptions, required: bool = True
) -> None:
    """Raise `InputError` for an unknown retriever, one without its model, or a model that none uses."""
    for name in retrievers:
        check_retriever(name)
        if required:
            check_has_model(name, options)
    for kind in SECOND_MODELS:
        source, users = options.named.get(kind), [one for one in retrievers if RETRIEVERS[one].needs == kind]
        if source and not users:
            wanted = ", ".join(name for name, one in RETRIEVERS.items() if one.needs == kind)
            raise InputError(
                f"{option_of(kind)} {source} is given, and retriever {', '.join(retrievers)} does not use "
                f"it: add --retriever {wanted}, or leave it out"
            )


def check_has_model(retriever: str, options: SecondModelOptions) -> None:
    """Raise `InputError` for a retriever whose second model is neither given nor known."""
    kind = RETRIEVERS[retriever].needs
    if kind and not (options.named.get(kind) or SECOND_MODELS[kind].default):
        raise InputError(
            f"retriever {retriever} needs a {SECOND_MODELS[kind].label}: give its folder or Hugging Face id "
            f"by {option_of(kind)}"
        )


def second_models(retrievers: Sequence[str], options: SecondModelOptions) -> dict[str, str]:
    """Return the models that are named, and the default ones that retrievers need, by kind."""
    kinds = {RETRIEVERS[name].needs for name in retrievers if name in RETRIEVERS}
    defaults = {kind: each.default for kind, each in SECOND_MODELS.items() if kind in kinds and each.default}
    return defaults | options.named


def load_search_model(options: EmbeddingOptions, second: Mapping[str, str] | None = None) -> Model:
    """Load the model of a search with its ``second`` ones, by kind, its prompts, and the precision of all."""
    say_if_slower(options.precision)
    model = load_embedding_model(options.model)
    for kind, source in (second or {}).items():
        if (encoder := model.as_encoder) is None:
            raise InputError(
                f"{options.model} cannot be used with a {SECOND_MODELS[kind].label}: give an encoder of the "
                "engine's families"
            )
        model = replace(encoder, **{kind: load_second_model(kind, source)})  # type: ignore[arg-type]
    model.text_limit(options.max_tokens)  # which raises for one that the model does not have
    return model.with_prompts(options.prompts).with_precision(options.precision)


def load_searched(
    options: SearchedOptions, retriever: str
) -> tuple[Model, Index, Array | None, dict[str, Any]]:
    """Load the models of a search; index the corpus, or read the index or the vectors that are given.

    A stored index comes with the vectors of unrelated questions, else None; last is `reading_json`.
    """
    wanted = options.filter
    unrelated: Array | None
    if options.index is not None:
        say(f"Reading {options.index}")
        stored = open_index(options.index)
        check_agrees(options, stored)
        settings = stored.settings
        sparse = options.sparse or (settings.sparse if RETRIEVERS[retriever].uses_sparse else "")
        model = load_search_model(
            replace(options, model=settings.model, prompts=settings.prompts, precision=settings.precision),
            second_models([retriever], replace(options, sparse=sparse)),
        )
        model = as_indexed(stored, model, options.index)
        index, loaded, unrelated = stored.index, Loaded(stored.noted, stored.failures), stored.unrelated
        documents: Iterable[Document] = index.documents.values()
        warn_of(loaded.documents, loaded.failures)
    else:
        model, unrelated = load_search_model(options, second_models([retriever], options)), None
        index, loaded = index_searched(options, model)
        documents = loaded.documents
    about = reading_json(loaded.documents, loaded.failures)
    if options.document:
        index = index.only(options.document)
    if not wanted:
        expand_chunks(index, model, retriever)
        return model, index, unrelated, about
    if options.vectors is not None:
        raise InputError("given vectors come without tags and dates: leave out --tag, --since and --until")
    of = options.document
    documents = tuple(document for document in documents if not of or document.name in of)
    names = wanted.names(documents)
    say(f"Searching {len(names):,} of {counted(len(documents), 'document')}")
    index = index.only(names)
    expand_chunks(index, model, retriever)
    return model, index, unrelated, about


def expand_chunks(index: Index, model: Model, retriever: str) -> None:
    """Compute the inverted index of a learned sparse model, with its progress, if the retriever uses one."""
    if RETRIEVERS[retriever].uses_sparse and index.expanded is None:
        with progress(f"Expanding {counted(len(index.chunks), 'chunk')}") as show:
            index.words_of(second_model("sparse", model.as_encoder), show)


def index_searched(options: SearchedOptions, model: Model) -> tuple[Index, Loaded]:
    """Index the corpus, or read the vectors that are given, which come without documents."""
    if options.vectors is None:
        say(f"Reading {options.corpus}")
        loaded = readable(options.corpus)
        picked(loaded.documents, options.document or ())  # which raises for names that no document has
        return index_documents(loaded.documents, model, options, options.parent_tokens), loaded
    if options.parent_tokens:
        raise InputError("given chunks have no larger ones around them: leave out --parent-tokens")
    cutting = [key for key, setting in SETTINGS.items() if setting.stage == "cut"]
    for each in fields(SearchedOptions):
        value = getattr(options, each.name)
        if each.name in ("corpus", "max_tokens", *cutting) and value != each.default:
            option = f"--{each.name.replace('_', '-')}"
            raise InputError(
                f"{option} {value} is given, and the chunks with vectors are as they are: leave out "
                f"{option}, or --vectors"
            )
    say(f"Reading {options.vectors}")
    return read_index(options.vectors, model, options.pooling), Loaded()


def check_agrees(options: SearchedOptions, stored: StoredIndex) -> None:
    """Raise `InputError` for an option that contradicts the settings of the index."""
    known = stored.settings.options
    for each in fields(SearchedOptions):
        value = getattr(options, each.name)
        if (
            each.name in ("index", "document", "tag", "since", "until", *SECOND_MODELS)
            or value == each.default
        ):
            continue
        if (chosen_precision(value) if each.name == "precision" else value) != known.get(each.name):
            option = f"--{each.name.replace('_', '-')}"
            made = f" (it was made with {known[each.name]})" if each.name in known else ""
            raise InputError(
                f"{option} {value} is given, which is up to the index{made}: leave out {option}, or --index"
            )


def read_documents(corpus: Path) -> list[Document]:
    """Read a corpus; warn of what cannot be read."""
    say(f"Reading {corpus}")
    return list(readable(corpus).documents)


def readable(corpus: Path) -> Loaded:
    """Read a corpus, with the files of other formats among the failures; warn of these, and print notes."""
    with page_progress() as on_page:
        loaded = read_corpus(corpus, on_page)
    documents = tuple(unique(loaded.documents or all_documents(loaded)))  # which raises the first failure
    failures = left_out(loaded)
    warn_of(documents, failures)
    return Loaded(documents, failures)


def picked(documents: Sequence[Document], names: Sequence[str]) -> list[Document]:
    """Return the documents with these names, or all if no name is given."""
    known = [document.name for document in documents]
    for name in names:
        if name not in known:
            raise InputError(f"there is no document {name!r}: there are {some_of(known, MAX_NAMES_SHOWN)}")
    return [document for document in documents if not names or document.name in names]


def warn_of(documents: Sequence[Document], failures: Sequence[Failure]) -> None:
    """Name every file that is left out, the first with the reasons, and print notes; of many the first."""
    for failure in failures[:MAX_NAMES_SHOWN]:
        say(f"warning: left out: {failure.reason}")
    if more := [failure.name for failure in failures[MAX_NAMES_SHOWN:]]:
        say(f"warning: left out: {counted(len(more), 'other file')}: {some_of(more, MAX_NAMED)}")
    notes = [f"note: {document.name}: {note}" for document in documents for note in document.notes]
    for line in notes[:MAX_NAMES_SHOWN]:
        say(line)
    if len(notes) > MAX_NAMES_SHOWN:
        say(f"note: {len(notes) - MAX_NAMES_SHOWN:,} more, which --json gives")


def reading_json(documents: Sequence[Document], failures: Sequence[Failure]) -> dict[str, Any]:
    """Return the notes of documents by their names, and the files that were not read, with the reasons."""
    notes = {document.name: list(document.notes) for document in documents if document.notes}
    return {"notes": notes, "failures": [asdict(each) for each in failures]}


def say_languages(question: str, index: Index, model: Model) -> str:
    """Warn of languages of the documents and the question that the model was not trained on."""
    if note := language_note(index.languages.values(), model, question):
        say(f"warning: {note}")
    return note


def index_documents(
    documents: Sequence[Document], encoder: Model, options: EmbeddingOptions, parent_tokens: int = 0
) -> Index:
    """Split and embed documents; warn of chunks beyond the model's token limit."""
    say(f"Splitting {counted(len(documents), 'document')}")
    pieces = cut_documents(documents, encoder, options.splitting, parent_tokens)
    chunks = [chunk for cut in pieces for chunk in cut]
    if warning := limit_warning(chunks, encoder.text_limit(options.max_tokens)):
        say(f"warning: {warning}")
    cache = None if options.cache is None else VectorCache(options.cache)
    with progress(f"Embedding {counted(len(chunks), 'chunk')}") as show:
        index = build_index(chunks, encoder, options.pooling, options.max_tokens, show, cache, documents)
    if cache is not None and cache.notice:
        say(f"warning: {cache.notice}")
    return index


def null_scores_in(index: Index, encoder: Model, unrelated: Array | None = None) -> NullScores:
    """Score unrelated questions in the index, by their vectors if these are given."""
    if unrelated is not None:
        return null_scores_by(index, unrelated)
    say("Scoring unrelated questions, to judge relevance")
    return null_scores_of(index, encoder)
