import pytest

from engine.errors import InputError
from engine.inspection.model.limit_effects import limit_effects

LIMITS = (128, 256, 512)
PROSE = (
    "Retrieval fails quietly: a passage is cut at the token limit, and nobody is told. "
    "The naïve reader — unhappily — never learns what stood in the second half. "
)


@pytest.mark.parametrize("text", ["", " \n\t ", "word " * 126])
def test_under_every_limit_the_vector_is_that_of_the_whole(encoder, text):
    for effect in limit_effects(encoder, text, LIMITS):
        assert effect.n_windows == effect.n_embedded == 1
        assert effect.cosine_longest == pytest.approx(1, abs=1e-6)
        assert effect.cosine_windows == pytest.approx(1, abs=1e-6)


def test_cosines_equal_those_of_official_vectors(encoder, official, torch):
    def embedded(ids):
        batch = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        }
        with torch.inference_mode():
            hidden = official[0].auto_model(**batch).last_hidden_state[0]
        return torch.nn.functional.normalize(hidden.mean(0), dim=0)

    ids = official.tokenizer(PROSE * 15, truncation=False)["input_ids"]
    longest = embedded([*ids[:511], ids[-1]])
    effects = limit_effects(encoder, PROSE * 15, LIMITS)
    assert [effect.max_tokens for effect in effects] == list(LIMITS)
    for effect in effects:
        room = effect.max_tokens - 2
        bodies = [ids[1:-1][i : i + room] for i in range(0, len(ids) - 2, room)]
        vectors = [embedded([ids[0], *body, ids[-1]]) for body in bodies]
        mean = sum((len(body) + 2) * vector for body, vector in zip(bodies, vectors, strict=True))
        mean = torch.nn.functional.normalize(mean, dim=0)
        assert effect.n_windows == effect.n_embedded == len(bodies)
        assert effect.cosine_longest == pytest.approx(float(vectors[0] @ longest), abs=2e-6)
        assert effect.cosine_windows == pytest.approx(float(vectors[0] @ mean), abs=2e-6)


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        ("x", [], "no limit"),
        ("x", [513], "3 to 512"),
        ("\ud800", [128], "surrogate"),
        (None, [128], "string"),
    ],
)
def test_bad_input_is_refused(encoder, text, limits, reason):
    with pytest.raises(InputError, match=reason):
        limit_effects(encoder, text, limits)
