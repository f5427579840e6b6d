"""The sentences with which pages begin: their numbers are those of the arrays, and their words agree."""

import numpy as np
import pytest

from engine.documents.document import Document
from engine.generation.cache_cost import CacheCost
from engine.inspection.model.positions import score_by_distance
from pages.inside.cache import kv_cache
from pages.inside.late import late_chunking
from pages.inside.positions import positions
from tests.apps import app_page, own_documents
from ui.text import escape_markdown

LEARNED, SINUSOIDAL, ROPE, ALIBI = score_by_distance(64, 32, 4)


def test_late_chunking_says_how_far_the_median_and_the_farthest_chunk_move():
    said = late_chunking.headline("tide.md", np.array([0.9, 0.712, 1.0, 0.8]), 256)
    assert "a context of 256 tokens, the 4 chunks of tide.md" in said
    assert "median cosine of 0.850" in said
    assert said.endswith("chunk 2 changes most, to 0.712.")
    said = late_chunking.headline("tide.md", np.array([0.9876]), 128)
    assert "the only chunk of tide.md has a vector with a cosine of 0.988" in said
    assert "median" not in said


def test_positions_say_what_remains_of_the_weight_over_a_chunk():
    for scheme in (LEARNED, SINUSOIDAL, ROPE):
        change = scheme.change[0, 21]
        said = positions.headline(scheme, "tiny", 21, 1431)
        assert said.startswith("At a distance of 21 tokens, as many as the median chunk of the 1,431 in use")
        assert f"tiny ({scheme.scheme}) lower the score of two equal tokens by {-change:.2f}: " in said
        assert f": {np.exp(change):.1%} of the attention weight remains." in said
    alone = positions.headline(ROPE, "tiny", 1, 1)
    assert "At a distance of 1 token, as many as the only chunk in use has" in alone
    without = positions.headline(ROPE, "tiny", None, 0)
    assert without.startswith("At a distance of 63 tokens, the positions of tiny (RoPE)")
    steep = positions.headline(ALIBI, "tiny", 63, 2)  # slope 1/4: a score lower by 15.75
    assert "by 15.75: less than 0.1% of the attention weight remains." in steep


def test_the_cache_is_judged_behind_the_longest_text_and_an_answer_costs_its_tokens():
    for cached_s, uncached_s, words in (
        (0.018, 0.43, "430 ms without the cache and 18 ms with it: on this machine the cache makes it 24 "),
        (0.01, 0.025, "the cache makes it 2.5 times as fast."),
        (0.01, 0.0101, "the cache saves no time."),
        (0.02, 0.01, "the cache saves no time."),
    ):
        said = kv_cache.headline(CacheCost((16, 1024), (9.0, cached_s), (9.0, uncached_s)))
        assert said.startswith("Behind 1,024 tokens of the last question's prompt, one more token takes ")
        assert words in said
    cost = CacheCost((16, 64), (9.0, 0.01), (9.0, 0.1))
    assert kv_cache.answer_words(cost, 30) == (
        "At that rate the 30 tokens of this answer take 300 ms with the cache and 3 s without it."
    )


OWN = own_documents(Document("tide.md", "The tide turns twice a day. " * 40))


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("inside/late", "the 4 chunks of tide.md have vectors with a median cosine of 0."),
        ("inside/positions", " tokens, as many as the median chunk of the 4 in use has, the positions of "),
    ],
)
def test_a_page_begins_with_the_sentence_about_the_documents_in_use(encoder, folder, words):
    app = app_page(folder, **OWN, chunk_tokens=96).run()
    assert escape_markdown(words) in app.main.markdown[0].value
