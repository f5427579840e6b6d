import pytest

from engine.documents.loaders import BUNDLED_CORPUS
from engine.documents.sentences import sentence_spans
from engine.evaluation.questions import load_questions, questions_about
from engine.settings import Configuration
from pages.improve.diagnose.other_settings import change_words
from tests.apps import app_page, by_label, plain, said, tables
from tests.model_files import edit_tensors
from tests.sentence_transformer_folders import save_reranker


def page(**state):
    return app_page("improve/diagnose", **{"searched": ["inside_the_pipeline.md"], **state}).run()


def document(name):
    return (BUNDLED_CORPUS / name).read_text(encoding="utf-8")


def headings(app):
    return [heading.value for heading in app.header]


def pasted(question, passage, **state):
    return page(
        **state
        | {
            "diagnose-way-True": "Paste the passage",
            "diagnose-question": question,
            "diagnose-passage": passage,
        }
    )


@pytest.fixture(scope="module")
def labelled(encoder):
    return page()


def test_a_labelled_question_that_misses_is_explained_at_once(labelled):
    assert headings(labelled)[:5] == [
        "In short",
        "1 · Is the text in a document?",
        "2 · Into which chunks was it cut?",
        "3 · Is any of it never read?",
        "4 · Where does it rank, and what outranks it?",
    ]
    assert labelled.warning
    assert "word for word" in said(labelled)
    assert int(labelled.metric[0].value.split(" of ")[0]) > 4


def test_all_labelled_questions_can_be_seen_those_found_too(labelled):
    app = page(**{"diagnose-missing": False})
    few, all_of_them = (by_label(each.selectbox, "Question and passage") for each in (labelled, app))
    assert set(few.options) < set(all_of_them.options)
    found = next(option for option in all_of_them.options if option not in few.options)
    app = all_of_them.set_value(found).run()
    assert app.success[0].value.startswith("It was found")


def test_the_question_of_the_session_comes_first(labelled):
    *_, last = questions_about(load_questions(), ["inside_the_pipeline.md"])
    app = page(**{"current-question": last.text})
    assert by_label(app.selectbox, "Question and passage").value.startswith(last.text[:30])
    assert page(**{"diagnose-way-True": "none of the ways"}).button_group[0].value == "A labelled question"
    assert f"Question: {last.text}" in said(app)


def test_a_text_of_no_document_ends_at_the_first_step(encoder):
    app = pasted("Why?", "A purple <b>submarine</b> sank near Iceland last Tuesday.")
    assert headings(app) == ["In short", "1 · Is the text in a document?"]
    assert "It is not in the documents" in said(app)


@pytest.mark.parametrize(("least", "is_refused"), [(100, True), (0, False)])
def test_a_passage_that_is_found_but_too_far_for_an_answer_is_said_to_be(encoder, least, is_refused):
    passage = document("inside_the_pipeline.md")[400:600]
    question = f"Is {passage.split()[5]} mild this winter?"
    app = pasted(question, " ".join(passage.split()), retriever="bm25", k=10, min_relevance=least)
    assert "It was found" in said(app)
    assert ("It is found, but too far from the question" in said(app)) is is_refused


def test_without_a_question_or_a_passage_both_are_asked_for(encoder):
    assert "Give the question, and the passage" in said(pasted("", ""))
    assert not headings(pasted("Why?", " "))


def test_a_sentence_is_picked_by_its_words(encoder):
    app = page(
        **{
            "diagnose-way-True": "Find it in a document",
            "diagnose-question": "How many words does it know?",
            "diagnose-words": "vocabulary WORDPIECE",
        }
    )
    text = document("inside_the_pipeline.md").lower()
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    options = by_label(app.selectbox, "The passage").options
    assert len(options) == sum("vocabulary" in each and "wordpiece" in each for each in sentences) > 0
    assert "word for word" in said(app)
    assert "No sentence of this document" in said(
        page(**{"diagnose-way-True": "Find it in a document", "diagnose-words": "zebra crossing"})
    )


def test_other_settings_are_measured_and_the_change_is_taken_over(encoder):
    app = page(
        **{
            "diagnose-splitter": [],
            "diagnose-chunk_tokens": [256],
            "diagnose-overlap": [],
            "diagnose-pooling": [],
            "diagnose-retriever": ["bm25", "hybrid"],
        }
    )
    assert "4 of 4 combinations" in said(app)
    app = by_label(app.button, "Try other settings").click().run()
    assert "All 4 combinations are measured." in said(app)
    table = tables(app)[-1]
    assert len(table) == 4
    assert table["Rank"].tolist() == sorted(table["Rank"])
    now = table[table["Changed"] == "nothing (now)"].iloc[0]
    assert app.metric[0].value.startswith(f"{now['Rank']} of ")
    assert {"Won", "Lost"} <= {metric.label for metric in app.metric}
    # What is said first is what was measured, and no advice beside it.
    [short] = [plain(info.value) for info in app.info if info.value.startswith("Measured below")]
    assert plain(said(app)).count(short.removeprefix("Measured below: ")) == 2
    assert plain(app.info[0].value) == short
    assert "others change too, so measure it" not in said(app)
    box = by_label(app.selectbox, "Look at")
    sized = next(number for number, option in enumerate(box.options) if "chunk size 192 → 256" in option)
    app = box.set_value(sized).run()
    asked = by_label(app.selectbox, "Question and passage").value
    app = by_label(app.button, "Use these settings").click().run()
    assert by_label(app.selectbox, "Question and passage").value == asked
    assert app.slider(key="chunk_tokens").value == 256
    assert app.success[0].value.startswith("It was found")


def test_the_rank_now_is_that_of_the_apps_retriever_and_a_change_of_it_is_taken_over(encoder):
    nothing_else = {f"diagnose-{axis}": [] for axis in ("splitter", "chunk_tokens", "overlap", "pooling")}
    app = page(retriever="bm25", **nothing_else, **{"diagnose-retriever": ["dense"]})
    assert int(app.metric[0].value.split(" of ")[0]) > 4
    app = by_label(app.button, "Try other settings").click().run()
    table = tables(app)[-1].set_index("Retriever")
    now, vectors = table.loc["BM25 (words)"], table.loc["dense (cosine)"]
    assert now["Changed"] == "nothing (now)"
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Rank"].startswith(f"{now['Rank']} of ")
    assert metrics["By vectors"] == str(vectors["Rank"])
    app = by_label(app.button, "Use these settings").click().run()
    assert app.selectbox(key="retriever").value == "dense"
    assert app.success[0].value.startswith("It was found")


def test_changes_are_named_with_both_values():
    current = Configuration("fixed", 128, 16, "m", 256, "mean", "dense", 4)
    configuration = Configuration("sentences", 64, 16, "m", 256, "mean", "bm25", 4)
    assert change_words(current, configuration) == (
        "splitter Fixed size → Sentences, chunk size 128 → 64 and retriever dense (cosine) → BM25 (words)"
    )


def test_another_cross_encoder_ranks_anew(tmp_path):
    first, second = save_reranker(tmp_path / "first"), save_reranker(tmp_path / "second")

    def negate(weights):
        weights["classifier.weight"] *= -1  # the order of the first, from the other end

    edit_tensors(second, negate)
    asked = "What does a loader do?", "A loader turns a file into plain text."
    app, other = (pasted(*asked, retriever="cross-encoder", reranker=str(path)) for path in (first, second))
    alone = other.metric[0].value
    assert app.metric[0].value != alone
    app.session_state["reranker"] = str(second)
    assert app.run().metric[0].value == alone
