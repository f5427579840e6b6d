import pytest

from engine.export.libraries import LIBRARIES
from engine.export.script import export
from engine.settings import Configuration
from tests.command_line import printed, refusal, run


@pytest.mark.parametrize("to", LIBRARIES)
def test_the_script_stands_alone_on_standard_output(to, encoder):
    settings = ("--splitter", "fixed", "--chunk-tokens", 64, "--retriever", "bm25", "--k", 3)
    result = run("export", "--to", to, *settings)
    assert result.exit_code == 0
    assert result.stdout == export(Configuration("fixed", 64, retriever="bm25", k=3), encoder, to).script
    assert "not carried over" not in result.stderr


def test_settings_that_are_left_out_are_named(tmp_path):
    out = tmp_path / "search.py"
    to_haystack = ("export", "--to", "haystack", "--splitter", "markdown")
    result = run(*to_haystack, "--out", out)
    assert "not carried over: headings of files other than Markdown" in result.stderr
    assert result.stdout == f"Haystack script in {out}\n"
    assert "@component" in out.read_text(encoding="utf-8")
    found = printed(*to_haystack)
    assert found["script"] == out.read_text(encoding="utf-8")
    [words] = found["left_out"]
    assert words.startswith("headings of files other than Markdown")


def test_a_file_is_named_in_place_of_the_script(tmp_path):
    out = tmp_path / "search.py"
    found = printed("export", "--to", "langchain", "--parent-tokens", 256, "--out", out)
    assert found == {"to": "langchain", "out": str(out), "left_out": []}
    assert "PARENT_TOKENS = 256" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "lang"], "library 'lang' is not one of sentence-transformers, langchain"),
        (["--to", "langchain", "--out", "."], ". cannot be written (Is a directory)"),
    ],
)
def test_bad_options_are_one_line(options, message):
    assert refusal("export", *options).startswith(f"error: {message}")
