"""Documents to search and to ask, in three lines of Python.

It loads, reads and embeds by the functions of the command line, and says so on standard error as that does.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from .cli.loading import load_decoder, load_reader, load_searched
from .cli.options import SearchedOptions
from .cli.printing import quiet, say
from .documents.document import Chunk, Document
from .documents.loaders import check_corpus
from .errors import InputError
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
from .retrieval.embedding_model import Model
from .retrieval.index import Hit
from .retrieval.index import Index as ChunkIndex
from .retrieval.relevance import NullScores, embed_unrelated, null_scores_by
from .retrieval.stored.index_folder import IndexSettings, StoredIndex, locked, save_index
from .retrieval.stored.index_rows import IndexedFile
from .retrieval.stored.index_update import with_search, with_words
from .settings import SETTINGS, Stage, answer_settings, named_settings
from .weights.catalog import DEFAULT_DECODER

INDEXED: tuple[Stage, ...] = ("cut", "embedding")  # what an index is made by
ASKED: tuple[Stage, ...] = ("search", "answer")  # what each question may have of its own


@dataclass(frozen=True)
class Index:
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

    model: Model = field(repr=False)
    chunks: ChunkIndex
    options: SearchedOptions = field(repr=False)
    values: dict[str, Any] = field(repr=False)
    failures: Sequence[dict[str, str]] = ()
    show_progress: bool = field(default=True, repr=False)
    _unrelated: Array | None = field(default=None, repr=False)
    _writers: dict[str, Writer] = field(default_factory=dict, repr=False)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        *,
        show_progress: bool = True,
        reranker: str = "",
        sparse: str = "",
        multi_vector: str = "",
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
        reranker, sparse, multi_vector
            A cross-encoder, a learned sparse model and a late-interaction model for the retrievers that need
            one: a known name, a folder or a Hugging Face id.
        cache
            A file that keeps embeddings from run to run (SQLite).
        settings
            Those of the page “Settings” by their names, such as ``splitter="recursive"``,
            ``retriever="hybrid"``, ``chunk_tokens=128`` (or its label, ``chunk_size=128``). The rest have the
            app's defaults.

        Raises
        ------
        InputError
            There is no such setting or value; it is raised before anything is read.
        DocumentError
            The folder does not exist, or no file of it can be read.
        ModelUnavailableError
            The model is not on this machine and cannot be downloaded.
        """
        given = named_settings(settings, (*INDEXED, *ASKED))
        made_by = {key: value for key, value in given.items() if SETTINGS[key].stage in INDEXED}
        kept = None if cache is None else Path(cache)
        options = SearchedOptions(corpus=Path(folder), cache=kept, **made_by)
        options = replace(options, reranker=reranker, sparse=sparse, multi_vector=multi_vector)
        return cls._of(options, given, show_progress)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        show_progress: bool = True,
        reranker: str = "",
        sparse: str = "",
        multi_vector: str = "",
        **settings: Any,
    ) -> "Index":
        """Read an index that `save`, or the command `index`, wrote; only the model is loaded.

        Parameters
        ----------
        folder
            The folder of the index, which knows how its chunks were made.
        show_progress, reranker, sparse, multi_vector
            As in `from_folder`.
        settings
            Those of searches and answers.

        Raises
        ------
        DocumentError
            The folder holds no index, or a damaged one.
        InputError
            There is no such setting, or the model of that name is another one now.
        """
        given = named_settings(settings, ASKED)
        options = SearchedOptions(
            index=Path(folder), reranker=reranker, sparse=sparse, multi_vector=multi_vector
        )
        return cls._of(options, given, show_progress)

    @classmethod
    def _of(cls, options: SearchedOptions, given: dict[str, Any], show_progress: bool) -> "Index":
        values = {key: given.get(key, each.default) for key, each in SETTINGS.items() if each.stage in ASKED}
        answer_settings(values)  # which raises for thresholds and the like
        if options.index is None:
            check_corpus(options.corpus)
        with quiet(not show_progress):
            model, chunks, unrelated, about = load_searched(options, values["retriever"])
        return cls(model, chunks, options, values, about["failures"], show_progress, unrelated)

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
        options, index = self.options, self.chunks
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
        own = defaultdict[str, list[Chunk]](list)
        for chunk in index.chunks:
            own[chunk.document].append(chunk)
        files = tuple(
            IndexedFile(
                name,
                sha256(each.text.encode("utf-8", "surrogatepass")).hexdigest(),
                (each,),
                tuple(own[name]),
            )
            for name, each in index.documents.items()
        )
        corpus = str(options.corpus.resolve())
        with quiet(not self.show_progress):
            searched, choice = with_search(index, settings, say)
            searched = with_words(searched, files, None, self.model, say)
        with locked(Path(folder)):
            save_index(
                Path(folder), StoredIndex(settings, corpus, files, searched, self._unrelated_vectors, choice)
            )

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
        values = settings if k is None else settings | {"k": k}
        found = retrieve(question, self.chunks, self.model, self._settings(values).search, self._null_scores)
        return list(found.hits)

    def ask(
        self,
        question: str,
        *,
        after: Sequence[Turn] = (),
        decoder: str = DEFAULT_DECODER,
        **settings: Any,
    ) -> Answer:
        """Answer a question by words and sentences of the documents, or refuse to.

        Parameters
        ----------
        question
            The question.
        after
            Earlier questions with their answers, which this one may follow on.
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
        found = self._settings(settings)
        writer = self._writer(decoder) if found.write else None
        own, turns = follow_up(question, after, self.chunks, self.model, self._null_scores)
        return ask(
            own, self.chunks, self.model, writer, found, self._null_scores, turns=turns, reader=self._reader
        )

    def _settings(self, settings: dict[str, Any]) -> AnswerSettings:
        """Return the settings of a question."""
        values = self.values | named_settings(settings, ASKED)
        return answer_settings(values, sampling_of({name: values[name] for name in RULES}, values["seed"]))

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
