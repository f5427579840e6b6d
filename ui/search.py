"""What a page searches, and how."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.documents.document import Document
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import Index
from ui.chunk_settings import Cut, cut_values
from ui.corpus import index_documents, warm
from ui.models import second_names


@dataclass(frozen=True)
class Search:
    """Documents, and how they are searched: the first ``k`` chunks count as found."""

    documents: list[Document]
    model: Model
    cut: Cut
    pooling: str
    retriever: str
    k: int

    @cached_property
    def index(self) -> Index:
        """The index of the documents, with that of their words if the retriever uses it."""
        index = index_documents(self.documents, self.model, self.cut, self.pooling)
        warm(index, self.retriever, self.model)
        return index

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the widgets that give this search, by their keys."""
        own = {"pooling": self.pooling, "retriever": self.retriever, "k": self.k}
        return cut_values(self.cut) | own

    @property
    def embedded(self) -> tuple[object, ...]:
        """What the vectors depend on, as a key of caches."""
        return self.documents, self.cut, self.pooling

    @property
    def ranked(self) -> tuple[object, ...]:
        """What the ranks depend on, as a key of caches; each second model ranks in its own way."""
        return *self.embedded, self.retriever, *second_names()

    def document(self, name: str) -> Document:
        """Return the document of a name."""
        return next(document for document in self.documents if document.name == name)
