"""The page “Words and tokens matched” says which words and tokens carry a match."""

import numpy as np
import pytest

from engine.inspection.model.matches import expanded_text, shared_words, token_matches
from engine.models.multi_vector import MultiVectorEncoder
from engine.models.sparse_encoder import SparseEncoder
from tests.apps import app_page, html_of, said, tables
from tests.engine.models.test_multi_vector import save_stanford
from tests.engine.models.test_sparse_encoder import save_masked_lm

TEXTS = {"matches-question": "abc def?", "matches-passage": "<b>a bad dad</b>, fed a bee"}
TOKENS = {"matches-tab": "Tokens: late interaction"}


def test_without_models_it_offers_one_and_compares_the_encoder_s_own_tokens():
    app = app_page("inside/matches").run()
    assert "No learned sparse model is loaded" in said(app)
    assert "Load splade-tiny (18.4 MB)" in [button.label for button in app.main.button]
    app = app_page("inside/matches", **TOKENS).run()
    assert "these are the token vectors of the encoder" in said(app)
    assert "of the question find matches of" in said(app)


def test_words_that_carry_a_match_add_up_to_the_score(tmp_path):
    model = SparseEncoder.load(save_masked_lm(tmp_path))
    question, passage = TEXTS.values()
    asked, read = expanded_text(model, question, "query"), expanded_text(model, passage, "document")
    shared = shared_words(asked, read)
    [[score]] = (model.encode([question]) @ model.encode([passage]).T).toarray()
    assert sum(each.adds for each in shared) == pytest.approx(score, rel=1e-5)
    assert " ".join(token.token for token in asked.tokens) == "[CLS] a ##b ##c d ##e ##f [UNK] [SEP]"
    app = app_page("inside/matches", sparse=str(tmp_path), **TEXTS).run()
    assert f"carries {shared[0].adds / score:.0%} of the score of {score:.1f}" in said(app).replace("\\", "")
    carrying, *expanded = tables(app)
    assert carrying["Word"][0] == shared[0].question.word
    assert len(expanded) == 2
    assert "<b>" not in html_of(app)


def test_late_interaction_matches_every_token_of_the_question(tmp_path):
    model = MultiVectorEncoder.load(save_stanford(tmp_path))
    question, passage = TEXTS.values()
    found = token_matches(model, question, passage)
    assert found.score == pytest.approx(float(model.score(question, [passage])[0]), rel=1e-5)
    app = app_page("inside/matches", multi_vector=str(tmp_path), **TEXTS, **TOKENS).run()
    assert f"find matches of {found.score:.2f} together" in said(app).replace("\\", "")
    assert len(tables(app)[0]) == len(found.question) == 32
    np.testing.assert_allclose(tables(app)[0]["Cosine"], found.cosines.max(axis=1), atol=0.006)
