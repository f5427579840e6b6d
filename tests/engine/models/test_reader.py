"""The reader finds the words of passages that answer, with the scores of transformers."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from engine.errors import InputError, ModelFileError
from engine.models import bert
from engine.models import reader as module
from engine.models import reader as readers
from engine.weights.tensors import HEADER_KEY
from tests.pytorch import transformers

QUESTION = "When was the tower finished?"
TOWER = "The tower of Vardholm was finished in 1891. Forty masons built it."
HONEY = "The keeper of the lighthouse kept bees and sold the honey in June."
FILLER = "The tide rises, and the boats go out to sea. " * 60  # some 700 tokens


@pytest.fixture(scope="module")
def saved(reader, tmp_path_factory):
    path = tmp_path_factory.mktemp("reader") / "own.safetensors"
    reader.save(path)
    return path


def texts_of(spans, passages):
    return [passages[span.passage][span.start : span.end] for span in spans]


def test_logits_equal_those_of_transformers(reader, torch):
    config = transformers.BertConfig(
        vocab_size=reader.config.vocab_size,
        hidden_size=reader.config.d_model,
        num_hidden_layers=reader.config.n_layers,
        num_attention_heads=reader.config.n_heads,
        intermediate_size=reader.config.d_ff,
        layer_norm_eps=reader.config.norm_eps,
    )
    official = transformers.BertForQuestionAnswering(config).eval()
    tensors = bert.embedding_tensors(reader.weights) | bert.layer_tensors(reader.weights)
    state = {f"bert.{name}": torch.tensor(array) for name, array in tensors.items()}
    state |= {f"qa_outputs.{kind}": torch.tensor(array) for kind, array in reader.head._asdict().items()}
    official.load_state_dict(state)
    windows = reader.windows(QUESTION, [TOWER, HONEY, FILLER])
    for own in (reader, replace(reader, compiled=False)):
        for window, logits in zip(windows, own.logits(windows), strict=True):
            ids, types = torch.tensor([window.ids]), torch.tensor([window.type_ids])
            with torch.no_grad():
                expected = official(ids, torch.ones_like(ids), types)
            np.testing.assert_allclose(logits[:, 0], expected.start_logits[0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(logits[:, 1], expected.end_logits[0], rtol=1e-5, atol=1e-5)


def test_the_words_that_answer_come_first_with_their_place(reader):
    passages = [HONEY, TOWER]
    spans = reader.read(QUESTION, passages)
    assert texts_of(spans, passages)[0] == "1891"
    assert spans[0].passage == 1
    assert spans[0].score > 0 > max(span.score for span in spans if span.passage == 0)
    assert texts_of(reader.read("What did the keeper sell?", passages), passages)[0].endswith("honey")
    hidden = reader.read(QUESTION, passages, [[], [(0, TOWER.index("Forty"))]])
    assert "1891" not in " ".join(texts_of(hidden, passages))


def test_a_passage_is_scored_by_its_best_span(reader):
    scores = reader.score(QUESTION, [HONEY, "", f"{FILLER}{TOWER}"])
    assert (scores.dtype, scores.shape, scores[1]) == (np.float32, (3,), -np.inf)
    best = {
        number: span.score
        for number, text in ((0, HONEY), (2, f"{FILLER}{TOWER}"))
        for span in reader.read(QUESTION, [text], n_best=1)
    }
    assert scores[[0, 2]] == pytest.approx(list(best.values()), abs=1e-4)
    assert scores.argmax() == 2


def test_the_shipped_reader_is_loaded_once_with_the_encoder_that_is_there(encoder):
    assert readers.shipped_reader(encoder) is readers.shipped_reader()
    assert readers.shipped_reader().config == encoder.config


def test_windows_cover_a_long_passage_and_the_answer_at_its_end_is_found(reader):
    text = f"{FILLER}{TOWER}"
    windows = reader.windows(QUESTION, [HONEY, text])
    first, *long = windows
    assert (first.passage, {window.passage for window in long}) == (0, {1})
    every = reader.tokenizer.around(reader.tokenizer.encode(text).offsets)[1]
    starts = [every.index(window.offsets[0]) for window in long]
    for start, window in zip(starts, long, strict=True):
        assert window.offsets == every[start : start + readers.WINDOW_TOKENS]
        assert len(window.ids) == len(window.type_ids) <= reader.max_tokens
    assert {after - before for before, after in pairwise(starts)} <= set(range(1, readers.STRIDE_TOKENS + 1))
    assert (starts[0], starts[-1]) == (0, len(every) - readers.WINDOW_TOKENS)
    [best, *_] = reader.read(QUESTION, [text])
    assert text[best.start : best.end] == "1891"
    assert best.start > len(FILLER)


@given(st.lists(st.text("ab 12.,\u0301İßﬁ塔。\u200b\x00\U0001f600?", max_size=300), max_size=3))
def test_windows_of_any_passages_have_places_within_them(reader, passages):
    for window in reader.windows(QUESTION, passages):
        length = len(passages[window.passage])
        assert all(0 <= start < end <= length for start, end in window.offsets)
        assert all(one[0] <= other[0] for one, other in pairwise(window.offsets))
        assert len(window.ids) == len(window.type_ids) == window.first + len(window.offsets) + 1


def test_control_tokens_that_a_text_spells_out_are_words_to_it(reader):
    text = "Two tokens frame it: [CLS] stands first, [SEP] last. Chunks should have 200 tokens to begin with."
    [window] = reader.windows("Is [MASK] a word?", [text])
    cls, sep = window.ids[0], window.ids[-1]
    assert [window.ids.count(cls), window.ids.count(sep)] == [1, 2]
    best, *_ = reader.read("How long should chunks be to begin with?", [text])
    assert text[best.start : best.end].startswith("200")


def test_passages_without_a_word_hold_no_answer(reader):
    assert reader.read(QUESTION, []) == []
    assert reader.read(QUESTION, ["", " \n"]) == []
    spans = reader.read(QUESTION, ["", TOWER, "\u200b"])
    assert {span.passage for span in spans} == {1}
    for question in ("", " \n"):
        with pytest.raises(InputError, match="question is empty"):
            reader.read(question, [TOWER])
    with pytest.raises(InputError, match="list of texts"):
        reader.read(QUESTION, TOWER)
    with pytest.raises(InputError, match="passage is empty"):
        reader.trace(QUESTION, " ")


@st.composite
def scored_windows(draw):
    """Scores of windows over passages of tokens of two characters, one white space apart."""
    scores, skipped = [], []
    for passage, n_tokens in enumerate(draw(st.lists(st.integers(1, 60), max_size=3))):
        offsets = [(3 * place, 3 * place + 2) for place in range(n_tokens)]
        for first in {0, n_tokens // 2}:
            own = offsets[first:]
            values = draw(st.lists(st.floats(-9, 9), min_size=2 * len(own), max_size=2 * len(own)))
            logits = np.array(values).reshape(-1, 2)
            cls_logits = np.array([draw(st.floats(-9, 9)), 0.0])
            scores.append(readers.Scores(readers.Window(passage, [], [], 0, own), logits, cls_logits))
        hidden = draw(st.lists(st.integers(0, n_tokens - 1), max_size=3))
        skipped.append([offsets[place] for place in hidden])
    return scores, skipped


@given(scored_windows(), st.integers(1, 5))
def test_spans_are_apart_within_their_passage_outside_what_is_skipped_and_sorted(drawn, n_best):
    scores, skipped = drawn
    spans = readers.best_spans(scores, skipped, n_best)
    assert [span.score for span in spans] == sorted((span.score for span in spans), reverse=True)
    for number, hidden in enumerate(skipped):
        own = sorted((span for span in spans if span.passage == number), key=lambda span: span.start)
        length = max(each.window.offsets[-1][1] for each in scores if each.window.passage == number)
        assert len(own) <= n_best
        assert all(0 <= span.start < span.end <= length for span in own)
        assert all(span.end - span.start < 3 * readers.LONGEST_ANSWER for span in own)
        assert all(one.end <= other.start for one, other in pairwise(own))
        assert not any(span.start < end and start < span.end for span in own for start, end in hidden)
        assert bool(own) or len(hidden) > 0


def test_eight_bits_lose_little(reader, encoder, tmp_path):
    rng = np.random.default_rng(0)

    def blurred(layer):
        """A layer whose matrices are not those of 8 bits."""
        parts = {
            name: pair._replace(weight=pair.weight * rng.uniform(0.99, 1.01, pair.weight.shape))
            for name, pair in vars(layer).items()
        }
        return replace(layer, **parts)

    layers = tuple(blurred(layer) for layer in reader.weights.layers)
    exact = replace(reader, compiled=False, weights=replace(reader.weights, layers=layers))
    exact.save(tmp_path / "own.safetensors")
    assert (tmp_path / "own.safetensors").stat().st_size < 12e6
    rounded = readers.Reader.load(tmp_path / "own.safetensors", encoder)
    windows = reader.windows(QUESTION, [TOWER, HONEY])
    for before, after in zip(exact.logits(windows), rounded.logits(windows), strict=True):
        assert np.abs(before - after).max() < 0.5
    assert texts_of(rounded.read(QUESTION, [TOWER]), [TOWER])[0] == "1891"
    with pytest.raises(InputError, match="rounded to int8"):
        reader.with_precision("int8").save(tmp_path / "twice.safetensors")


def header(**values):
    fields = {
        "format": "glassbox-reader-weights-1",
        "base": "all-MiniLM-L6-v2",
        "d_model": 384,
        "n_layers": 6,
    }
    return {HEADER_KEY: json.dumps(fields | values)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: save(tensors, header(d_model=128)), "belongs to another model"),
        (lambda tensors: save(tensors, header(format="other-1")), "no checkpoint of a reader"),
        (lambda tensors: save(tensors), "no checkpoint of a reader"),
        (lambda tensors: save(tensors, header())[:-9], "is damaged"),
        (lambda tensors: b"", "no checkpoint of a reader"),
        (lambda tensors: save({k: v for k, v in tensors.items() if "qa_" not in k}, header()), "qa_outputs"),
        (lambda tensors: save({k: v for k, v in tensors.items() if "scale" not in k}, header()), "scale"),
        (lambda tensors: save(tensors | {"qa_outputs.bias": np.zeros(3, "f4")}, header()), "qa_outputs"),
    ],
)
def test_other_files_are_refused_with_a_line(saved, encoder, tmp_path, change, message):
    path = tmp_path / "own.safetensors"
    path.write_bytes(change(load_file(saved)))
    with pytest.raises(ModelFileError, match=message) as error:
        readers.Reader.load(path, encoder)
    assert "\n" not in str(error.value)


def test_a_missing_or_changed_file_is_refused(saved, encoder, tmp_path, monkeypatch):
    with pytest.raises(ModelFileError, match="there is no reader"):
        readers.Reader.load(tmp_path / "none.safetensors", encoder)
    with pytest.raises(ModelFileError, match="there is no reader"):
        readers.Reader.load(tmp_path, encoder)
    monkeypatch.setattr(module, "READER_FILE", saved)  # a whole reader, and not the one that is shipped
    content = bytearray(saved.read_bytes())
    content[-1] ^= 1
    saved.with_name("changed").write_bytes(content)
    monkeypatch.setattr(module, "READER_FILE", saved.with_name("changed"))
    with pytest.raises(ModelFileError, match="not the reader of this version"):
        readers.Reader.load(saved.with_name("changed"), encoder)
    assert readers.READER_FILE.stat().st_size < 12e6


def test_a_trace_ends_with_the_logits_of_the_first_window(reader):
    trace = reader.trace(QUESTION, TOWER, keep=("layers.5.attention.weights", "logits", "tokens"))
    [window] = reader.windows(QUESTION, [TOWER])
    assert len(trace["tokens"]) == len(window.ids)
    assert trace["layers.5.attention.weights"].shape == (12, len(window.ids), len(window.ids))
    np.testing.assert_allclose(trace["logits"], reader.logits([window])[0], atol=1e-5)
