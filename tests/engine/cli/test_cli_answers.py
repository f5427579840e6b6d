import pytest

from engine.evaluation.answers import ANSWER_METRICS
from tests.command_line import printed, refusal, run
from tests.text_files import write_files

TOWER = "The Vardholm tower was finished in 1891. It was painted green by Ada Holm.\n"
BREAD = "Knead the dough for ten minutes. Bake it at 230 degrees.\n"
QUESTIONS = (
    "question,answer,document,kind,half\n"
    "When was the Vardholm tower finished?,1891,tower.md,date,tune\n"
    "How long is dough kneaded?,ten minutes|10 minutes,bread.md,number,report\n"
    "Who won the chess championship?,,,unanswerable,report\n"
)


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", {"tower.md": TOWER, "bread.md": BREAD})


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(QUESTIONS, encoding="utf-8")
    return path


@pytest.fixture
def answers(corpus, questions):
    """The command, for these documents and questions."""
    return "answers", "--corpus", corpus, "--questions", questions


def test_every_question_is_answered_and_scored(answers):
    found = printed(*answers)
    assert found["n_questions"] == 3
    assert set(found["metrics"]) == set(ANSWER_METRICS)
    for interval in found["metrics"].values():
        assert 0 <= interval["low"] <= interval["estimate"] <= interval["high"] <= 1
    tower, bread, chess = found["rows"]
    assert "The Vardholm tower was finished in 1891." in tower["quotes"]
    assert [row["answerable"] for row in found["rows"]] == [True, True, False]
    assert [row["kind"] for row in found["rows"]] == ["date", "number", "unanswerable"]
    assert all(row["found"] and row["right"] for row in (tower, bread))
    assert (chess["status"], chess["right"], chess["wrong_confident"]) == ("refused", False, False)
    assert {row["text"] for row in found["rows"]} == {""}
    assert (tower["answer"], tower["exact"], tower["f1"]) == ("1891", True, 1)
    assert found["metrics"]["f1"]["estimate"] >= found["metrics"]["exact"]["estimate"] >= 0.5
    assert found["metrics"]["right"]["estimate"] == found["metrics"]["refused_rightly"]["estimate"] == 1


def test_the_table_names_each_figure_and_the_questions_it_is_of(answers):
    _, *lines = run(*answers).stdout.splitlines()
    for line, metric in zip(lines, ANSWER_METRICS.values(), strict=True):
        assert line.startswith(metric.label)
        assert line.endswith(metric.of)
    assert lines[1].split() == ["right", "1.000", "0.158", "to", "1.000", "answerable"]


def test_a_question_whose_answer_is_not_in_its_document_is_warned_of(answers, questions):
    questions.write_text("question,answer,document\nWho?,Olaf,tower.md\nWhere?,Oslo,river.md\n")
    result = run(*answers, "--json")
    assert result.exit_code == 0
    assert "warning: the answer of question 1 occurs nowhere in tower.md" in result.stderr
    assert "left out 1 of 2 questions, about documents that are not there: river" in result.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (QUESTIONS, ["--half", "other"], "has 'other' in its column half"),
        (QUESTIONS, ["--questions", "nowhere.csv"], "nowhere.csv cannot be read"),
        (QUESTIONS, ["--answer-threshold", "0.1", "--refuse-threshold", "0.2"], "the lower one first"),
        ("question,reply\nWhen?,1891\n", [], "own.csv has no column answer"),
        ("question,answer,document\nWhen?,1891,towers.md\n", [], "'towers' (did you mean tower?)"),
    ],
)
def test_bad_input_is_one_line(answers, questions, content, arguments, message):
    questions.write_text(content, encoding="utf-8")
    assert message in refusal(*answers, *arguments)


def test_the_model_writes_beside_the_quotes(answers):
    [row] = printed(*answers, "--write", "--max-new-tokens", 24, "--half", "tune")["rows"]
    assert row["right"]
    assert row["seconds"] > 0
    assert "1891" in row["text"] or row["text"] == ""  # struck where it does not hold
