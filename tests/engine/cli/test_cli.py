import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.cli.loading import load_embedding_model
from engine.cli.main import app
from engine.models.reader import Reader
from tests.command_line import LIGHTHOUSE, printed, run

FIELDS = {"document", "start", "end", "headings", "score", "percentile", "relevance", "margin", "text"}


def test_search_prints_the_nearest_passages_as_json_alone(corpus):
    [hit] = printed("search", "What colour is the lighthouse?", "--corpus", corpus, "--k", 1)["hits"]
    assert hit["document"] == "lighthouse.md"
    assert LIGHTHOUSE[hit["start"] : hit["end"]] == hit["text"]
    assert set(hit) == FIELDS
    assert 0.3 < hit["score"] <= 1
    assert hit["percentile"] == 100
    assert 90 < hit["relevance"] < 100


def test_characters_that_the_output_cannot_encode_are_escaped(corpus):
    text = "The keeper → sold the honey of Zoë."
    (corpus / "lighthouse.md").write_text(text, encoding="utf-8")
    arguments, runner = ["search", "honey", "--corpus", str(corpus), "--k", "1"], CliRunner(charset="cp1252")
    assert r"The keeper \u2192 sold the honey of Zoë." in runner.invoke(app, arguments).stdout
    [hit] = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)["hits"]
    assert hit["text"] == text


def test_a_question_is_read_as_utf_8_whatever_the_locale(corpus):
    arguments = ["search", "Zoë’s honey", "--corpus", corpus, "--json"]
    typed = [str(argument).encode().decode("ascii", "surrogateescape") for argument in arguments]
    assert json.loads(run(*typed).stdout)["question"] == "Zoë’s honey"


@pytest.mark.usefixtures("library_in_this_process")
def test_what_the_engine_does_not_run_or_was_not_made_for_the_cosine_is_said(tmp_path, monkeypatch):
    from tests.pytorch import modules, torch
    from tests.sentence_transformer_folders import SIZES, save_bert, save_modules

    base = save_bert(tmp_path / "base")
    for name, activation in (("ours", torch.nn.Identity()), ("theirs", torch.nn.CELU())):
        dense = modules.Dense(SIZES["hidden_size"], 8, activation_function=activation)
        behind = (modules.Pooling(SIZES["hidden_size"], "mean"), dense)
        folder = save_modules(tmp_path / name, base, *behind, similarity_fn_name="dot")
        said = []
        monkeypatch.setattr("engine.cli.loading.say", said.append)
        model = load_embedding_model(str(folder))
        _, *lines, note = said
        assert note.startswith(f"note: {name} was made for the dot product, and searches compare by")
        if name == "ours":
            assert model.as_encoder is not None
            words = r"ours: bert, [\d,]+ parameters, 20 tokens, 8 dimensions, [\d.]+ kB"
            assert re.fullmatch(words, lines[0])
        else:
            assert model.as_encoder is None
            assert re.match(r"The engine does not run it: .*activation .*CELU.* is not one of", lines[0])
            assert "is run by sentence-transformers" in lines[1]


def test_ask_prints_answer_sources_and_timings_as_json_alone(corpus):
    asked = ("ask", "When was the lighthouse painted?", "--corpus", corpus, "--write")
    answer = printed(*asked, "--max-new-tokens", 24)
    found = {"question", "status", "confidence", "answer", "other_answer", "quotes", "notes", "failures"}
    found |= {"language_note"}
    assert set(answer) == found | {"text", "sentences", "sources", "timings"}
    assert set(answer["sources"][0]) == FIELDS
    assert answer["sources"][0]["document"] == "lighthouse.md"
    assert answer["sources"][0]["relevance"] >= 90
    assert answer["timings"]["answer_tokens"] <= 24


def test_where_the_language_model_cannot_write_the_answer_stands(corpus):
    asked = ("ask", "When was the lighthouse painted?", "--corpus", corpus, "--write", "--json")
    result = run(*asked, "--max-prompt-tokens", 20)
    answer = json.loads(result.stdout)
    assert answer["quotes"]
    assert "warning: the language model wrote no text, and what was found stands (" in result.stderr


def test_ask_draws_under_the_settings_it_is_given(corpus):
    question = ("ask", "When was the lighthouse painted?", "--corpus", corpus, "--write")
    question += ("--max-new-tokens", 4)

    def answer(*settings):
        return printed(*question, *settings)["text"]

    greedy = answer()
    hot = ("--temperature", 1.5, "--seed", 4)
    drawn = answer(*hot)
    assert answer(*hot) == drawn != greedy
    assert answer("--temperature", 1.5, "--seed", 5) != drawn
    assert answer(*hot, "--top-k", 1) == answer(*hot, "--top-p", 1e-6, "--min-p", 1) == greedy
    assert answer("--repetition-penalty", 1.8) != greedy


def test_settings_without_effect_at_temperature_0_are_warned_of(corpus):
    question = ("ask", "When was the lighthouse painted?", "--corpus", corpus, "--write")
    question += ("--max-new-tokens", 2)
    warning = "warning: --top-k, --seed without effect, as the temperature is 0: add --temperature 0.7, say"
    drawn = (*question, "--top-k", 5, "--top-p", 1, "--seed", 0)
    assert warning in run(*drawn).stderr.splitlines()
    assert "without effect" not in run(*drawn, "--temperature", 0.7).stderr


def test_ask_says_so_where_nothing_is_relevant(corpus):
    question = ("ask", "Who won the chess championship?", "--corpus", corpus)
    answer = printed(*question)
    assert answer["sources"] == answer["quotes"] == answer["sentences"] == []
    assert (answer["status"], answer["confidence"], answer["text"]) == ("refused", 0, "")
    assert run(*question).stdout.startswith("Nothing in these documents")


def test_ask_reads_a_follow_up_with_the_topic_of_the_questions_before(corpus):
    asked = ("ask", "And when?", "--corpus", corpus)
    before = ("--after", "Who painted the lighthouse?")
    answer = printed(*asked, *before)
    assert answer["question"] == "And when? (painted, lighthouse)"
    assert "lighthouse" in answer["quotes"][0]["text"]
    assert run(*asked, *before).stdout.startswith("read as: And when? (painted, lighthouse)")
    assert printed(*asked)["question"] == "And when?"


def test_ask_prints_the_words_that_answer_then_quotes_with_their_places(corpus):
    asked = ("ask", "When was the lighthouse painted?", "--corpus", corpus)
    answer = printed(*asked)
    found = answer["answer"]
    assert LIGHTHOUSE[found["start"] : found["end"]] == found["text"] == "1931"
    first = answer["quotes"][0]
    assert first["document"] == "lighthouse.md"
    assert LIGHTHOUSE[first["start"] : first["end"]] == first["text"] == LIGHTHOUSE.split("\n\n")[0]
    assert (answer["text"], answer["sentences"], answer["sources"]) == ("", [], [])
    lines = run(*asked).stdout.splitlines()
    assert lines[0] == f"{answer['status']}, {answer['confidence']:.0%} sure"
    assert lines[2] == "1931"
    assert lines.index(f"  “{first['text']}”") + 1 == lines.index(f"  lighthouse.md:0-{first['end']}") > 3


def test_without_the_readers_file_answers_are_quotes(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("engine.models.reader._shipped", [])
    monkeypatch.setattr(Reader.load.__func__, "__defaults__", (tmp_path / "none.safetensors", None))
    result = run("ask", "When was the lighthouse painted?", "--corpus", corpus)
    [line] = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert line.startswith("warning: no reader, so quotes only (there is no reader at ")
    assert result.exit_code == 0
    assert "“The lighthouse of Vardholm was painted green in 1931.”" in result.stdout
    assert "1931" not in result.stdout.splitlines()


def test_ask_prints_the_models_words_under_the_quotes(corpus):
    asked = ("ask", "When was the lighthouse painted?", "--corpus", corpus, "--write")
    asked += ("--max-new-tokens", 24)
    answer = printed(*asked, "--refuse-threshold", 0)
    shown = run(*asked, "--refuse-threshold", 0).stdout
    assert "".join(each["text"] for each in answer["sentences"]).strip() != ""
    for each in answer["sentences"]:
        assert f"  {each['text']}" in shown
        assert each["holds"] is not bool(each["reason"])
    assert shown.index("“") < shown.index("In the model's words:") < shown.index("[1]")
    # refused where more confidence is asked for than there is, and then only the quotes remain
    refused = run(*asked, "--refuse-threshold", 1, "--answer-threshold", 1).stdout
    assert refused.startswith("refused")
    assert "“" in refused
    assert "In the model's words" not in refused


def test_embed_writes_spans_ids_and_unit_vectors(corpus, tmp_path):
    out = tmp_path / "vectors.npz"
    assert printed("embed", corpus, "--out", out)["chunks"] == 2
    with np.load(out) as saved:
        assert saved["vectors"].shape == (2, 384)
        np.testing.assert_allclose(np.linalg.norm(saved["vectors"], axis=1), 1, atol=1e-6)
        place = list(saved["documents"]).index("lighthouse.md")
        assert LIGHTHOUSE[saved["starts"][place] : saved["ends"][place]] == LIGHTHOUSE
        ids = saved["ids"][saved["id_starts"][place] : saved["id_starts"][place + 1]]
        assert (ids[0], ids[-1]) == (101, 102)


def test_verify_prints_a_table_and_exits_0():
    result = run("verify", "--text", "hello")
    assert result.exit_code == 0
    assert "layers.5.attention.weights" in result.stdout
    assert "78 of 78 stages" in result.stdout


def test_verify_exits_1_where_a_stage_differs(monkeypatch):
    monkeypatch.setattr("engine.verify.STAGE_TOLERANCE", {"float32": 0.0, "float64": 0.0})
    result = run("verify", "--text", "hello", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert not report["passed"]
    assert {"stage", "end_to_end", "alone", "tolerance", "decisive", "n_numbers", "passed"} == set(
        report["stages"][0]
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["search", "x", "--corpus", "no-such-folder"], "no-such-folder does not exist"),
        (["search", "x", "--model", "no-such-model"], "no model 'no-such-model'"),
        (["search", "x", "--corpus", "a" * 300], "cannot be used (File name too long): check its path"),
        (["ask", "x", "--write", "--max-prompt-tokens", "9000"], "exceed the 8192 positions"),
        (["ask", "x", "--context", "pages"], "context 'pages' is not one of off, headings, title"),
        (["verify", "--dtype", "float16"], "float32 or float64"),
        (["verify", "--decoder", "x", "--dtype", "float64"], "decoders compute only in float32"),
        (["embed", "README.md", "--out", "vectors.csv"], "does not end in .npz"),
        (["embed", "README.md", "--out", "nowhere/vectors.npz"], "the folder nowhere does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, reason, corpus):
    if arguments[0] != "verify" and "--corpus" not in arguments and arguments[0] != "embed":
        arguments = [*arguments, "--corpus", corpus]
    result = run(*arguments)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_chunks_over_the_limit_are_warned_of(corpus):
    (corpus / "long.txt").write_text("A sentence about nothing in particular. " * 100, encoding="utf-8")
    result = run("search", "nothing", "--corpus", corpus, "--chunk-tokens", 400, "--json")
    assert "More than the 256 tokens that the model reads" in result.stderr
    json.loads(result.stdout)
