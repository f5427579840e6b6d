from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import ContextLengthError, InputError
from engine.generation.answer import LEAST_SHARE, N_QUOTES, N_READ, best_sentences
from engine.generation.answering import ask, with_log_prob_drop
from engine.generation.attribution import leave_one_out
from engine.generation.checks import check_sentences
from engine.generation.passage_search import retrieve
from engine.generation.prefix_cache import PrefixCache
from engine.generation.prompt import Prompt
from engine.generation.sampling import Sampling
from engine.generation.sentences import sentences_of
from engine.generation.server import Server
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.streamed_text import StreamedText
from engine.generation.writer import Writer
from engine.retrieval.ranking import best_first
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import RETRIEVERS, SearchInputs, SearchTexts, retriever_scores
from tests.chat_server import WORDS, chat_server, chunk, event
from tests.indexes import index_of_documents, index_of_texts

DOCUMENTS = {
    "tower.md": "The Vardholm tower was finished in 1891 by forty masons.",
    "bread.md": "Knead the dough for ten minutes, then let it rest overnight.",
    "bees.md": "The keeper of the lighthouse kept bees and sold the honey.",
}
QUESTION = "When was the Vardholm tower finished?"
# Words and vectors put these in different orders: the first has the question's words and another subject.
TRAPS = (
    "Vardholm bread: when it is finished, and finished it is when brown, take it out.",
    "The building of the tower came to its end in 1891.",
    "Masons of the tower were paid in silver.",
    "Bees make honey in June.",
)


def reply(
    question, index, encoder, decoder, server=None, reuse=None, null_scores=None, check=False, **settings
):
    """Ask with settings by their names; the text is read again, which takes long, only where asked for."""
    callbacks, search, sampling = (
        {name: settings.pop(name) for name in names if name in settings}
        for names in (
            ("on_text", "on_quotes", "stop"),
            ("k", "min_relevance", "retriever"),
            ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed"),
        )
    )
    chosen = AnswerSettings(SearchSettings(**search), **settings, check=check, sampling=Sampling(**sampling))
    return ask(question, index, encoder, Writer(decoder, server, reuse), chosen, null_scores, **callbacks)


def search(question, index, encoder, k=4, min_relevance=90, null_scores=None, retriever="dense", **more):
    """Retrieve with settings by their names."""
    return retrieve(
        question, index, encoder, SearchSettings(k, min_relevance, retriever), null_scores, **more
    )


@pytest.fixture(scope="module")
def index(encoder):
    return index_of_documents(DOCUMENTS, encoder)


@pytest.fixture(scope="module")
def null_scores(index, encoder):
    return null_scores_of(index, encoder)


@pytest.fixture(scope="module")
def silent(decoder):
    """A decoder that must not be asked."""

    def refuse(*arguments, **settings):
        raise AssertionError("the decoder was asked")

    return SimpleNamespace(
        max_tokens=decoder.max_tokens, name="silent", chat_template="a template", generate=refuse
    )


def test_an_answer_lists_the_passages_it_was_given(index, encoder, decoder):
    pieces = []
    answer = reply(
        QUESTION, index, encoder, decoder, k=2, min_relevance=0, max_new_tokens=32, on_text=pieces.append
    )
    assert "1891" in answer.text
    assert "".join(pieces).strip() == answer.text
    first = answer.sources[-1]  # the best stands next to the question
    assert DOCUMENTS["tower.md"][first.start : first.end] == first.text
    assert first.document == "tower.md"
    vectors = encoder.encode([QUESTION, first.text])
    assert first.score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


def test_a_decoder_without_a_chat_template_is_refused_before_the_search_and_may_still_quote(
    index, encoder, decoder
):
    plain = replace(decoder, chat_template=None)
    with pytest.raises(InputError, match="has no chat template, so it was not made to answer"):
        reply(QUESTION, None, encoder, plain)
    quoting = {"min_relevance": 0, "write": False}
    assert reply(QUESTION, index, encoder, plain, **quoting, max_prompt_tokens=1_000_000).quotes


def test_every_stage_is_timed_and_every_token_counted(index, encoder, decoder):
    answer = reply(QUESTION, index, encoder, decoder, max_new_tokens=8)
    search, timings = answer.timed.search, answer.timed.writing
    stages = (search.tokenize_s, search.encode_s, search.search_s, timings.prompt_s, timings.generate_s)
    assert min(stages) > 0
    assert timings.prompt_tokens == len(answer.written.prompt.ids)
    assert 1 <= timings.answer_tokens <= 8
    assert timings.prompt_tokens_per_s > 0


@pytest.mark.parametrize(
    ("question", "min_relevance"), [("Who won the chess championship?", 90), (QUESTION, 100)]
)
def test_where_nothing_is_relevant_the_decoder_is_not_asked(index, encoder, silent, question, min_relevance):
    pieces = []
    answer = reply(question, index, encoder, silent, min_relevance=min_relevance, on_text=pieces.append)
    assert (answer.text, pieces) == ("", [])
    assert (answer.judged.status, answer.judged.confidence) == ("refused", 0)
    assert answer.sources == answer.quotes == answer.judged.sentences == ()
    assert answer.written is None
    assert len(answer.retrieved.hits) == 3
    assert answer.timed.writing.prompt_tokens == 0


def test_only_passages_as_relevant_as_asked_for_are_given_whole(index, encoder, decoder):
    found = search(QUESTION, index, encoder, 3, 0)
    first, second = (found.null_scores.relevance(hit.score) for hit in found.hits[:2])
    settings = {"min_relevance": (first + second) / 2, "context": "passages", "max_new_tokens": 4}
    answer = reply(QUESTION, index, encoder, decoder, **settings)
    assert len(answer.sources) == 1
    assert len(answer.retrieved.hits) == 3


def test_sentences_far_behind_the_best_are_neither_quoted_nor_read(index, encoder, decoder):
    answer = reply(QUESTION, index, encoder, decoder, max_new_tokens=4)
    best = answer.evidence[0].probability
    near = [quote for quote in answer.evidence if quote.probability >= LEAST_SHARE * best]
    assert len(near) < len(answer.evidence)
    assert answer.quotes == tuple(near[:N_QUOTES])
    assert {source.text for source in answer.sources} == {quote.text for quote in near[:N_READ]}


def test_a_margin_is_the_distance_to_the_next_passage_whether_it_is_asked_for_or_not(index, encoder):
    every = search(QUESTION, index, encoder, 3)
    scores = [hit.score for hit in every.hits]
    assert every.margins == (scores[0] - scores[1], scores[1] - scores[2], None)
    for k in (1, 2):
        found = search(QUESTION, index, encoder, k)
        assert found.hits == every.hits[:k]
        assert found.margins == every.margins[:k]


def test_other_null_scores_decide_otherwise(index, encoder):
    own = search(QUESTION, index, encoder, 3, 90)
    assert [own.hits[place].chunk.document for place in own.relevant] == ["tower.md"]
    about_towers = null_scores_of(index, encoder, ["When was the tower built?", "Who built Vardholm tower?"])
    found = search(QUESTION, index, encoder, 3, 99, about_towers)
    assert found.null_scores is about_towers
    assert found.relevant == ()


@pytest.mark.parametrize("min_relevance", [-0.1, 101, float("nan")])
def test_a_relevance_that_is_no_percentage_is_refused(index, encoder, min_relevance):
    with pytest.raises(InputError, match=r"min_relevance is .*: give 0"):
        search(QUESTION, index, encoder, 3, min_relevance)


@pytest.mark.parametrize("k", [0, -1])
def test_no_passages_cannot_be_asked_for(index, encoder, k):
    with pytest.raises(InputError, match=f"k is {k}"):
        search(QUESTION, index, encoder, k)


def test_the_question_is_embedded_as_the_index_was(encoder):
    index = index_of_documents({"d.md": DOCUMENTS["tower.md"]}, encoder, pooling="cls")
    [hit] = search(QUESTION, index, encoder, 1, 0).hits
    vectors = encoder.encode([QUESTION, hit.chunk.text], pooling="cls")
    np.testing.assert_allclose(hit.score, vectors[0] @ vectors[1], atol=1e-5)


def test_an_index_of_another_model_is_refused(index, encoder, silent):
    with pytest.raises(InputError, match="vectors of other"):
        reply(QUESTION, replace(index, spec=replace(index.spec, model="x", name="other")), encoder, silent)


def test_budgets_beyond_the_context_are_refused(index, encoder, silent):
    with pytest.raises(ContextLengthError, match="exceed the 8192 positions"):
        reply(QUESTION, index, encoder, silent, max_prompt_tokens=8000, max_new_tokens=500)


def test_a_blank_question_is_refused(index, encoder, silent):
    with pytest.raises(InputError, match="question is empty"):
        reply("  ", index, encoder, silent)


def test_an_answer_names_who_wrote_it_and_holds_its_tokens(index, encoder, decoder):
    answer = reply(QUESTION, index, encoder, decoder, max_new_tokens=32)
    assert (answer.written.model, answer.written.server) == (decoder.name, None)
    assert len(answer.written.ids) == answer.timed.writing.answer_tokens
    written = [number for number in answer.written.ids if number not in decoder.end_ids]
    assert decoder.tokenizer.decode(written).strip() == answer.text


@pytest.mark.parametrize(
    "setting", [{"temperature": -1}, {"top_k": 0}, {"top_p": 2}, {"min_p": 2}, {"repetition_penalty": 0}]
)
def test_a_setting_outside_its_range_is_refused_whatever_is_found(index, encoder, silent, setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        reply(QUESTION, index, encoder, silent, min_relevance=100, **setting)


def test_stopping_keeps_what_was_written(index, encoder, decoder):
    whole = reply(QUESTION, index, encoder, decoder, max_new_tokens=32)
    pieces = []
    answer = reply(
        QUESTION,
        index,
        encoder,
        decoder,
        max_new_tokens=32,
        on_text=pieces.append,
        stop=lambda: len(pieces) >= 3,
    )
    assert len(pieces) == 3
    assert answer.text == "".join(pieces).strip()
    assert whole.text.startswith(answer.text)
    assert answer.written.finish_reason == "stopped"
    assert whole.written.finish_reason in ("stop", "length")


def test_a_second_question_about_the_same_passages_reads_only_what_is_new(
    index, encoder, decoder, null_scores
):
    cache = PrefixCache()
    settings = {"k": 1, "min_relevance": 0, "max_new_tokens": 12, "null_scores": null_scores}
    other = "How many masons built the Vardholm tower?"
    alone = reply(other, index, encoder, decoder, **settings)
    assert alone.timed.writing.reused_tokens == 0
    first = reply(QUESTION, index, encoder, decoder, reuse=cache, **settings)
    assert first.timed.writing.reused_tokens == 0
    second = reply(other, index, encoder, decoder, reuse=cache, **settings)
    assert [source.text for source in first.sources] == [source.text for source in second.sources]
    same = sum(source.n_tokens for source in second.sources)
    assert same < second.timed.writing.reused_tokens < second.timed.writing.prompt_tokens
    assert second.written.ids == alone.written.ids
    assert second.timed.writing.prompt_tokens_per_s == pytest.approx(
        (second.timed.writing.prompt_tokens - second.timed.writing.reused_tokens)
        / second.timed.writing.prompt_s
    )


def test_a_server_is_sent_what_the_built_in_model_would_read(index, encoder, decoder, silent):
    silent.tokenizer, silent.chat_encoding = decoder.tokenizer, decoder.chat_encoding
    with chat_server() as running:
        pieces = []
        server = Server(running.url, "mason")
        answer = reply(
            QUESTION, index, encoder, silent, server=server, on_text=pieces.append, top_p=0.9, seed=3
        )
        [request] = running.requests
    assert tuple(pieces) == WORDS
    assert answer.text == "".join(WORDS)
    assert (answer.written.model, answer.written.server, answer.written.ids) == ("mason", running.url, ())
    assert answer.written.finish_reason == "stop"
    assert tuple(request["messages"]) == answer.written.prompt.messages
    assert decoder.chat_encoding(request["messages"])[0].text == answer.written.prompt.text
    assert DOCUMENTS["tower.md"] in request["messages"][-1]["content"]
    assert (request["top_p"], request["seed"]) == (0.9, 3)
    assert answer.timed.writing.answer_tokens == len(decoder.tokenizer.encode(answer.text))
    assert answer.timed.writing.prompt_s > 0


def test_a_server_can_be_stopped(index, encoder, decoder):
    with chat_server(pause=0.1) as running:
        pieces = []
        answer = reply(
            QUESTION,
            index,
            encoder,
            decoder,
            server=Server(running.url, "mason"),
            on_text=pieces.append,
            stop=lambda: len(pieces) >= 2,
        )
        assert running.hung_up.wait(60)
    assert answer.text == "".join(WORDS[:2]).strip()
    assert answer.written.finish_reason == "stopped"


def test_budgets_beyond_the_built_in_context_are_fine_for_a_server(index, encoder, decoder):
    with chat_server() as running:
        server = Server(running.url, "mason")
        assert reply(QUESTION, index, encoder, decoder, max_new_tokens=100_000, server=server).text


@pytest.mark.parametrize("setting", [{"top_k": 5}, {"min_p": 0.1}, {"repetition_penalty": 1.2}])
def test_a_setting_that_servers_do_not_have_is_refused(index, encoder, silent, setting):
    [name] = setting
    with pytest.raises(InputError, match=f"{name} is .* leave it out"):
        reply(QUESTION, index, encoder, silent, server=Server("http://localhost:1/v1", "mason"), **setting)


@pytest.fixture(scope="module")
def traps(encoder):
    return index_of_texts(TRAPS, encoder)


@pytest.mark.parametrize("retriever", [name for name, one in RETRIEVERS.items() if not one.needs_reranker])
def test_passages_come_in_the_order_of_the_retriever_and_are_scored_by_cosine(traps, encoder, retriever):
    vectors = encoder.encode([QUESTION, *TRAPS])
    searched = SearchInputs(SearchTexts((QUESTION,), TRAPS, encoder), vectors[:1], vectors[1:])
    [scores] = retriever_scores(retriever, searched)
    order = [row for row in best_first(scores[None])[0] if np.isfinite(scores[row])]
    found = search(QUESTION, traps, encoder, 4, 0, retriever=retriever)
    assert [hit.chunk.text for hit in found.hits] == [TRAPS[row] for row in order]
    np.testing.assert_allclose([hit.score for hit in found.hits], searched.dense[0][order], atol=1e-5)
    fewer = search(QUESTION, traps, encoder, 2, 0, found.null_scores, retriever)
    assert [hit.chunk for hit in fewer.hits] == [hit.chunk for hit in found.hits[:2]]
    assert (found.margins == (None,) * len(order)) is (retriever != "dense")


def test_words_find_a_passage_and_its_cosine_says_whether_it_counts(traps, encoder, decoder):
    every = search(QUESTION, traps, encoder, 3, 0, retriever="bm25")
    relevances = [every.null_scores.relevance(hit.score) for hit in every.hits]
    assert every.hits[0].chunk.text == TRAPS[0]
    assert relevances[0] < max(relevances)
    limit = (relevances[0] + max(relevances)) / 2
    expected = tuple(place for place, relevance in enumerate(relevances) if relevance >= limit)
    answer = reply(
        QUESTION,
        traps,
        encoder,
        decoder,
        k=3,
        min_relevance=limit,
        null_scores=every.null_scores,
        retriever="bm25",
        max_new_tokens=2,
        context="passages",
    )
    assert answer.retrieved.retriever == "bm25"
    assert answer.retrieved.hits == every.hits
    assert answer.retrieved.relevant == expected
    assert 0 not in answer.retrieved.relevant
    assert answer.written.source_places == answer.retrieved.relevant
    assert [source.text for source in answer.sources] == [
        answer.retrieved.hits[n].chunk.text for n in answer.retrieved.relevant
    ]


def test_where_no_passage_shares_a_word_none_is_found_by_words(traps, encoder, silent):
    answer = reply("Zyzzyva?", traps, encoder, silent, min_relevance=0, retriever="bm25")
    assert answer.retrieved.hits == answer.retrieved.margins == answer.sources == ()
    assert answer.written is None


def test_an_unknown_retriever_is_refused(traps, encoder, silent):
    with pytest.raises(
        InputError, match=r"^retriever 'best' is not one of dense, bm25, hybrid, .*cross-encoder$"
    ):
        reply(QUESTION, traps, encoder, silent, retriever="best")


def test_tokens_that_repeat_a_passage_are_guessed_and_counted(encoder, decoder):
    text = "The tower of Vardholm was finished in 1891 by forty masons who sang while they worked."
    index = index_of_texts([text], encoder)
    answer = reply("Repeat the passage about the tower.", index, encoder, decoder, min_relevance=0)
    assert (
        0
        < answer.timed.writing.guessed_tokens
        < answer.timed.writing.answer_tokens
        == len(answer.written.ids)
    )


LONG = (
    "# The tower\n\nThe Vardholm tower was finished in 1891 by forty masons. It is painted every spring. "
    "Its keeper kept bees and sold the honey. The stairs have 212 steps."
)


@pytest.fixture(scope="module")
def long_index(encoder):
    return index_of_documents({"long.md": LONG}, encoder)


def test_quotes_are_shown_before_the_model_writes_beside_them(long_index, encoder, decoder):
    events = []
    answer = reply(
        QUESTION,
        long_index,
        encoder,
        decoder,
        min_relevance=0,
        max_new_tokens=4,
        on_quotes=lambda quotes: events.append(tuple(quotes)),
        on_text=events.append,
    )
    assert events[0] == answer.quotes == best_sentences(answer.evidence, N_QUOTES)
    assert len(events) > 1
    assert all(isinstance(each, str) for each in events[1:])
    for quote in answer.evidence:
        assert LONG[quote.start : quote.end] == quote.text
    assert "1891" in answer.quotes[0].text
    assert 0 < answer.timed.evidence_s < answer.timed.until_quotes_s


@pytest.mark.parametrize("context", ["sentences", "passages"])
def test_the_model_reads_the_best_sentences_or_whole_passages(long_index, encoder, decoder, context):
    answer = reply(QUESTION, long_index, encoder, decoder, min_relevance=0, max_new_tokens=1, context=context)
    best = [quote.text for quote in reversed(best_sentences(answer.evidence, N_READ))]
    assert [each.text for each in answer.sources] == (best if context == "sentences" else [LONG])
    assert answer.written.source_places == (0,) * len(answer.sources)
    [hit] = answer.retrieved.hits
    assert {source.score for source in answer.sources} == {hit.score}


def test_where_not_all_sentences_fit_the_prompt_the_best_is_read(long_index, encoder, decoder, monkeypatch):
    monkeypatch.setattr("engine.generation.answer.LEAST_SHARE", 0)
    whole = reply(QUESTION, long_index, encoder, decoder, min_relevance=0, max_new_tokens=1)
    n_tokens = len(whole.written.prompt.ids)
    for budget in (n_tokens - 1, n_tokens - 22):
        less = reply(
            QUESTION,
            long_index,
            encoder,
            decoder,
            min_relevance=0,
            max_new_tokens=1,
            max_prompt_tokens=budget,
            null_scores=whole.retrieved.null_scores,
        )
        assert len(less.written.prompt.ids) <= budget
        assert 1 <= len(less.sources) < N_READ
        assert less.sources[-1].text == less.quotes[0].text


def test_without_writing_no_model_runs_and_the_quotes_are_the_answer(index, encoder, silent):
    # a budget that the model would refuse is of no matter either
    answer = reply(QUESTION, index, encoder, silent, write=False, max_prompt_tokens=9000)
    assert (answer.text, answer.written, answer.sources) == ("", None, ())
    assert answer.quotes[0].text == DOCUMENTS["tower.md"]
    assert answer.judged.status == "answered"


def test_the_thresholds_decide_the_status(index, encoder, silent):
    def answer(**thresholds):
        return reply(QUESTION, index, encoder, silent, write=False, **thresholds)

    sure = answer().judged.confidence
    assert 0 < sure < 1
    assert answer(answer_threshold=sure, refuse_threshold=0).judged.status == "answered"
    assert answer(answer_threshold=sure + 1e-6, refuse_threshold=sure).judged.status == "unsure"
    refused = answer(answer_threshold=1, refuse_threshold=sure + 1e-6)
    assert (refused.judged.status, refused.judged.confidence) == ("refused", sure)
    assert refused.quotes  # what it would have shown can still be looked at


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context": "pages"}, "context 'pages' is not one of sentences, passages"),
        ({"answer_threshold": 0.2, "refuse_threshold": 0.3}, "the lower one first"),
        ({"answer_threshold": 1.1}, "numbers from 0 to 1"),
        ({"refuse_threshold": -0.1}, "numbers from 0 to 1"),
        ({"answer_threshold": float("nan")}, "numbers from 0 to 1"),
    ],
)
def test_settings_of_an_answer_outside_their_range_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        AnswerSettings(**settings)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.2, "seed": 3}])
def test_a_sentence_is_compared_with_its_probability_without_the_passages(
    index, encoder, decoder, null_scores, sampling
):
    settings = {"k": 2, "min_relevance": 0, "max_new_tokens": 40, "null_scores": null_scores, **sampling}
    answer = reply(QUESTION, index, encoder, decoder, **settings, check=True)
    found = leave_one_out(decoder, answer.written.prompt, answer.written.ids)
    pieces = sentences_of(answer.written.ids, decoder.tokenizer)
    falls = found.drops_without_any(pieces) / [piece.n_tokens for piece in pieces]
    assert [each.log_prob_drop for each in answer.judged.sentences] == pytest.approx(list(falls), abs=0.02)
    assert "".join(answer.text[each.start : each.end] for each in answer.judged.sentences) == answer.text
    assert answer.timed.check_s > 0
    unchecked = reply(QUESTION, index, encoder, decoder, **settings)
    assert unchecked.text == answer.text
    assert {each.log_prob_drop for each in unchecked.judged.sentences} == {None}


def test_a_token_that_ends_one_sentence_and_begins_the_next_is_of_the_first(encoder):
    pieces = [b" The tower", b".\n\n", b"It", b" stands."]  # as Llama 3 and Qwen join marks and line breaks
    raw = b"".join(pieces).decode()
    decoder = SimpleNamespace(
        tokenizer=SimpleNamespace(token_bytes=pieces.__getitem__),
        log_probabilities=lambda ids, start: np.array([-4.0, -2.0, -1.0, -3.0]),
        chat_encoding=lambda messages: (None, SimpleNamespace(ids=[7])),
    )
    written = StreamedText(raw.strip(), (0, 1, 2, 3), (-1.0,) * 4, "stop", 0.0, 0, "", ())
    prompt = Prompt(({"role": "user", "content": "Which?"},), "Which?", (7,), 1, (), (), 100)
    sentences = check_sentences(written.text, (), "", encoder.tokenizer)
    assert [each.log_prob_drop for each in with_log_prob_drop(sentences, written, prompt, decoder)] == [
        2.0,
        1.0,
    ]


def test_a_text_that_was_stopped_is_not_read_again(index, encoder, decoder):
    answer = reply(QUESTION, index, encoder, decoder, check=True, stop=lambda: True)
    assert answer.written.finish_reason == "stopped"
    assert {each.log_prob_drop for each in answer.judged.sentences} == {None}


def test_a_servers_text_is_checked_by_its_words_and_what_is_made_up_is_struck(
    index, encoder, decoder, null_scores
):
    text = ("The tower was finished in 1891. ", "It cost 700 crowns. ", "Forty masons built it.")
    events = [*(event(chunk(piece)) for piece in text), event(chunk(None, "stop")), event("[DONE]")]
    with chat_server(events=events) as running:
        server = Server(running.url, "mason")
        answer = reply(QUESTION, index, encoder, decoder, server=server, null_scores=null_scores, check=True)
    assert answer.text == "".join(text)
    assert {each.log_prob_drop for each in answer.judged.sentences} == {None}
    assert [each.is_supported for each in answer.judged.sentences] == [True, False, True]
    [number] = [word for word in answer.judged.sentences[1].unknown if word.kind == "number"]
    assert answer.text[number.start : number.end] == "700"
    assert answer.supported_text == "The tower was finished in 1891. Forty masons built it."
    assert answer.timed.check_s > 0


@pytest.mark.parametrize(
    "question", ["Wann wurde der Turm von Vardholm fertig?", "塔はいつ完成しましたか", "?"]
)
def test_a_question_in_another_language_is_answered_from_what_there_is(
    index, encoder, decoder, null_scores, question
):
    settings = {"min_relevance": 0, "max_new_tokens": 4, "null_scores": null_scores}
    answer = reply(question, index, encoder, decoder, **settings)
    assert {quote.text for quote in answer.evidence} <= set(DOCUMENTS.values())
    assert 1 <= len(answer.quotes) <= N_QUOTES
    assert 0 <= answer.judged.confidence <= 1


def test_sentences_in_another_script_are_quoted(encoder, decoder):
    text = "塔は1891年に完成した。四十人の石工が建てた。"
    index = index_of_texts([text], encoder)
    answer = reply("When was the tower finished?", index, encoder, decoder, min_relevance=0, max_new_tokens=4)
    assert {quote.text for quote in answer.quotes} == {"塔は1891年に完成した。", "四十人の石工が建てた。"}


@pytest.mark.parametrize("text", ["# The Vardholm tower", "?!", "\u200b"])
def test_of_passages_without_a_sentence_the_model_reads_the_whole(encoder, decoder, text):
    index = index_of_texts([text], encoder)
    answer = reply(QUESTION, index, encoder, decoder, min_relevance=0, max_new_tokens=4)
    assert answer.evidence == answer.quotes == ()
    assert [source.text for source in answer.sources] == [text]
    assert answer.judged.status == "refused"
