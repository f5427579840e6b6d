import json
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import InputError, ModelUnavailableError
from engine.evaluation import metrics, sweep_cost
from engine.evaluation.bootstrap import level_interval
from engine.evaluation.grid import grid
from engine.evaluation.library_model import LibraryModel, load_model
from engine.evaluation.questions import Question, Reference, relevance
from engine.evaluation.spans import best_chunks, span_metrics
from engine.evaluation.sweep import SweepInputs, computing_seconds, sweep
from engine.evaluation.sweep_cost import sweep_seconds
from engine.evaluation.sweep_row import ranked, retrieved, retrieves_every_chunk
from engine.evaluation.sweep_store import append, resume, row_fields, stamp_of
from engine.models.encoder import Encoder
from engine.models.reranker import Reranker
from engine.retrieval.retrievers import SearchInputs, SearchTexts, retriever_scores, usable_retrievers
from engine.retrieval.vector_cache import VectorCache
from engine.settings import Configuration
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.pytorch import modules, sentence_transformers
from tests.sentence_transformer_folders import edit_json, save_bert, save_reranker

FACTS = [
    "The lighthouse of Vardholm was painted green in 1931 by its keeper.",
    "Bees were kept behind the tower, and their honey was sold in the village.",
    "A storm tore the lantern off in 1954, which took two years to replace.",
    "Knead the dough for ten minutes, then let it rise under a cloth.",
    "Rye bread wants a sour starter, fed with water and flour each day.",
    "The oven must be very hot, and a bowl of water makes the crust shine.",
    "Chess is played on sixty-four squares, by two players with sixteen pieces.",
    "A pawn that reaches the last row becomes a queen, or what one likes.",
]
ASKED = ["What colour is the lighthouse?", "How long is dough kneaded?", "What becomes of a pawn?", "Who?"]
ANSWERS = [("notes", 0), ("rye", 3), ("tables", 7), ("notes", 2)]


@pytest.fixture(scope="module")
def documents():
    texts = {"notes.md": FACTS[:3] * 2, "rye.txt": FACTS[3:6], "tables.txt": FACTS[6:]}
    return [Document(name, "\n\n".join(facts)) for name, facts in texts.items()]


@pytest.fixture(scope="module")
def questions(documents):
    text = {document.name.partition(".")[0]: document.text for document in documents}
    return [
        Question(
            asked, name, (Reference(FACTS[n], text[name].find(FACTS[n]), text[name].find(FACTS[n]) + 40),)
        )
        for asked, (name, n) in zip(ASKED, ANSWERS, strict=True)
    ]


@pytest.fixture(scope="module")
def models(encoder):
    return {encoder.name: encoder}


@pytest.fixture(scope="module")
def configurations():
    return grid(
        splitter=["fixed", "sentences"],
        chunk_tokens=[16, 32],
        overlap=[4],
        pooling=["mean", "idf"],
        retriever=["dense", "bm25", "hybrid", "weighted"],
        k=[1, 3],
    ).configurations


@pytest.fixture(scope="module")
def rows(documents, questions, configurations, models):
    return list(sweep(SweepInputs(documents, questions, configurations, models)))


def without_time(rows):
    return {row.configuration: replace(row, seconds=0, search_seconds=0) for row in rows}


def by_hand(documents, questions, configuration, encoder):
    """The plain way to measure one configuration, with nothing shared."""
    in_order = sorted(documents, key=lambda document: document.name)
    chunks = [chunk for each in in_order for chunk in split(each, encoder.tokenizer, configuration.splitting)]
    texts, asked = [chunk.text for chunk in chunks], [question.text for question in questions]
    model = encoder.with_idf(texts)
    vectors = [
        model.encode(some, configuration.pooling, max_tokens=configuration.max_tokens)
        for some in (asked, texts)
    ]
    searched = SearchInputs(
        SearchTexts(tuple(asked), tuple(texts), encoder, configuration.max_tokens), *vectors
    )
    scores = retriever_scores(configuration.retriever, searched)
    judged = scores, relevance(questions, chunks)
    spans = [
        span_metrics([chunks[i] for i in best if relevant[i]], sum(len(texts[i]) for i in best), question)
        for best, relevant, question in zip(
            best_chunks(scores, configuration.k), judged[1], questions, strict=True
        )
    ]
    n_tokens = np.array([chunk.n_tokens for chunk in chunks])
    return len(chunks), {
        "mrr": metrics.reciprocal_rank(*judged),
        "hit_rate@k": metrics.hit_rate(*judged, configuration.k),
        "recall@k": metrics.recall(*judged, configuration.k),
        "precision@k": metrics.precision(*judged, configuration.k),
        "found_at_equal_reading": (
            metrics.tokens_to_first(metrics.first_relevant(*judged), n_tokens) <= 1024
        ).astype(float),
        "ndcg@k": metrics.ndcg(*judged, configuration.k),
        "span_recall@k": np.array([span.recall for span in spans]),
        "span_precision@k": np.array([span.precision for span in spans]),
        "span_iou@k": np.array([span.iou for span in spans]),
    }


def test_a_row_is_what_the_plain_way_gives(documents, questions, configurations, models, rows, encoder):
    assert {row.configuration for row in rows} == set(configurations)
    for row in random.Random(0).sample(rows, 12):
        n_chunks, expected = by_hand(documents, questions, row.configuration, encoder)
        assert (row.n_chunks, row.n_questions) == (n_chunks, len(questions))
        assert set(row.metrics) == set(row.values) == set(row.intervals) == set(expected)
        for name, values in expected.items():
            assert row.values[name] == pytest.approx(values)
            assert row.metrics[name] == pytest.approx(values.mean())
            interval = level_interval(values)
            assert row.intervals[name] == pytest.approx((interval.low, interval.high))


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 12), st.integers(1, 15), st.integers(1, 4)
)
def test_metrics_of_the_best_alone_are_those_of_all(seed, n_questions, n_chunks, k, n_scores):
    generator = np.random.default_rng(seed)
    scores = generator.integers(n_scores, size=(n_questions, n_chunks)).astype(np.float32)  # with many ties
    relevant = generator.random((n_questions, n_chunks)) < generator.random()
    best = ranked(scores, relevant, 15, np.ones(n_chunks, int))
    first = retrieved(best, k)
    assert first.reciprocal_ranks == pytest.approx(metrics.reciprocal_rank(scores, relevant))
    for metric in (metrics.hit_rate, metrics.recall, metrics.precision, metrics.ndcg):
        assert metric(first.scores, first.relevant, k) == pytest.approx(metric(scores, relevant, k))


def test_every_retriever_and_splitter_is_swept(documents, questions, models, encoder):
    made = grid(splitter=["sliding", "markdown"], chunk_tokens=[32], retriever=["mmr", "maxsim"], k=[2])
    for row in sweep(SweepInputs(documents, questions, made.configurations, models)):
        _, expected = by_hand(documents, questions, row.configuration, encoder)
        assert row.values["mrr"] == pytest.approx(expected["mrr"])
        assert row.values["span_iou@k"] == pytest.approx(expected["span_iou@k"])
    [row] = sweep(SweepInputs(documents, questions, [Configuration("semantic", 64, 0)], models))
    cut = row.configuration.splitting
    assert row.n_chunks == sum(len(split(one, encoder.tokenizer, cut, encoder.encode)) for one in documents)


def test_a_stopped_sweep_goes_on_where_it_was(documents, questions, configurations, models, rows):
    kept, cache, told = [], VectorCache(), []
    given = SweepInputs(documents, questions, configurations, models), cache
    for row in sweep(*given, is_stopped=lambda: len(kept) == 7):
        kept.append(row)
    assert len(kept) == 7
    assert cache.n_vectors > 0
    rest = list(sweep(*given, on_progress=lambda *done: told.append(done), done=kept))
    assert without_time([*kept, *rest]) == without_time(rows)
    n = len(configurations)
    assert [part for part, _ in told] == sorted(part for part, _ in told)
    assert (told[0], told[-1]) == ((7, n), (pytest.approx(n), n))
    assert list(sweep(*given, done=rows)) == list(sweep(*given, is_stopped=lambda: True)) == []


def test_a_sweep_stopped_within_a_configuration_goes_on_there(
    documents, questions, models, monkeypatch, tmp_path
):
    made = grid(retriever=["reader"], chunk_tokens=[32], overlap=[0])
    inputs = SweepInputs(documents, questions, made.configurations, models)
    whole = list(sweep(inputs))
    monkeypatch.setattr("engine.evaluation.sweep.READ_AT_ONCE", 2)
    _, parts = resume(tmp_path / "rows", "stamp")
    assert list(sweep(inputs, is_stopped=lambda: bool(parts), parts=parts)) == []
    rows, kept = resume(tmp_path / "rows", "stamp")
    assert (rows, dict(kept), len(kept)) == ([], dict(parts), 1)
    assert without_time(sweep(inputs, parts=kept)) == without_time(whole)
    assert len(kept) == 2


@pytest.fixture
def embedded_texts(monkeypatch):
    """The texts that go through the layers, with the poolings taken of them."""
    seen, encode = [], Encoder.encode

    def watched(self, texts, pooling="mean", *arguments, **options):
        seen.extend((text, tuple(pooling)) for text in texts)
        return encode(self, texts, pooling, *arguments, **options)

    monkeypatch.setattr(Encoder, "encode", watched)
    return seen


def test_a_text_is_embedded_once_for_all_poolings_and_splittings(
    documents, questions, models, encoder, embedded_texts
):
    made = grid(
        splitter=["sentences", "paragraphs"],
        chunk_tokens=[24, 32],
        overlap=[0],
        pooling=["mean", "cls", "max"],
        retriever=["dense", "hybrid"],
    )
    cache = VectorCache()
    rows = list(sweep(SweepInputs(documents, questions, made.configurations, models), cache))
    assert len(embedded_texts) == len(set(embedded_texts))
    assert {poolings for _, poolings in embedded_texts} == {("mean", "cls", "max")}
    texts = {text for text, _ in embedded_texts} - set(ASKED)
    assert len(texts) < sum(row.n_chunks for row in rows)
    embedded_texts.clear()
    again = list(sweep(SweepInputs(documents, questions, made.configurations, models), cache))
    assert embedded_texts == []
    assert without_time(again) == without_time(rows)


def test_the_price_grows_with_the_tokens_that_are_embedded(documents, questions, models, monkeypatch):
    rates = {"float32": 3000.0, "int8": 1000.0}  # seconds of a token
    monkeypatch.setattr(sweep_cost, "token_seconds", lambda model, chunks, limit: rates[model.precision])
    made = grid(chunk_tokens=[32], overlap=[0], precision=list(rates), pooling=["mean", "cls", "idf"])

    def seconds(**values):
        chosen = [one for one in made.configurations if vars(one).items() >= values.items()]
        return sweep_seconds(SweepInputs(documents, questions, chosen, models))

    tokens = sum(chunk.n_tokens for each in documents for chunk in cut_in(each, models))
    assert seconds(precision="int8", pooling="mean") == pytest.approx(1000 * tokens, rel=1e-3)
    assert seconds() == pytest.approx(2 * (3000 + 1000) * tokens, rel=1e-3)  # idf is a pass of its own
    wide = [replace(made.configurations[-1], chunk_tokens=n) for n in (300, 400)]  # which cut the same
    inputs = [SweepInputs(documents, questions, each, models) for each in (wide, wide[:1])]
    assert sweep_seconds(inputs[0]) == pytest.approx(sweep_seconds(inputs[1]), rel=1e-3)
    many = [replace(each, name=f"{n} {each.name}") for n in range(20) for each in documents]
    inputs = SweepInputs(many, questions, made.configurations, models)
    whole = sweep_seconds(inputs)
    monkeypatch.setattr(sweep_cost, "SAMPLE_CHARACTERS", sum(len(each.text) for each in documents))
    assert sweep_seconds(inputs) == pytest.approx(whole, rel=1e-2)


def cut_in(document, models):
    [model] = models.values()
    return split(document, model.tokenizer, Splitting("sentences", 32, 0))


def test_pairs_of_a_cross_encoder_have_their_own_rate(documents, questions, encoder, monkeypatch, tmp_path):
    reranker = Reranker.load(save_reranker(tmp_path))
    assert sweep_cost.pair_seconds(["a"], reranker) > 0
    monkeypatch.setattr(sweep_cost, "pair_seconds", lambda texts, reranker: 1000.0)
    made = grid(chunk_tokens=[32], overlap=[0], retriever=["weighted", "bm25", "cross-encoder"])
    models = {encoder.name: replace(encoder, reranker=reranker)}
    n_chunks = sum(len(cut_in(each, models)) for each in documents)
    seconds = sweep_seconds(SweepInputs(documents, questions, made.configurations, models))
    assert seconds == pytest.approx(1000 * len(questions) * n_chunks, rel=1e-3)
    assert sweep_seconds(SweepInputs(documents, questions, made.configurations[:2], models)) < 100


def test_rows_that_retrieve_every_chunk_are_known(rows):
    row = next(row for row in rows if row.configuration.retriever == "dense")
    wide = replace(row, configuration=replace(row.configuration, k=row.n_chunks))
    assert retrieves_every_chunk(wide)
    assert not retrieves_every_chunk(replace(wide, n_chunks=row.n_chunks + 1))
    by_words = replace(wide.configuration, retriever="bm25")
    assert not retrieves_every_chunk(replace(wide, configuration=by_words))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": []}, "there are no documents"),
        ({"questions": []}, "there are no questions"),
        ({"configurations": [Configuration(model="other")]}, r"names the models \['other'\]"),
        ({"configurations": [Configuration(), Configuration(pooling="own")]}, "pooling 'own'"),
        ({"configurations": [Configuration(max_tokens=9999)]}, "max_tokens is 9999"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(documents, questions, models, change, message):
    given = {"documents": documents, "questions": questions, "configurations": [Configuration()]} | change
    with pytest.raises(InputError, match=message):
        sweep(SweepInputs(**given, models=models))


def test_documents_without_words_are_swept(questions, models, encoder):
    made = grid(retriever=usable_retrievers(encoder), pooling=["mean", "idf"])
    rows = list(sweep(SweepInputs([Document("blank.txt", " \n ")], questions, made.configurations, models)))
    assert [row.n_chunks for row in rows] == [0] * len(made.configurations)
    assert {value for row in rows for value in row.metrics.values()} == {0.0}


class TestStore:
    @pytest.fixture
    def stamp(self, documents, questions, models):
        return stamp_of(SweepInputs(documents, questions, [], models))

    @pytest.fixture
    def path(self, tmp_path, stamp, rows):
        path = tmp_path / "sweep.jsonl"
        assert resume(path, stamp)[0] == []
        for row in rows[:3]:
            append(path, row)
        return path

    def test_a_line_of_a_former_version_comes_back(self, path, stamp, rows):
        former = row_fields(rows[0])
        former["cell"] = former.pop("configuration")
        del former["search_seconds"]
        with path.open("a") as file:
            file.write(json.dumps(former) + "\n")
        assert resume(path, stamp)[0][-1] == replace(rows[0], search_seconds=None)

    def test_what_a_crash_tore_off_is_dropped(self, path, stamp, rows):
        assert resume(path, stamp)[0] == rows[:3]
        content = path.read_bytes()
        last = content.rstrip(b"\n").rfind(b"\n") + 1
        for end in (last + 1, len(content) - 2, len(content) - 1):
            path.write_bytes(content[:end])
            assert resume(path, stamp)[0] == rows[:2]
        append(path, rows[2])
        assert resume(path, stamp)[0] == rows[:3]
        path.write_bytes(content[:20])  # within the header
        assert resume(path, stamp)[0] == []
        append(path, rows[0])
        assert resume(path, stamp)[0] == rows[:1]

    def test_a_sweep_of_something_else_is_not_gone_on_with(self, path, documents, questions, models):
        before = path.read_bytes()
        changed = replace(documents[0], text=documents[0].text + "!")
        for other in (
            stamp_of(SweepInputs([changed, *documents[1:]], questions, [], models)),
            stamp_of(SweepInputs(documents, questions[1:], [], models)),
            stamp_of(SweepInputs(documents, questions, [], {"other": next(iter(models.values()))})),
        ):
            with pytest.raises(InputError, match="other documents, questions or models"):
                resume(path, other)
        assert path.read_bytes() == before

    def test_other_and_damaged_files_are_refused_and_left_as_they_are(self, path, tmp_path, stamp):
        first, second, _, *rest = path.read_bytes().split(b"\n")
        damaged = b"\n".join([first, second, b'{"cell": {}}', *rest])
        others = [first.replace(b"stamp", b"time") + b"\n", b"{}\n", b"[1]\n", b"\n", b"text"]
        contents = dict.fromkeys(others, "is no file of")
        for content, message in {**contents, damaged: "line 3 is damaged"}.items():
            path.write_bytes(content)
            with pytest.raises(InputError, match=message):
                resume(path, stamp)
            assert path.read_bytes() == content
        with pytest.raises(InputError, match="cannot be used"):
            resume(tmp_path, stamp)


@pytest.fixture(scope="module")
def library(official, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    official.save(str(folder))
    return LibraryModel.load(folder, encoder.tokenizer)


class TestLibraryModel:
    def test_a_model_that_the_engine_does_not_run_is_cut_by_its_own_tokenizer(self, monkeypatch, tmp_path):
        save_bert(tmp_path)
        edit_json(tmp_path / "config.json", model_type="electra")
        monkeypatch.setattr(LibraryModel, "load", lambda source, *parts: parts)
        tokenizer, reason = load_model(str(tmp_path))
        assert tokenizer.encode("abc").tokens == ["[CLS]", "a", "##b", "##c", "[SEP]"]
        assert "is a 'electra' model" in reason
        edit_json(tmp_path / "tokenizer.json", model={"type": "WordLevel", "vocab": {}})
        assert load_model(str(tmp_path))[0].path.parent.name == DEFAULT_ENCODER

    def test_vectors_are_those_of_the_library(self, library, official):
        found = library.encode_as("document", FACTS, ["own"])["own"]
        assert found == pytest.approx(official.encode(FACTS), abs=1e-5)
        short = library.encode_as("document", FACTS, ["own"], max_tokens=8)["own"]
        assert np.abs(short - found).max() > 0.01
        assert library.encode_as("document", FACTS, ["own"])["own"] == pytest.approx(found, abs=1e-6)

    def test_files_that_changed_since_they_were_loaded_are_told(self, library, encoder):
        other = replace(library, fingerprint="another")
        with pytest.raises(ModelUnavailableError, match="its files have changed since it was loaded"):
            other.encode_as("document", FACTS, ["own"])

    def test_it_is_swept_beside_our_own(self, library, documents, questions, models, encoder):
        names = [encoder.name, library.name]
        configurations = [
            Configuration(chunk_tokens=32, model=encoder.name),
            Configuration(chunk_tokens=32, model=names[1], pooling="own"),
        ]
        inputs = SweepInputs(documents, questions, configurations, {**models, library.name: library})
        ours, theirs = sweep(inputs)
        assert theirs.metrics == pytest.approx(ours.metrics)
        assert sweep_seconds(inputs) > 0

    def test_what_it_cannot_do_is_refused(self, library, documents, questions):
        for change, message in (
            ({"pooling": "mean"}, "pools tokens itself"),
            ({"pooling": "own", "retriever": "maxsim"}, "gives only those of whole texts"),
            ({"pooling": "own", "max_tokens": 10_000}, "max_tokens is 10000"),
        ):
            one = Configuration(model=library.name, **change)
            with pytest.raises(InputError, match=message):
                sweep(SweepInputs(documents, questions, [one], {library.name: library}))

    @pytest.mark.usefixtures("library_in_this_process")
    def test_a_model_that_is_not_there_or_not_known_is_told(self, encoder, tmp_path):
        for name in ("no/such-model-anywhere", "/no/such/folder"):
            with pytest.raises(ModelUnavailableError, match=f"{name}: sentence-transformers finds no such"):
                LibraryModel.load(name, encoder.tokenizer)
        (tmp_path / "config.json").write_text('{"model_type": "no-such-family"}')
        with pytest.raises(
            ModelUnavailableError, match=r"'no-such-family' model.*sentence-transformers does not read it"
        ):
            load_model(str(tmp_path))

    @pytest.mark.usefixtures("library_in_this_process")
    def test_a_model_without_a_limit_to_set_is_refused(self, encoder, tmp_path):
        words = Tokenizer.from_file(str(model_path(encoder.name) / "tokenizer.json"))
        sentence_transformers.SentenceTransformer(
            modules=[modules.StaticEmbedding(words, embedding_dim=4)]
        ).save(str(tmp_path))
        with pytest.raises(ModelUnavailableError, match="how many tokens it reads cannot be set"):
            LibraryModel.load(tmp_path, encoder.tokenizer)

    def test_a_missing_library_is_told(self, encoder, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
        with pytest.raises(ModelUnavailableError, match="which is not installed"):
            LibraryModel.load("anything", encoder.tokenizer)


@pytest.mark.parametrize(("took", "expected"), [((0.13, 0.002, 0.003), 0.002), ((5.0, 1.0), 5.0)])
def test_a_delay_counts_for_no_brief_search(took, expected, monkeypatch):
    ends = (time for begin, each in enumerate(took) for time in (begin, begin + each))
    vectors = np.eye(2, dtype=np.float32)
    inputs = SearchInputs(SearchTexts(("a", "b"), ("a", "b")), vectors, vectors)
    monkeypatch.setattr("engine.evaluation.sweep.time", SimpleNamespace(perf_counter=lambda: next(ends)))
    assert computing_seconds("dense", inputs) == pytest.approx(expected)
    assert "dense" in vars(inputs)  # no search computes it again
