"""The diagnosis and the best settings, on documents and questions of one's own beside the bundled ones."""

from engine.documents.document import Document
from engine.evaluation.questions import Question, Reference, question_fields
from engine.storage.workspace import Workspace
from pages.improve.poolings.quality import TRUST
from pages.improve.settings.results import ACROSS_K
from tests.apps import app_page, by_label, own_documents, said
from ui.questions.kept import BUNDLED, DRAFTS, LABELLED
from ui.text import escape_markdown

FACTS = {
    "bees": (
        ("How does a worker tell others where food is?", "A forager dances the way to the flowers."),
        ("Who lays the eggs?", "The queen alone becomes the mother of the whole colony."),
        ("What is honey made of?", "Nectar is thickened in the comb by beating wings."),
        ("Why is smoke used on hives?", "Fumes dull the scent of alarm, so keepers are not stung."),
    ),
    "bread": (
        ("What makes dough rise?", "Yeast turns sugar into gas that is caught in the gluten."),
        ("Why does a crust turn brown?", "Above 140 degrees sugars and proteins react with each other."),
        ("How is sourdough kept alive?", "The starter is fed flour and water every day."),
        ("What does salt do?", "It slows the ferment and tightens the crumb."),
    ),
    "clocks": (
        ("What sets the pace of a pendulum?", "Its length alone decides how long a swing takes."),
        ("Why do watches tick?", "The escapement lets the train go one tooth at a time."),
        ("How do ships find longitude?", "A chronometer keeps the hour of the port they left."),
        ("What drives a quartz watch?", "A crystal trembles 32768 times a second under a battery."),
    ),
}
FILLER = "Nobody in the village had much to say about it that year, and the weather was mild again. "


def own(stem):
    """A document, and the questions about it with their passages where they stand."""
    text, questions = "", []
    for asked, passage in FACTS[stem]:
        text += FILLER * 4
        questions.append(Question(asked, stem, (Reference(passage, len(text), len(text) + len(passage)),)))
        text += passage + " "
    return Document(f"{stem}.md", text), questions


DOCUMENTS, LABELS = zip(*map(own, FACTS), strict=True)
OWN = [document.name for document in DOCUMENTS]
QUESTIONS = [question for labels in LABELS for question in labels]


def page(name, sets, searched=OWN, **state):
    """A page with the own documents loaded, and these question sets kept."""
    rows = {key: [question_fields(question) for question in asked] for key, asked in sets.items()}
    loaded = own_documents(*DOCUMENTS) | {"searched": list(searched)} | state
    return app_page(f"improve/{name}", workspace=Workspace(question_sets=rows), **loaded).run()


def toggle(app):
    return next(each for each in app.toggle if each.label.startswith("Only those")).label


def expander(app):
    return next(box for box in app.expander if box.label.startswith("Questions: "))


FEW_READ = {"diagnose-missing": False, "k": 1, "chunk_tokens": 32}


def test_ones_own_questions_are_diagnosed_and_guard_each_other(encoder):
    halves = {LABELLED: QUESTIONS[:5], "mine.jsonl": QUESTIONS[4:]}  # one is in both
    app = page("diagnose", halves, **FEW_READ)
    box = by_label(app.selectbox, "Question and passage")
    assert len(box.options) == 12
    for question in QUESTIONS:
        assert any(question.text in option for option in box.options)
    app = box.set_value(next(each for each in box.options if QUESTIONS[0].text in each)).run()
    assert f"Question: {escape_markdown(QUESTIONS[0].text)}" in said(app)


def test_a_passage_that_the_retriever_does_not_find_at_all_is_among_the_missing(encoder):
    app = page("diagnose", {"mine.jsonl": QUESTIONS}, retriever="bm25", chunk_tokens=32)
    assert toggle(app).endswith(" of 12")
    box = by_label(app.selectbox, "Question and passage")
    app = box.set_value(next(each for each in box.options if "Why do watches tick?" in each)).run()
    assert "does not find it" in said(app)


def pooling_view(view, **sets):
    state = {"pooling-question": "Why?", "pooling-tab": view, "pooling-question-part": TRUST}
    return said(page("poolings", sets, chunk_tokens=32, **state))


def test_poolings_are_compared_on_ones_own_questions(encoder):
    both = {"mine.jsonl": QUESTIONS[:8], LABELLED: QUESTIONS[7:]}  # one is in both
    assert "about the chosen documents: 12." in pooling_view("Your question", **both)
    assert "about the chosen documents: 4." in pooling_view("Your question", mine=QUESTIONS[:4])
    assert "label some on the page “Questions”" in pooling_view("Your question")


def test_a_choice_of_drafts_points_to_the_labels_that_it_leaves_aside(encoder):
    for n, is_few in ((0, None), (1, True), (12, False)):
        app = page("settings", {LABELLED: QUESTIONS[:n]}, questions=DRAFTS)
        pointers = [each.value for each in app.info if "You labelled" in each.value]
        assert ["rom 10 on" in words for words in pointers] == ([] if n == 0 else [is_few])
        assert all(f"You labelled {n} question" in words for words in pointers)
    app.selectbox(key="questions").set_value(LABELLED).run()
    assert "You labelled" not in said(app)


def test_the_question_set_says_what_it_is_and_opens_where_none_is_usable(encoder):
    app = page("settings", {"mine.jsonl": QUESTIONS}, ["inside_the_pipeline.md"])
    assert expander(app).label.endswith(" 34 usable")
    assert BUNDLED in expander(app).label
    assert not expander(app).proto.expanded
    app.session_state["searched"] = OWN
    app.run()
    assert expander(app).label == f"Questions: {BUNDLED}, none usable"
    assert expander(app).proto.expanded
    assert "310 about documents that are not searched" in said(app)
    app.selectbox(key="questions").set_value("mine.jsonl").run()
    assert expander(app).label.endswith(", 12 usable")
    assert not expander(app).proto.expanded
    app.session_state["searched"] = ["bees.md"]
    app.run()
    folded = {caption.value for caption in expander(app).caption}
    [left_out] = [one.value for one in app.caption if "8 about documents that are not searched" in one.value]
    assert left_out not in folded


def test_the_grid_follows_the_passages_of_the_app_until_others_are_chosen(encoder):
    app = page("settings", {"mine.jsonl": QUESTIONS}, k=1)
    assert app.multiselect(key="grid-k").value == [1]
    app.slider(key="k").set_value(3).run()
    assert app.multiselect(key="grid-k").value == [3]
    assert ACROSS_K not in said(app)
    app.multiselect(key="grid-k").set_value([3, 5]).run()
    assert ACROSS_K in said(app)
    app.slider(key="k").set_value(2).run()
    assert app.multiselect(key="grid-k").value == [3, 5]


def test_what_a_grid_leaves_out_of_the_app_is_said(encoder):
    app = page("settings", {"mine.jsonl": QUESTIONS})
    assert "Small to big" not in said(app)
    app.slider(key="parent_tokens").set_value(512).run()
    assert "Small to big (512 tokens) is left out here, of the baseline too" in said(app)
