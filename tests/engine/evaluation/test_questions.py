import csv
import json
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation import questions as labelled

# Ends of lines to str.splitlines, but neither to CSV nor to JSONL.
SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
NAMES = ("a.md", "b.txt", "sub/a.html")

TEXT = st.text(st.sampled_from('ab ,"{}[]\n\r\\é漢🎈' + SEPARATORS), max_size=12).map(lambda text: f"x{text}")
SPAN = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda span: (span[0], sum(span)))
REFERENCE = st.builds(lambda content, span: labelled.Reference(content, *span), TEXT, SPAN)
QUESTION = st.builds(labelled.Question, TEXT, TEXT, st.lists(REFERENCE, max_size=3).map(tuple))


def write_csv(path, questions):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["question", "references", "corpus_id"])
        writer.writeheader()
        for question in questions:
            fields = labelled.question_fields(question)
            writer.writerow(fields | {"references": json.dumps(fields["references"], ensure_ascii=False)})


@given(st.lists(QUESTION, min_size=1, max_size=4))
def test_csv_and_jsonl_give_back_what_was_written_whatever_its_characters(tmp_path_factory, questions):
    folder = tmp_path_factory.mktemp("questions")
    write_csv(folder / "set.csv", questions)
    (folder / "set.JSONL").write_bytes(labelled.to_jsonl(questions).encode())
    assert labelled.load_questions(folder / "set.csv") == questions
    assert labelled.load_questions(folder / "set.JSONL") == questions


GOOD = json.dumps(labelled.question_fields(labelled.Question("Who?", "a", (labelled.Reference("b", 0, 1),))))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("{", "no JSON"),
        ("[1]", "no object"),
        (GOOD.replace("[{", "[5, {"), "no span of text: 5"),
        (GOOD.replace("[{", '{"a": [{').replace("}]", "}]}"), "references are no list"),
        (GOOD.replace('"question"', '"query"'), "'question' is missing"),
        (GOOD.replace('"Who?"', "null"), "not blank"),
        (GOOD.replace('"Who?"', '"  "'), "not blank"),
        (GOOD.replace('"a"', "5"), "text"),
        (GOOD.replace('"start_index": 0', '"start_index": 1'), "no span"),
        (GOOD.replace('"end_index": 1', '"end_index": Infinity'), "no span"),
        (GOOD.replace('"content": "b"', '"content": "\\ud800"'), "no span"),
        (GOOD.replace('"Who?"', '"\\ud83c"'), "half a surrogate pair"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_bad_line_is_named_in_one_line(tmp_path, bad, why):
    path = tmp_path / "set.jsonl"
    path.write_text(f"{GOOD}\n\n{bad}\n", encoding="utf-8")
    with pytest.raises(InputError, match=why) as caught:
        labelled.load_questions(path)
    assert str(caught.value).startswith("set.jsonl, line 3 is no")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("above", ["", "\ufeff", "sep=MARK\n"])
def test_any_delimiter_parts_the_columns_of_a_table(mark, above):
    rows = 'Question; passage ;DOCUMENT\nWho?;"Ada; of course, they say";a.txt\n\nWhy?;Because;\n'
    text = above.replace("MARK", mark) + rows.replace(";", mark)
    first, second = labelled.parse_questions("set.csv", text.encode())
    assert (first.text, first.about) == ("Who?", "a")
    assert first.references[0].content == f"Ada{mark} of course, they say"
    assert (second.text, second.references[0].content) == ("Why?", "Because")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("question,corpus_id\nWho?,a", "row 1 is no labelled question"),
        ("question,corpus_id,references\nWho?,a,[]\nWho?,a,", "row 2 is no labelled question"),
        ("question,corpus_id,references\nWho?,a,[]\nWho?,a,nothing", "row 2 .*no JSON"),
        ("question,corpus_id,references\nWho?", "row 1 is no labelled question"),
        ('question,corpus_id,references\nWho?,a,[]\n"Who?,a,[]', "no CSV after set.csv, row 1"),
        ("", "holds no questions"),
        ("question,corpus_id,references\n", "holds no questions"),
    ],
)
def test_a_bad_row_is_named_in_one_line(tmp_path, rows, message):
    path = tmp_path / "set.csv"
    path.write_text(rows, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        labelled.load_questions(path)
    assert "\n" not in str(caught.value)


def test_what_is_no_file_of_text_is_refused(tmp_path):
    (tmp_path / "set.csv").write_bytes(b"question\xff")
    with pytest.raises(InputError, match="no UTF-8"):
        labelled.load_questions(tmp_path / "set.csv")
    for path in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            labelled.load_questions(path)


CHUNK = st.builds(lambda name, at: Chunk(name, *at, "x" * (at[1] - at[0]), 3), st.sampled_from(NAMES), SPAN)
LABELLED = st.builds(
    labelled.Question, st.just("Who?"), st.sampled_from("abc"), st.lists(REFERENCE, max_size=3).map(tuple)
)


def test_questions_about_documents_are_those_of_their_names_without_endings():
    questions = [labelled.Question(f"Who is {name}?", name, ()) for name in ("a", "b", "a.md", "a")]
    assert labelled.questions_about(questions, ["sub/a.html", "c.md"]) == [questions[0], questions[3]]
    assert labelled.questions_about(questions, ["a.md.txt"]) == [questions[2]]
    assert labelled.questions_about(questions, []) == []


def test_rows_of_one_file_are_told_apart():
    rows = [Chunk(f"shop/{name}", 0, 9, "x" * 9, 3) for name in ("prices.csv#2", "prices.csv#3")]
    asked = labelled.Question("What costs 9?", "prices#3", (labelled.Reference("x" * 9, 0, 9),))
    assert labelled.relevance([asked], rows).tolist() == [[False, True]]
    assert labelled.questions_about([asked], ["prices.csv#2", "prices.csv#12"]) == []
    assert [labelled.stem(name) for name in ("notes#2.md", "a#b/c.md#x", "all.zip/d.jsonl#10")] == [
        "notes#2",
        "c",
        "d#10",
    ]


@given(st.lists(LABELLED, max_size=4), st.lists(CHUNK, max_size=6))
def test_relevant_is_what_shares_a_character_of_the_same_document(questions, chunks):
    def characters(span):
        return set(range(span.start, span.end))

    expected = [
        [
            PurePath(chunk.document).stem == question.corpus_id
            and any(characters(chunk) & characters(reference) for reference in question.references)
            for chunk in chunks
        ]
        for question in questions
    ]
    found = labelled.relevance(questions, chunks)
    assert found.shape == (len(questions), len(chunks))
    assert found.dtype == bool
    assert found.tolist() == expected
