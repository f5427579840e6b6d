from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document, Section
from engine.documents.splitters import SPLITTERS, Splitting, split
from engine.errors import InputError
from engine.evaluation.questions import Question, Reference, relevance
from engine.evaluation.sweep import SweepInputs, sweep
from engine.inspection.diagnosis.causes import InUse, causes
from engine.inspection.diagnosis.diagnose import (
    centred_span,
    diagnose,
    group_repeats,
    shared_words,
)
from engine.inspection.diagnosis.location import Location, chunk_overlaps, locate, matching_rows, middle_half
from engine.inspection.diagnosis.setting_changes import (
    changed_settings,
    effect_on_others,
    fixing_rows,
    nearby_configurations,
    other_questions,
    passage_question,
    passage_rank,
    setting_distance,
    values_to_try,
)
from engine.retrieval.index import Index, build_index
from engine.retrieval.retrievers import usable_retrievers
from engine.settings import Configuration

FILLER = {
    "bees.txt": "The keeper of the lighthouse kept bees and sold the honey in jars.",
    "bread.txt": "Knead the dough for ten minutes, then let it rest overnight under a damp cloth.",
    "chess.txt": "The bishop moves along diagonals, and the rook along ranks and files.",
    "tax.txt": "The tax office wants the form by the end of May, with all receipts.",
}
DOUGH = "Knead the dough for ten minutes, then let it rest overnight under a damp cloth. "
TOWER = "The Vardholm tower was finished in 1891 by forty masons."
FERROW = (
    "Anna Ferrow, who had tamed the river otter Pim as a girl, moved to Lisbon and became a maker of "
    "stained glass."
)
OTTER = "A tame otter lived under the chemist's shop."

# Of each cause: the question, the passage, the documents besides the filler, and what differs from
# chunks of 128 tokens, of which 256 are read, and two of which are found.
CASES = {
    "truncated": (
        "When was the Vardholm tower finished?",
        TOWER,
        {
            "long.txt": DOUGH * 4 + TOWER,
            "a.txt": "A tower is a tall building, and this one took masons years to finish.",
            "b.txt": "When a tower was finished, its masons held a feast.",
            "c.txt": "Towers were built in stone in that century.",
        },
        {"max_tokens": 48},
    ),
    "split": (
        "Where did the woman who tamed the otter Pim make stained glass?",
        FERROW,
        {
            "log.txt": "Bread was baked and sold in the town square as on every other day, and the river was "
            f"calm. {FERROW} The bakery opened again at noon, and the children got out of school early "
            "because of the heat.",
            "a.txt": "Otters live at rivers.",
            "b.txt": "Stained glass is made in Lisbon, where makers of glass had a guild.",
            "c.txt": "A woman made glass.",
        },
        {"chunk_tokens": 44, "k": 1},
    ),
    "near duplicates": (
        "How many moons does Jupiter have?",
        "Galileo saw four moons that circle around the planet Jupiter.",
        {
            "g.txt": "Galileo saw four moons that circle around the planet Jupiter.",
            "1.txt": "Jupiter has ninety-five known moons.",
            "2.txt": "Jupiter has ninety-five known moons!",
            "3.txt": "Jupiter has 95 known moons.",
        },
        {},
    ),
    "word mismatch": (
        "What does E4471 mean?",
        "E4471: the paper tray is empty.",
        {
            "1.txt": "E4471: the paper tray is empty.",
            "2.txt": "E4417: the meaning of a code is not known.",
            "3.txt": "E4771: a message has a meaning that was not understood.",
            "4.txt": "E4470: what was meant by the command is unclear.",
            "5.txt": "E4472: error without a meaning.",
        },
        {},
    ),
    "pooled away": (
        "Which animal did the pharmacist keep in the cellar?",
        OTTER,
        {
            "town.txt": "The town hall was painted white in spring, and the mayor held a speech about taxes. "
            "Trains to the coast leave each hour from platform two. The theatre shows an opera about a "
            f"miller. {OTTER} The football club lost its last three games and dismissed the coach. Rain "
            "fell for nine days and the river flooded the lower streets.",
            "a.txt": "Animals may be kept in a cellar only with a permit.",
            "b.txt": "The pharmacist keeps medicine in the cellar.",
            "c.txt": "Which animals can be kept at home depends on the law.",
        },
        {},
    ),
    "other words": (
        "Where can a motorist fill up?",
        "Petrol is sold at the pumps behind the church.",
        {
            "p.txt": "Petrol is sold at the pumps behind the church.",
            "a.txt": "A motorist can fill a form at the station.",
            "b.txt": "Motorists fill the roads in summer.",
            "c.txt": "Where a motorist may drive.",
        },
        {},
    ),
    "outranked": (
        "Who painted the ceiling of the chapel?",
        "Visitors to the chapel look at the ceiling first.",
        {
            "p.txt": "Visitors to the chapel look at the ceiling first.",
            "a.txt": "The ceiling of the chapel was painted by Ada Brook.",
            "b.txt": "Painters of the chapel: its ceiling was painted by Ida Bruck, its walls by Max Stein.",
        },
        {"k": 1},
    ),
}

CURRENT = Configuration("fixed", 128, 0, "m", 48, "mean", "dense", 2)


def documents_of(texts):
    return [Document(name, text) for name, text in (texts | FILLER).items()]


def diagnosed(encoder, case, **other):
    question, passage, texts, given = CASES[case]
    values = {"splitter": "fixed", "chunk_tokens": 128, "overlap": 0, "max_tokens": 256, "k": 2}
    values |= {"pooling": "mean"} | given | other
    documents = documents_of(texts)
    place = locate(passage, documents)
    splitting = Splitting(values["splitter"], values["chunk_tokens"], values["overlap"])
    chunks = [chunk for each in documents for chunk in split(each, encoder.tokenizer, splitting)]
    index = build_index(chunks, encoder, values["pooling"], values["max_tokens"])
    [document] = [each for each in documents if each.name == place.document]
    return diagnose(question, place, document, index, encoder, values["k"]), index


def used(found, rank=None, longest=512, **settings):
    """Settings in use; the retriever is dense, and ranks the passage as its cosine does, unless given."""
    return InUse(replace(CURRENT, k=found.k, **settings), longest, rank or found.now.rank)


def sentences(found, *given, **settings):
    """The causes of a diagnosis by their kinds, each with its sentence."""
    return {cause.kind: cause.sentence for cause in causes(found, used(found, *given, **settings))}


@pytest.mark.parametrize("case", CASES)
def test_each_cause_is_found_and_no_other(encoder, case):
    found, index = diagnosed(encoder, case)
    [cause] = causes(found, used(found))
    assert cause.kind == case
    assert not found.found
    if case in ("other words", "outranked"):
        assert cause.rank is None
    else:
        assert cause.rank <= found.k < found.now.rank
        assert f"{cause.rank:,}" in cause.sentence
    # Ranks and scores are those of a search.
    vector = encoder.encode([CASES[case][0]], max_tokens=index.spec.max_tokens)[0]
    order, scores = index.nearest(vector[None], len(index.chunks))[::-1]
    assert order[0, : found.now.rank].tolist() == [*found.above, found.row]
    assert scores[0, found.now.rank - 1] == pytest.approx(found.now.score, abs=1e-6)


@pytest.mark.parametrize(("relevance", "kinds"), [(75.0, ["not relevant"]), (90.0, []), (99.0, [])])
def test_a_passage_is_found_and_all_that_is_found_is_too_far_for_an_answer(encoder, relevance, kinds):
    found, _ = diagnosed(encoder, "other words")
    in_use = replace(used(found, rank=1), relevance=relevance, min_relevance=90.0)
    found_causes = causes(found, in_use)
    assert [cause.kind for cause in found_causes] == kinds
    for cause in found_causes:
        assert "25 find a passage as close" in cause.headline
        assert "at most 10 may" in cause.headline


@pytest.mark.parametrize(
    ("case", "settings", "advised", "not_advised"),
    [
        ("truncated", {"max_tokens": 48}, "Raise the limit, or cut smaller chunks", "read by BM25"),
        ("truncated", {"max_tokens": 512}, "Cut smaller chunks", "Raise the limit"),
        ("split", {"splitter": "fixed"}, "Let chunks overlap more, or cut at sentences", "larger chunks"),
        ("split", {"splitter": "sentences"}, "Let chunks overlap more, or cut larger chunks", "sentences"),
        ("split", {"splitter": "sliding"}, "Cut larger chunks", "overlap"),
        ("split", {"splitter": "fixed", "overlap": 64}, "Cut at sentences", "overlap"),
        ("near duplicates", {"retriever": "dense"}, "or search by maximal marginal relevance", "in use"),
        ("near duplicates", {"retriever": "mmr"}, "Remove duplicates", "or search by"),
        ("pooled away", {"chunk_tokens": 128}, "Try smaller chunks", "sentences"),
        ("pooled away", {"chunk_tokens": 16}, "", "smaller chunks"),
        ("word mismatch", {"retriever": "dense"}, "hybrid", "alone"),
        ("word mismatch", {"retriever": "hybrid"}, "BM25 only", "both at once"),
        ("word mismatch", {"retriever": "weighted"}, "BM25 only", "both at once"),
    ],
)
def test_what_is_in_use_is_not_advised(encoder, case, settings, advised, not_advised):
    found, _ = diagnosed(encoder, case)
    sentence = sentences(found, **settings)[case]
    assert advised in sentence
    assert not_advised not in sentence


def test_a_search_by_words_only_has_no_cause_in_vectors(encoder):
    for case in ("truncated", "split", "near duplicates", "pooled away"):
        found, _ = diagnosed(encoder, case)
        assert set(sentences(found, 7, retriever="bm25")) <= {"outranked", "other words"}
        assert "vector" not in "".join(sentences(found, 7, retriever="bm25").values())
    found, _ = diagnosed(encoder, "split")
    assert "6 other chunks" in sentences(found, 7, retriever="bm25")["outranked"]
    found, _ = diagnosed(encoder, "other words")
    [sentence] = [one.sentence for one in causes(found, replace(used(found, retriever="bm25"), rank=None))]
    assert "BM25 finds no chunk without one" in sentence


def test_a_retriever_that_puts_others_above_a_near_vector_is_the_cause(encoder):
    found, _ = diagnosed(encoder, "other words", k=4)
    assert found.found
    said = sentences(found, 9, retriever="hybrid")
    assert set(said) == {"retriever"}
    assert f"would rank {found.now.rank}" in said["retriever"]
    assert "ranks it 9" in said["retriever"]
    assert "dense (cosine)" in said["retriever"]
    assert sentences(found, 2, retriever="hybrid") == {}


def test_words_are_compared_by_their_stems_and_shown_as_they_are_asked():
    asked, passage = "How is inventory valued, and inventory of what?", "Inventories take the value of costs."
    assert shared_words(asked, passage, "english") == ("inventory", "valued")
    assert shared_words("What is it?", passage, "english") == ()
    assert shared_words("钥匙在哪里？", "厨房门后的钥匙。", "chinese") == ("钥匙", "钥", "匙")


@pytest.mark.parametrize(
    ("case", "cure"),
    [
        ("truncated", {"max_tokens": 128}),
        ("split", {"chunk_tokens": 66}),
        ("pooled away", {"chunk_tokens": 18, "splitter": "sentences"}),
        ("other words", {"k": 4}),
    ],
)
def test_what_is_cured_has_no_cause(encoder, case, cure):
    found, _ = diagnosed(encoder, case, **cure)
    assert found.found
    assert causes(found, used(found)) == ()


def test_the_passage_by_itself_ranks_as_a_chunk_of_its_own(encoder):
    question = CASES["pooled away"][0]
    found, index = diagnosed(encoder, "pooled away")
    others = [chunk for chunk in index.chunks if chunk.document != "town.txt"]
    index = build_index([*others, Chunk("x", 0, len(OTTER), OTTER, 14)], encoder, max_tokens=256)
    scores = index.vectors @ encoder.encode([question])[0]
    assert found.by_itself.rank == 1 + (scores > scores[-1]).sum()
    assert found.by_itself.score == pytest.approx(scores[-1], abs=1e-5)


def test_unread_characters_are_those_behind_the_limit(encoder):
    found, index = diagnosed(encoder, "truncated")
    text = index.chunks[found.row].text
    assert [text[start:end] for start, end in found.unread] == [TOWER]
    assert found.n_unread == found.length == len(TOWER)
    assert found.overlaps[0].share == 1
    assert found.overlaps[0].read == 0


def test_a_passage_read_by_an_overlapping_chunk_is_not_lost(encoder):
    found, _ = diagnosed(encoder, "truncated", chunk_tokens=60, overlap=28, max_tokens=60)
    assert found.unread == ()
    assert max(each.read for each in found.overlaps) == 1


def test_groups_of_near_duplicates_count_once():
    one, two, three = np.eye(3, dtype=np.float32)
    near = (one + 0.1 * two) / np.linalg.norm(one + 0.1 * two)
    chunks = tuple(Chunk("d.csv", place, place + 1, "x", 3) for place in range(4))
    index = Index(chunks, np.stack([three, one, near, two]), None)
    assert group_repeats(index, 0, [1, 2, 3]) == (((1, 2),), 3)
    assert group_repeats(index, 2, [1, 3]) == (((2, 1),), 2)  # a repeat of the passage itself is no rival
    assert group_repeats(index, 3, []) == ((), 1)
    table = Document("d.csv", "xxxx", sections=(Section(0, ("row 2",), is_row=True),))
    assert group_repeats(replace(index, documents={"d.csv": table}), 0, [1, 2, 3]) == ((), 4)


def test_a_lost_end_is_a_cause_only_where_it_would_be_found_or_is_most_of_the_passage(encoder):
    found, _ = diagnosed(encoder, "truncated")
    far = replace(found.tail_read, rank=5)
    end = found.unread[0][1]
    few = ((end - 5, end),)
    assert "truncated" in sentences(replace(found, tail_read=far))
    assert "truncated" in sentences(replace(found, unread=few))
    assert "truncated" not in sentences(replace(found, unread=few, tail_read=far))


def test_nothing_to_look_for_is_refused(encoder):
    assert locate("The purple submarine sank near Iceland last Tuesday.", documents_of({})) is None
    assert [cause.kind for cause in causes(None)] == ["not in the corpus"]
    with pytest.raises(InputError, match="the passage is blank"):
        locate(" \n", documents_of({}))
    with pytest.raises(InputError, match="k is 0: look at 1 chunk or more"):
        diagnosed(encoder, "split", k=0)
    documents = documents_of({})
    index = build_index(split(documents[0], encoder.tokenizer), encoder)
    with pytest.raises(InputError, match=r"no chunk of bread\.txt holds this passage"):
        diagnose("Why?", Location("bread.txt", 0, 20), documents[1], index, encoder, 4)
    with pytest.raises(InputError, match="the question is empty"):
        diagnose(" ", Location("bees.txt", 0, 20), documents[0], index, encoder, 4)


@pytest.mark.parametrize(
    ("passage", "how"),
    [
        ("The keeper said: \"It's the bees' honey\" – and left.", "exact"),
        ("The keeper  said:\n“It’s the bees’ honey” - and left.", "alike"),
        ("The old keeper said: \"It's all the bees' honey\", and left.", "approximate"),
    ],
)
def test_a_passage_is_found_as_it_is_spelled_alike_or_approximately(passage, how):
    text = "Before. The keeper said: \"It's the bees' honey\" – and left. After."
    far = Document("far.txt", "The lazy keeper said on a day in spring: It's all the same, and stayed.")
    place = locate(passage, [far, Document("bees.txt", text)])
    assert (place.document, place.how) == ("bees.txt", how)
    assert text[place.start : place.end].startswith("The keeper said")
    assert text[place.start : place.end].rstrip(".").endswith("and left")
    assert (place.likeness < 1) == (how == "approximate")


spans = st.tuples(st.integers(0, 60), st.integers(1, 40)).map(lambda span: (span[0], sum(span)))


@given(spans, st.lists(spans, min_size=1, max_size=6))
def test_what_counts_as_found_is_what_a_metric_counts(passage, cuts):
    chunks = [Chunk("d.md", start, end, "x" * (end - start), 3) for start, end in cuts]
    place = Location("d.md", *passage)
    document = Document("d.md", "x" * 120)
    [relevant] = relevance([passage_question("Why?", place, document)], chunks)
    assert matching_rows(place, chunks) == np.flatnonzero(relevant).tolist()
    start, end = middle_half(place)
    assert passage[0] <= start < end <= passage[1]


@given(spans, st.lists(spans, min_size=1, max_size=6))
def test_a_chunk_holds_the_characters_that_it_shares(passage, cuts):
    chunks = [Chunk("d.md", start, end, "x" * (end - start), 3) for start, end in cuts]
    middles = [(chunk.start + chunk.end) // 2 for chunk in chunks]
    overlaps = {each.row: each for each in chunk_overlaps(Location("d.md", *passage), chunks, middles)}
    wanted = set(range(*passage))
    for row, chunk in enumerate(chunks):
        shared = len(wanted & set(range(chunk.start, chunk.end)))
        read = len(wanted & set(range(chunk.start, middles[row])))
        assert (row in overlaps) == bool(shared)
        if shared:
            assert overlaps[row].share == pytest.approx(shared / len(wanted))
            assert overlaps[row].read == pytest.approx(read / len(wanted))


@given(st.text("ab ", min_size=1, max_size=80), st.data())
def test_around_holds_the_passage_and_no_more_than_asked(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    size = data.draw(st.integers(0, 100))
    first, last = centred_span(Location("d.md", start, end), size, text)
    assert 0 <= first <= start < end <= last <= len(text)
    assert last - first <= max(size, end - start)


def test_the_nearest_settings_come_first_and_none_ranks_as_another(encoder):
    configurations = nearby_configurations(
        CURRENT, values_to_try(encoder) | {"max_tokens": [128]}, most_changes=2
    )
    assert configurations[0] == CURRENT
    assert len(configurations) == len(set(configurations))
    places = [setting_distance(CURRENT, configuration) for configuration in configurations]
    assert places == sorted(places)
    assert all(len(changed_settings(CURRENT, configuration)) <= 2 for configuration in configurations)
    assert replace(CURRENT, max_tokens=128) in configurations
    assert replace(CURRENT, retriever="bm25") in configurations
    assert replace(CURRENT, retriever="bm25", pooling="max") not in configurations
    assert replace(CURRENT, retriever="bm25", max_tokens=128) not in configurations
    fitting = replace(CURRENT, max_tokens=256)
    assert nearby_configurations(fitting, {"max_tokens": [512]}) == [fitting]


def test_all_values_that_a_model_can_do_are_tried(encoder):
    values = values_to_try(encoder)
    assert values["splitter"] == list(SPLITTERS)
    assert set(values["pooling"]) == {*encoder.poolings, "idf"}
    assert values["retriever"] == usable_retrievers(encoder)
    assert values["prompts"] == []
    near = nearby_configurations(CURRENT, values, most_changes=1)
    assert {one.splitter for one in near} == set(SPLITTERS)
    assert {one.retriever for one in near} == set(usable_retrievers(encoder))


def test_twice_the_size_is_as_far_as_half_of_it_and_nearer_than_two_changes():
    twice, half = replace(CURRENT, chunk_tokens=256), replace(CURRENT, chunk_tokens=64)
    assert setting_distance(CURRENT, twice) == setting_distance(CURRENT, half) == (1, 1.0)
    assert setting_distance(CURRENT, replace(CURRENT, overlap=16)) == (1, 0.5)
    assert setting_distance(CURRENT, replace(half, pooling="max")) == (2, 2.0)
    assert changed_settings(CURRENT, replace(half, pooling="max")) == ("chunk_tokens", "pooling")


@pytest.fixture(scope="module")
def measured(encoder):
    """The truncated tower and two other questions under the present settings and some others."""
    question, passage, texts, _ = CASES["truncated"]
    documents = documents_of(texts)
    place = locate(passage, documents)
    target = passage_question(question, place, documents[0])
    others = [
        Question("What did the lighthouse keeper sell?", "bees", (Reference("honey", 50, 55),)),
        Question("Which form does the office want?", "tax", (Reference("form", 25, 29),)),
    ]
    current = replace(CURRENT, model=encoder.name)
    values = {
        "splitter": ["fixed"],
        "chunk_tokens": [32],
        "max_tokens": [128],
        "pooling": ["cls"],
        "retriever": ["dense", "bm25"],
    }
    configurations = nearby_configurations(current, values, most_changes=1)
    rows = list(sweep(SweepInputs(documents, [target, *others], configurations, {encoder.name: encoder})))
    return current, rows


def test_the_rank_in_the_table_is_that_of_the_diagnosis(encoder, measured):
    for row in measured[1]:
        if row.configuration.retriever == "dense":
            configuration = row.configuration
            found, _ = diagnosed(
                encoder,
                "truncated",
                chunk_tokens=configuration.chunk_tokens,
                max_tokens=configuration.max_tokens,
                pooling=configuration.pooling,
            )
            assert passage_rank(row) == found.now.rank


def test_the_smallest_change_finds_the_passage_and_is_the_nearest_that_does(measured):
    current, rows = measured
    found = list(fixing_rows(current, rows))
    assert {row.configuration for row in found} == {
        row.configuration for row in rows if passage_rank(row) <= current.k and row.configuration != current
    }
    assert replace(current, max_tokens=128) in {row.configuration for row in found}
    assert len(changed_settings(current, found[0].configuration)) == 1


def test_the_effect_on_others_counts_those_won_and_lost(measured):
    current, rows = measured
    before = next(row for row in rows if row.configuration == current)
    assert effect_on_others(before, before).won == effect_on_others(before, before).lost == ()

    def with_hits(hits, reciprocal):
        return replace(before, values={"hit_rate@k": (0.0, *hits), "mrr": (0.0, *reciprocal)})

    effect = effect_on_others(with_hits((1, 0, 0), (1, 0.2, 0.2)), with_hits((0, 1, 1), (0.25, 1, 0.5)))
    assert effect.won == (1, 2)
    assert effect.lost == (0,)
    assert (effect.hits_before, effect.hits_after) == pytest.approx((1 / 3, 2 / 3))
    assert effect.mrr.difference == pytest.approx((-0.75 + 0.8 + 0.3) / 3)
    assert effect_on_others(with_hits((), ()), with_hits((), ())) is None


def test_the_question_itself_and_those_about_absent_documents_are_no_others():
    def asked(text, name):
        return Question(text, name, (Reference("x", 0, 1),))

    target, other, absent = asked("Why?", "a"), asked("How?", "a"), asked("Who?", "b")
    unanswered = Question("When?", "a", ())
    given = [target, asked("Why?", "a"), other, absent, unanswered]
    assert other_questions(target, given, [Document("a.txt", "x")]) == [other]
