from dataclasses import replace

import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.inspection.diagnosis.counterfactual import counterfactuals, tail_vectors
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import build_index, index_vectors

DOUGH = "Knead the dough for ten minutes, then let it rest overnight under a damp cloth. "
TOWER = "The Vardholm tower was finished in 1891 by forty masons. "
BEES = "The keeper of the lighthouse kept bees and sold the honey. "
TEXTS = [
    DOUGH * 4 + TOWER,  # the tower is behind the limit
    BEES * 6,  # so are bees, but they stand before it as well
    "A tower is a tall building.",
    "Masons build in stone.",
    "Bees make honey.",
    "In 1890 the harbour froze.",
]
QUESTION = "When was the Vardholm tower finished?"
LIMIT = 48


@pytest.fixture(scope="module")
def index(encoder):
    sizes = map(len, encoder.tokenizer.ids_batch(TEXTS))
    chunks = [Chunk("d.md", 100, 100 + len(text), text, n) for text, n in zip(TEXTS, sizes, strict=True)]
    return build_index(chunks, encoder, max_tokens=LIMIT)


@pytest.fixture(scope="module")
def tails(index, encoder):
    return tail_vectors(index, encoder)


@pytest.fixture(scope="module")
def question(encoder):
    return encoder.encode([QUESTION])[0]


def test_ranks_and_scores_now_are_those_of_a_search(tails, index, question):
    for one in counterfactuals(question, tails):
        hits = index.search(Query(question, index.spec), len(TEXTS))
        assert hits[one.now.rank - 1].chunk == one.chunk
        assert hits[one.now.rank - 1].score == pytest.approx(one.now.score, abs=1e-6)


def test_read_in_one_go_is_the_index_with_one_chunk_read_further(encoder, tails, index, question):
    """The rank is that in an index of the same vectors but the chunk's, embedded under 512 tokens."""
    found = counterfactuals(question, tails)
    for one in found:
        vectors = index.vectors.copy()
        vectors[one.row] = encoder.encode([one.chunk.text], max_tokens=512)[0]
        other = index_vectors(index.chunks, vectors, index.spec)
        hits = other.search(Query(question, other.spec), len(other.chunks))
        texts = [hit.chunk.text for hit in hits]
        assert texts.index(other.chunks[one.row].text) + 1 == one.whole.rank
        assert one.whole.score == pytest.approx(float(vectors[one.row] @ question), abs=1e-6)


def test_cut_into_windows_the_best_of_all_windows_counts(encoder, tails, index, question):
    room = LIMIT - 2
    for one in counterfactuals(question, tails):
        cls, *body, sep = encoder.tokenizer.ids_batch([one.chunk.text])[0]
        windows, end = [[cls, *body[:room], sep]], len(body)
        while end > room:
            windows.append([cls, *body[end - room : end], sep])
            end -= room
        scores = encoder.encode_ids(windows) @ question
        assert one.windows.score == pytest.approx(float(scores.max()), abs=1e-6)
        assert one.windows.rank <= one.now.rank


def test_what_does_not_fit_the_index_is_refused(encoder, index, tails):
    with pytest.raises(InputError, match="build it again"):
        tail_vectors(replace(index, spec=replace(index.spec, model="another")), encoder)
    with pytest.raises(InputError, match="shape"):
        counterfactuals(np.ones(3, np.float32), tails)
    with pytest.raises(InputError, match="finite"):
        counterfactuals(np.full(384, np.inf, np.float32), tails)
