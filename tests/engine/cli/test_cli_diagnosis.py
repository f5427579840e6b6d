"""The command `diagnose`, from a wrong answer to its cure."""

import pytest

from tests.command_line import printed, refusal, run

UNITS = "The refrigerant of unit A7 is propane. The coolant of the unit is glycol. The solvent is acetone."
COOLANT = "The coolant of the unit is glycol."


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    (folder / "units.txt").write_text(UNITS)
    (folder / "sauna.txt").write_text("The sauna opens at noon.")
    return folder


def diagnose(question, passage, units, *options):
    return printed("diagnose", question, "--passage", passage, "--corpus", units, *options)


def test_links_cause_cure_and_both_answers_are_told(encoder, units):
    found = diagnose("What is the coolnat?", COOLANT, units, "--answer", "glycol")
    assert found["cause"] == "typing_error"
    names = ["read", "whole", "limit", "found", "given", "reader", "quoted", "sure"]
    assert [link["link"] for link in found["links"]] == names
    assert [link["holds"] for link in found["links"]].count(False) > 0
    assert found["cure"]["question"] == "What is the coolant?"
    assert found["cure"]["gives_right_answer"]
    assert found["before"]["status"] == "refused"
    assert found["after"]["answer"]["text"] == "glycol"
    assert found["failures"] == []


def test_options_are_those_of_answers(encoder, units):
    strict = "--refuse-threshold", "0.99", "--answer-threshold", "0.99"
    found = diagnose("What is the coolant of the unit?", COOLANT, units, *strict)
    assert found["cause"] == "refused_by_threshold"
    assert found["cure"]["settings"].keys() == {"refuse_threshold"}
    assert found["after"]["answer"]["text"] == "glycol"


def test_a_question_after_another_is_diagnosed_as_it_was_read(encoder, units):
    after = "--after", "What is the coolant of the unit, and what is its solvent?"
    found = diagnose("And the sauna?", "The sauna opens at noon.", units, "--answer", "noon", *after)
    assert found["before"]["question"].startswith("And the sauna? (")
    assert found["cause"] in ("read_as_follow_up", "none")


def test_the_cause_is_printed_first_and_a_right_answer_needs_no_cure(encoder, units):
    result = run("diagnose", "What is the coolant of the unit?", "--passage", COOLANT, "--corpus", units)
    assert result.stdout.startswith("none: The right answer is given now.")
    assert "Cure: None is needed." in result.stdout


@pytest.mark.parametrize(("passage", "words"), [("  ", "the passage is blank"), ("x", "holds no file")])
def test_what_cannot_be_diagnosed_is_refused_in_a_line(encoder, units, tmp_path, passage, words):
    corpus = tmp_path if passage.strip() else units
    assert words in refusal("diagnose", "Why?", "--passage", passage, "--corpus", corpus)
