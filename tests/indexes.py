"""Indexes of small documents, with their texts."""

import json

from engine.documents.document import Chunk, Document
from engine.documents.splitters import DEFAULT_SPLITTING, split
from engine.retrieval.index import build_index
from engine.retrieval.stored.index_folder import LOCK, MANIFEST, digest_of

DOCUMENTS = {
    "tower.md": "The Vardholm tower was finished in 1891 by forty masons.",
    "bread.md": "Knead the dough for ten minutes, then let it rest overnight.",
    "bees.md": "The keeper of the lighthouse kept bees and sold the honey.",
}
QUESTION = "When was the Vardholm tower finished?"


def sign(folder, manifest):
    """Write the manifest of an index folder with its digest."""
    (folder / MANIFEST).write_text(json.dumps({**manifest, "sha256": digest_of(manifest)}))


def names_in(folder):
    """What is in an index folder beside the files of any state."""
    return {path.name for path in folder.iterdir()} - {LOCK, MANIFEST}


def whole_chunks(texts, n_tokens=20):
    """Return a document for each text, by its number, and the chunk that is all of it."""
    documents = [Document(f"{number}.md", text) for number, text in enumerate(texts)]
    return documents, [Chunk(each.name, 0, len(each.text), each.text, n_tokens) for each in documents]


def index_of_texts(texts, encoder, **settings):
    """Index texts, each as one chunk."""
    documents, chunks = whole_chunks(texts)
    return build_index(chunks, encoder, documents=documents, **settings)


def index_of_documents(texts, encoder, splitting=DEFAULT_SPLITTING, **settings):
    """Cut and index documents, given by name."""
    documents = [Document(name, text) for name, text in texts.items()]
    chunks = [chunk for each in documents for chunk in split(each, encoder.tokenizer, splitting)]
    return build_index(chunks, encoder, documents=documents, **settings)
