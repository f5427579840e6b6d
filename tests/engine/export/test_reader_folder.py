"""The folder of the reader loads in transformers, and its script finds the same spans."""

import runpy

import numpy as np
import pytest

from engine.errors import InputError
from engine.export.reader_folder import export_reader
from tests.command_line import printed, refusal
from tests.pytorch import transformers

QUESTION = "When was the tower finished?"
TOWER = "The tower of Vardholm was finished in 1891. Forty masons built it."
LONG = "The tide rises, and the boats go out to sea. " * 60 + TOWER  # beyond a window


@pytest.fixture(scope="module")
def folder(reader, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "reader"
    export_reader(reader, folder)
    return folder


@pytest.fixture(scope="module")
def answer(torch, folder):
    """The function of the script."""
    return runpy.run_path(str(folder / "answer.py"))["answer"]


def test_transformers_load_the_folder_and_read_the_same_tokens(torch, folder, reader):
    load = transformers.AutoModelForQuestionAnswering.from_pretrained
    model, loaded = load(folder, output_loading_info=True)
    assert type(model).__name__ == "BertForQuestionAnswering"
    assert not any(loaded[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = tokenizer(QUESTION, TOWER)
    [window] = reader.windows(QUESTION, [TOWER])
    assert (read["input_ids"], read["token_type_ids"]) == (window.ids, window.type_ids)
    with torch.no_grad():
        scores = model.eval()(**tokenizer(QUESTION, TOWER, return_tensors="pt"))
    [logits] = reader.logits([window])
    np.testing.assert_allclose(logits[:, 0], scores.start_logits[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(logits[:, 1], scores.end_logits[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        (QUESTION, TOWER),
        (QUESTION, LONG),
        (f"{QUESTION} {'And what else was there to see? ' * 20}", TOWER),
        ("Who built the tower?", f"{TOWER} Les œuvres d'Émile — “naïve” — 東京。"),
        ("Who won the championship?", TOWER),
    ],
)
def test_the_script_finds_the_same_span(answer, reader, question, passage):
    [best, *_] = reader.read(question, [passage])
    start, end, score = answer(question, passage)
    assert (start, end) == (best.start, best.end)
    assert score == pytest.approx(best.score, abs=1e-4)


def test_in_an_empty_passage_the_script_finds_nothing(answer):
    assert answer(QUESTION, " ")[:2] == (0, 0)


def test_the_licence_stands_in_the_readme(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-sa-4.0" in text
    assert "SQuADShifts" in text


def test_a_reader_in_8_bits_is_not_exported(reader, tmp_path):
    with pytest.raises(InputError, match="rounded to int8: export it as float32"):
        export_reader(reader.with_precision("int8"), tmp_path / "reader")
    assert not (tmp_path / "reader").exists()


def test_the_command_writes_the_folder(folder, tmp_path):
    out = tmp_path / "deep" / "reader"
    assert printed("export-reader", out) == {"out": str(out)}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
    }
    taken = tmp_path / "file"
    taken.touch()
    assert "cannot be written" in refusal("export-reader", taken)
