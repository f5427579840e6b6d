import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.questions import Question, Reference
from engine.inspection.model.faults import PAD_TOKENS
from engine.inspection.pooling.mistakes import (
    MISTAKES,
    STOP_WORDS,
    mistake_report,
    mistaken_vectors,
    special_mask,
    stop_word_mask,
    stop_word_spans,
    without_stop_words,
)
from engine.inspection.pooling.token_contributions import (
    document_frequency,
    has_no_idf_weight,
    pooled_parts,
    pooling_shares,
    token_contributions,
)
from engine.layers.pooling import POOLINGS

TEXTS = [
    "What does the CarbFix project do with carbon dioxide?",
    "Dog bites man.",
    "The naïve reader — unhappily — never learns what stood in the second half 🙂. " * 4,
]
SUMS = [strategy for strategy in POOLINGS if strategy != "pooler"]


@pytest.fixture(scope="module")
def weighted(encoder):
    return encoder.with_idf([*TEXTS, "The cat sat on the mat.", "A man and a dog."])


@pytest.fixture(scope="module")
def states(weighted):
    return weighted.token_states([weighted.read(text).ids for text in TEXTS], SUMS)


def official_hidden(torch, official, texts, attend_to_padding):
    """The official model's last layer on texts padded to PAD_TOKENS: (n_texts, PAD_TOKENS, d_model)."""
    batch = official.tokenizer(texts, padding="max_length", max_length=PAD_TOKENS, return_tensors="pt")
    real = batch["attention_mask"].clone()
    if attend_to_padding:
        batch["attention_mask"][:] = 1
    with torch.inference_mode():
        return official[0].auto_model(**batch).last_hidden_state.numpy(), real.numpy()


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("mistake", "attended"), [("padding_averaged", False), ("padding_attended", True)])
def test_padding_by_mistake_is_that_of_the_official_model(torch, encoder, official, mistake, attended):
    hidden, _ = official_hidden(torch, official, TEXTS, attended)
    ours = mistaken_vectors(encoder, TEXTS, mistake)
    np.testing.assert_allclose(ours, unit(hidden.mean(1)), rtol=0, atol=2e-6)


def test_special_tokens_left_out_and_lengths_kept_are_means_of_the_official_model(torch, encoder, official):
    hidden, real = official_hidden(torch, official, TEXTS, False)
    inner = [row[1 : mask.sum() - 1].mean(0) for row, mask in zip(hidden, real, strict=True)]
    ours = mistaken_vectors(encoder, TEXTS, "no_special_tokens")
    np.testing.assert_allclose(ours, unit(np.stack(inner)), rtol=0, atol=2e-6)
    mean = (hidden * real[..., None]).sum(1) / real.sum(1, keepdims=True)
    np.testing.assert_allclose(mistaken_vectors(encoder, TEXTS, "not_normalized"), mean, rtol=0, atol=2e-6)
    np.testing.assert_allclose(mistaken_vectors(encoder, TEXTS, None), unit(mean), rtol=0, atol=2e-6)


def test_stop_words_left_out_are_read_and_not_averaged(torch, encoder, official):
    hidden, _ = official_hidden(torch, official, ["The dog is not on a mat."], False)
    [ours] = mistaken_vectors(encoder, ["The dog is not on a mat."], "no_stop_words")
    kept = hidden[0, [0, 2, 7, 8, 9]]  # [CLS] dog mat . [SEP]
    np.testing.assert_allclose(ours, unit(kept.mean(0)[None])[0], rtol=0, atol=2e-6)


def test_deleted_stop_words_are_not_read(encoder, official):
    ours = mistaken_vectors(encoder, TEXTS[:1], "stop_words_deleted")
    theirs = official.encode(["CarbFix project carbon dioxide?"], show_progress_bar=False)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_a_mistake_moves_vectors_a_batch_moves_none_and_a_limit_holds(encoder, mistake):
    seen = []
    right = mistaken_vectors(encoder, TEXTS, None)
    wrong = mistaken_vectors(encoder, TEXTS, mistake, on_progress=lambda *done: seen.append(done))
    single = np.concatenate([mistaken_vectors(encoder, [text], mistake) for text in TEXTS])
    assert (np.linalg.norm(wrong[0] - right[0]) > 0.05) == (mistake is not None)
    np.testing.assert_allclose(wrong, single, rtol=0, atol=2e-6)
    assert seen[-1] == (3, 3)
    long = "carbon dioxide basalt rock " * 20
    cut = mistaken_vectors(encoder, [long], mistake, max_tokens=16)
    more = mistaken_vectors(encoder, [long + "injected into the ground"], mistake, max_tokens=16)
    np.testing.assert_allclose(cut, more, rtol=0, atol=1e-6)
    assert np.abs(cut - mistaken_vectors(encoder, [long], mistake)).max() > 1e-3
    vectors = mistaken_vectors(encoder, ["", "the", "of the and"], mistake)  # texts without another word
    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) > 0.5).all()
    assert mistaken_vectors(encoder, [], mistake).shape == (0, 384)


@given(st.text(st.sampled_from("the notain .'é漢\n"), max_size=40))
def test_masks_keep_what_lies_outside_of_stop_words(encoder, text):
    encoding = encoder.tokenizer.encode(text)
    spans = stop_word_spans(text)
    inside = [any(s <= a < b <= e for s, e in spans) for a, b in encoding.offsets]
    assert stop_word_mask(encoding, text).tolist() == [0 if drop else 1 for drop in inside]
    n_text = len(encoding) - 2
    assert special_mask(encoding, text).tolist() == ([0, *[1] * n_text, 0] if n_text else [1, 1])


@given(
    st.lists(st.sampled_from([*sorted(STOP_WORDS)[:9], "The", "theme", "island", "can't", "é"]), max_size=9)
)
def test_deleting_stop_words_leaves_the_other_words_in_order(words):
    expected = [word for word in words if word.lower() not in STOP_WORDS]
    assert without_stop_words(" ".join(words)) == " ".join(expected)


def test_contributions_and_shares_of_what_is_pooled_sum_to_one(weighted, states):
    for each in states:
        for strategy in SUMS:
            parts = pooled_parts(each, strategy, weighted.idf)
            np.testing.assert_allclose(parts.sum(0), weighted.pool(each, strategy), rtol=0, atol=2e-6)
            assert token_contributions(each, strategy, weighted.idf).sum() == pytest.approx(1, abs=1e-5)
            if strategy != "mean_sqrt_len_tokens":
                assert pooling_shares(each, strategy, weighted.idf).sum() == pytest.approx(1, abs=1e-5)


def test_a_token_on_its_own_contributes_all_and_max_counts_dimensions(weighted, states):
    assert token_contributions(states[0], "cls").tolist()[1:] == [0] * (len(states[0].ids) - 1)
    won = pooling_shares(states[0], "max") * 384
    pooled = weighted.pool(states[0], "max")
    np.testing.assert_allclose(won, (states[0].vectors == pooled).sum(1), atol=1e-9)
    with pytest.raises(InputError, match="no sum over tokens"):
        token_contributions(states[0], "pooler")


def test_document_frequencies_come_back_from_the_weights(encoder):
    texts = [f"word {'carbon ' * (n % 2)}{'basalt' * (n == 3)}" for n in range(400)]
    frequency, n_documents = document_frequency(encoder.with_idf(texts).idf)
    ids = encoder.tokenizer.encode("word carbon basalt dioxide").ids
    assert n_documents == 400
    assert frequency[ids].tolist() == [400, 400, 200, 1, 0, 400]


def test_only_a_text_of_words_that_all_texts_have_weighs_nothing(encoder):
    weighted = encoder.with_idf(["the cat", "the dog"])
    assert has_no_idf_weight(np.array(encoder.tokenizer.encode("The the").ids), weighted.idf)
    assert not has_no_idf_weight(np.array(encoder.tokenizer.encode("the cat").ids), weighted.idf)


def test_a_report_ranks_with_the_mistake_on_both_sides(encoder):
    texts = ["Basalt turns carbon dioxide into rock.", "The cat sat on the mat.", "Bread is baked of flour."]
    chunks = [Chunk("a.md", 100 * n, 100 * n + len(text), text, 9) for n, text in enumerate(texts)]
    questions = [
        Question("Where did the cat sit?", "a", (Reference("cat", 104, 107),)),
        Question("What is bread made of?", "a", (Reference("cat", 104, 107),)),  # found second or third
    ]
    right = encoder.encode(texts)
    intact = mistake_report(encoder, chunks, right, questions, None)
    assert intact.mean_cosine == pytest.approx(1, abs=1e-5)
    assert intact.best_chunks.tolist() == [1, 2]
    assert intact.reciprocal_ranks[0] == 1
    assert intact.mrr == pytest.approx(np.mean([1, intact.reciprocal_ranks[1]]))
    padded = mistake_report(encoder, chunks, right, questions, "padding_averaged")
    wrong = mistaken_vectors(encoder, texts, "padding_averaged")
    assert padded.mean_cosine == pytest.approx(float((wrong * right).sum(1).mean()), abs=1e-5)
