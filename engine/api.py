"""Documents to search and to ask, in three lines of Python.

It loads, reads and embeds by the functions of the command line, and says so on standard error as that does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from .cli.loading import check_has_model, load_decoder, load_reader, load_searched, load_second_model
from .cli.options import SearchedOptions
from .documents.document import Document, Failure
from .documents.loaders import corpus_files
from .errors import InputError, MadeByMethod, check_question
from .generation.answer import Answer
from .generation.answering import ask
from .generation.conversation import Turn, follow_up
from .generation.passage_search import retrieve
from .generation.sampling import RULES, sampling_of
from .generation.settings import AnswerSettings
from .generation.writer import Writer
from .layers.tracing import Array
from .models.precision import chosen_precision
from .models.reader import Reader
from .models.second_models import SECOND_MODELS
from .progress import quiet, say
from .retrieval.embedding_model import Model
from .retrieval.index import Hit
from .retrieval.index import Index as ChunkIndex
from .retrieval.relevance import NullScores, embed_unrelated, null_scores_by
from .retrieval.retrievers import RETRIEVERS
from .retrieval.stored.index_folder import IndexSettings, StoredIndex, locked, save_index
from .retrieval.stored.index_update import files_of, with_search, with_words
from .settings import SETTINGS, Stage, answer_settings, named_settings
from .weights.catalog import DEFAULT_DECODER
from .wording import counted, model_name

INDEXED: tuple[Stage, ...] = ("cut", "embedding")  # what an index is made by
ASKED: tuple[Stage, ...] = ("search", "answer")  # what each question may have of its own


@dataclass(frozen=True, repr=False)
class Index(MadeByMethod):
    """Documents, cut and embedded, to search and to ask.

    `Index.from_folder` and `Index.load` make one.

    Attributes
    ----------
    model
        The model that embeds.
    chunks
        The chunks with their vectors.
    options
        What they were made of, and how.
    values
        The settings of searches and answers, where a question does not say otherwise.
    failures
        The files that were not read, with the reasons.
    """

    MAKER: ClassVar[str] = "from_folder"
    model: Model
    chunks: ChunkIndex
    options: SearchedOptions
    values: dict[str, Any]
    failures: Sequence[dict[str, str]] = ()
    show_progress: bool = True
    _unrelated: Array | None = None
    _writers: dict[str, Writer] = field(default_factory=dict)
    _beside: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        *,
        show_progress: bool = True,
        cache: str | Path | None = None,
        **settings: Any,
    ) -> "Index":
        """Read, cut and embed the documents of a folder, or one file.

        Parameters
        ----------
        folder
            The folder, whose subfolders are read, too; or a file.
        show_progress
            Whether standard error shows what is done; warnings are shown in any case.
        cache
            A file that keeps embeddings from run to run (SQLite).
        settings
            Those of the page “Settings” by their names, such as ``splitter="recursive"``,
            ``retriever="hybrid"``, ``chunk_tokens=128`` (or its label, ``chunk_size=128``). The rest have the
            app's defaults. And ``reranker``, ``sparse`` and ``multi_vector``: a cross-encoder, a learned
            sparse model and a late-interaction model for the retrievers that need one, each a known name, a
            folder or a Hugging Face id.

        Raises
        ------
        InputError
            There is no such setting or value; it is raised before anything is read.
        DocumentError
            The folder does not exist, or no file of it can be read.
        ModelUnavailableError
            The model is not on this machine and cannot be downloaded.
        """
        kept = None if cache is None else path_of(cache)
        return cls._of(settings, (*INDEXED, *ASKED), show_progress, corpus=path_of(folder), cache=kept)

    @classmethod
    def load(cls, folder: str | Path, *, show_progress: bool = True, **settings: Any) -> "Index":
        """Read an index that `save`, or the command `index`, wrote; only the model is loaded.

        Parameters
        ----------
        folder
            The folder of the index, which knows how its chunks were made.
        show_progress
            As in `from_folder`.
        settings
            Those of searches and answers, and the models that `from_folder` takes.

        Raises
        ------
        DocumentError
            The folder holds no index, or a damaged one.
        InputError
            There is no such setting, or the model of that name is another one now.
        """
        return cls._of(settings, ASKED, show_progress, index=path_of(folder))

    @classmethod
    def _of(
        cls, settings: dict[str, Any], stages: Sequence[Stage], show_progress: bool, **paths: Path | None
    ) -> "Index":
        second = {kind: settings.pop(kind) for kind in SECOND_MODELS if kind in settings}
        given = named_settings(settings, stages)
        values = {key: given.get(key, each.default) for key, each in SETTINGS.items() if each.stage in ASKED}
        made_by = {key: value for key, value in given.items() if SETTINGS[key].stage in INDEXED}
        options = SearchedOptions(**paths, **second, **made_by)  # type: ignore[arg-type]
        checked_settings(values)
        check_has_model(values["retriever"], options)
        if options.index is None:
            corpus_files(options.corpus)
        with quiet(not show_progress):
            model, chunks, unrelated, about = load_searched(options, values["retriever"])
        return cls(model, chunks, options, values, about["failures"], show_progress, unrelated)

    def __repr__(self) -> str:
        sizes = (len(self.chunks.documents), "document"), (len(self.chunks.chunks), "chunk")
        return f"Index({', '.join(counted(*size) for size in sizes)}, {model_name(self.model.name)})"

    def save(self, folder: str | Path) -> None:
        """Write the index to a folder, in place of one that is there.

        `load`, and `search` and `ask` on the command line with ``--index``, read it.

        Raises
        ------
        DocumentError
            The folder holds something else, or cannot be written.
        InputError
            The index was loaded, so a folder holds it already.
        """
        folder, options, index = path_of(folder), self.options, self.chunks
        if options.index is not None:
            raise InputError(f"the index stands in {options.index} already: copy that folder")
        precision = chosen_precision(options.precision)
        settings = IndexSettings(
            options.model,
            options.splitting,
            options.parent_tokens,
            options.pooling,
            options.prompts,
            precision,
            options.max_tokens,
            self.values["index_kind"],
            sparse=options.sparse,
        )
        files, corpus = files_of(index), str(options.corpus.resolve())
        with quiet(not self.show_progress):
            searched, choice = with_search(index, settings, say)
            searched = with_words(searched, files, None, self.model, say)
        unrelated, failures = self._unrelated_vectors, tuple(Failure(**each) for each in self.failures)
        stored = StoredIndex(settings, corpus, files, searched, unrelated, choice, failures=failures)
        with locked(folder):
            save_index(folder, stored)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents that were read."""
        return tuple(self.chunks.documents.values())

    def search(self, question: str, k: int | None = None, **settings: Any) -> list[Hit]:
        """Find the best passages for a question, best first.

        Parameters
        ----------
        question
            What to look for.
        k
            How many passages.
        settings
            Of this search, such as ``retriever="bm25"``.

        Returns
        -------
        list of Hit
            Each with its ``document``, ``text`` and ``score``, the cosine of its vector and the question's.
        """
        check_question(question)
        found = self._settings(settings if k is None else settings | {"k": k}, ("search",)).search
        model = self._model_with(found.retriever)
        return list(retrieve(question, self.chunks, model, found, self._null_scores).hits)

    def ask(
        self, question: str, *, after: Sequence[Answer] = (), decoder: str = DEFAULT_DECODER, **settings: Any
    ) -> Answer:
        """Answer a question by words and sentences of the documents, or refuse to.

        Parameters
        ----------
        question
            The question.
        after
            Earlier answers, oldest first, which this question may follow on.
        decoder
            The language model, with ``write=True``: a known name, a file, a folder or a Hugging Face id.
        settings
            Of this answer, such as ``write=True``, which has the language model add a text, and ``k=8``.

        Returns
        -------
        Answer
            As text, the words found. ``answer.reading`` has their span, ``document``, ``start`` and ``end``,
            or is None; ``answer.quotes`` are the sentences; ``answer.judged`` says how sure they are.
        """
        check_question(question)
        if not all(isinstance(each, Answer) for each in after):
            raise InputError("after has something else than answers: give a list of what `ask` returned")
        found = self._settings(settings, ASKED)
        writer = self._writer(decoder) if found.write else None
        model = self._model_with(found.search.retriever)
        before = [Turn(each.question, each.shown_text) for each in after]
        own, turns = follow_up(question, before, self.chunks, model, self._null_scores)
        return ask(
            own, self.chunks, model, writer, found, self._null_scores, turns=turns, reader=self._reader
        )

    def _settings(self, settings: dict[str, Any], stages: Sequence[Stage]) -> AnswerSettings:
        """Return the settings of a question."""
        return checked_settings(self.values | named_settings(settings, stages))

    def _model_with(self, retriever: str) -> Model:
        """Return the model, with the second one that a retriever needs if there is a default."""
        kind, encoder = RETRIEVERS[retriever].needs, self.model.as_encoder
        if encoder is None or not kind or getattr(encoder, kind) or not SECOND_MODELS[kind].default:
            return self.model
        if kind not in self._beside:
            with quiet(not self.show_progress):
                self._beside[kind] = load_second_model(kind, SECOND_MODELS[kind].default)
        return replace(encoder, **{kind: self._beside[kind]})

    @cached_property
    def _unrelated_vectors(self) -> Array:
        return embed_unrelated(self.chunks, self.model) if self._unrelated is None else self._unrelated

    @cached_property
    def _null_scores(self) -> NullScores:
        return null_scores_by(self.chunks, self._unrelated_vectors)

    @cached_property
    def _reader(self) -> Reader | None:
        return load_reader(self.model)

    def _writer(self, name: str) -> Writer:
        if name not in self._writers:
            with quiet(not self.show_progress):
                self._writers[name] = Writer(load_decoder(name))
        return self._writers[name]


def path_of(path: str | Path) -> Path:
    """Return a path; raise `InputError` for something else, and for an empty one."""
    if not isinstance(path, str | Path) or not str(path):
        raise InputError(f"{path!r} is no path: give that of a file or a folder")
    return Path(path).expanduser()


def checked_settings(values: dict[str, Any]) -> AnswerSettings:
    """Return the settings of a question from values by key."""
    return answer_settings(values, sampling_of({name: values[name] for name in RULES}, values["seed"]))
