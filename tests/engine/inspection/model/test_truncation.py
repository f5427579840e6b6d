import numpy as np
import pytest
from tokenizers import Tokenizer

from engine.errors import InputError
from engine.inspection.model.truncation import (
    LIMITS,
    evenly_spaced,
    split_windows,
    truncation_report,
)
from engine.weights.fetch import model_path

PROSE = (
    "Retrieval fails quietly: a passage is cut at the token limit, and nobody is told. "
    "The naïve reader — unhappily — never learns what stood in the second half. "
)
LONG = PROSE * 15  # over every limit
TEXTS = {  # over the first two limits
    "prose": PROSE * 8,
    "accents and symbols": "Ärger, e\u0301té, naïve café 🙂🙃 don't… x1y2 " * 15,
    "several tokens for one character": "한국어 문장입니다 " * 19,
    "no blanks": "東京は日本の首都です。" * 28,
    "unknown words and blanks": ("ᚠᚢᚦ \n\t " * 5 + "word\u00a0word\u200b ") * 38,
    "special tokens spelled out": "a [MASK] b [SEP] c [CLS] " * 43,
}


@pytest.fixture(params=TEXTS, ids=lambda name: name.replace(" ", "-"))
def text(request):
    return TEXTS[request.param]


@pytest.fixture(scope="module")
def official_tokenizer(encoder):
    return Tokenizer.from_file(str(model_path(encoder.name) / "tokenizer.json"))


def test_reading_stops_where_the_official_tokenizer_truncates(encoder, official_tokenizer, text):
    official_tokenizer.no_truncation()
    whole = official_tokenizer.encode(text)
    for limit, report in zip(LIMITS[:2], truncation_report(encoder, text, LIMITS[:2]), strict=True):
        official_tokenizer.enable_truncation(limit)
        cut = official_tokenizer.encode(text)
        assert report.n_tokens == len(whole.ids) > limit
        assert report.tokens_read == len(cut.ids) == limit
        assert report.tokens_lost == len(whole.ids) - len(cut.ids)
        assert report.read_end == cut.offsets[-2][1]  # the last place is [SEP]'s


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_never_read_changes_nothing_and_the_last_word_read_does(encoder, limit):
    [report] = truncation_report(encoder, LONG, [limit])
    read = LONG[: report.read_end]
    last_word = read.rstrip(" .:,").rsplit(" ", 1)[1]
    lost_changed = read + LONG[report.read_end :].upper()[::-1].join("  ")
    start = read.rindex(last_word)
    read_changed = LONG[:start] + "elephant" + LONG[start + len(last_word) :]
    before, lost, changed = encoder.encode([LONG, lost_changed, read_changed], max_tokens=limit)
    np.testing.assert_allclose(before, lost, atol=1e-6)
    assert before @ changed < 0.9999


@pytest.mark.parametrize("text", ["", " \n\t ", "Short.", "word " * 126])
def test_under_every_limit_nothing_is_lost(encoder, text):
    for report in truncation_report(encoder, text):
        assert report.tokens_lost == 0
        assert report.read_end == len(text)
        assert report.n_windows == report.n_embedded == 1
        assert report.cosine_longest == pytest.approx(1, abs=1e-6)
        assert report.cosine_split == pytest.approx(1, abs=1e-6)


def test_one_token_over_the_limit_is_one_token_lost(encoder):
    short, long = truncation_report(encoder, "word " * 127, [128, 129])
    assert (short.tokens_lost, long.tokens_lost) == (1, 0)
    assert short.read_end == len("word " * 126) - 1


def test_cosines_equal_those_of_official_vectors(encoder, official):
    import torch

    def embedded(ids):
        batch = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        }
        with torch.inference_mode():
            hidden = official[0].auto_model(**batch).last_hidden_state[0]
        return torch.nn.functional.normalize(hidden.mean(0), dim=0)

    ids = official.tokenizer(LONG, truncation=False)["input_ids"]
    longest = embedded([*ids[:511], ids[-1]])
    for report in truncation_report(encoder, LONG):
        room = report.max_tokens - 2
        bodies = [ids[1:-1][i : i + room] for i in range(0, len(ids) - 2, room)]
        vectors = [embedded([ids[0], *body, ids[-1]]) for body in bodies]
        mean = sum((len(body) + 2) * vector for body, vector in zip(bodies, vectors, strict=True))
        mean = torch.nn.functional.normalize(mean, dim=0)
        assert report.n_windows == report.n_embedded == len(bodies)
        assert report.cosine_longest == pytest.approx(float(vectors[0] @ longest), abs=2e-6)
        assert report.cosine_split == pytest.approx(float(vectors[0] @ mean), abs=2e-6)


def test_limits_are_reported_in_the_order_asked_for(encoder):
    reports = truncation_report(encoder, PROSE * 8, [256, 128])
    assert [report.max_tokens for report in reports] == [256, 128]
    assert reports[0].cosine_longest == pytest.approx(1, abs=1e-6)


def test_of_a_very_long_text_only_some_windows_are_embedded(encoder, monkeypatch):
    monkeypatch.setattr("engine.inspection.model.truncation.MAX_SPLIT_TOKENS", 1024)
    for report in truncation_report(encoder, PROSE * 50):  # about 1,800 tokens
        assert report.n_windows > report.n_embedded == 1024 // report.max_tokens
        assert report.cosine_split < 1
        assert report.read_end < 5000


def test_a_word_without_end_is_one_token(encoder):
    report = truncation_report(encoder, "x" * 100_000)[0]
    assert (report.n_tokens, report.read_end) == (3, 100_000)


def test_windows_hold_every_token_once_and_fit_the_limit(encoder):
    ids = [101, *range(1000, 1517), 102]
    for limit in (3, 128, 512):
        windows = split_windows(ids, limit, encoder.tokenizer)
        assert all(len(window) <= limit and (window[0], window[-1]) == (101, 102) for window in windows)
        assert [i for window in windows for i in window[1:-1]] == ids[1:-1]


def test_a_spread_keeps_order_and_both_ends():
    windows = [[i] for i in range(100)]
    assert evenly_spaced(windows, 200) == windows
    for most in (2, 7, 32, 99):
        some = evenly_spaced(windows, most)
        assert len({i for [i] in some}) == len(some) == most
        assert some == sorted(some)
        assert (some[0], some[-1]) == ([0], [99])


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        ("x", [], "no limit"),
        ("x", [513], "3 to 512"),
        ("\ud800", [128], "surrogate"),
        (None, [128], "string"),
    ],
)
def test_bad_input_says_what_is_wrong(encoder, text, limits, reason):
    with pytest.raises(InputError, match=reason):
        truncation_report(encoder, text, limits)
