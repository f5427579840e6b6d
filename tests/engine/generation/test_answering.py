from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.errors import ContextLengthError, InputError
from engine.generation.answer import N_QUOTES, N_READ, best_sentences
from engine.generation.answering import ask
from engine.generation.attribution import leave_one_out
from engine.generation.passage_search import retrieve
from engine.generation.prefix_cache import PrefixCache
from engine.generation.sampling import Sampling
from engine.generation.sentences import sentences_of
from engine.generation.server import Server
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.retrieval.ranking import best_first
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import RETRIEVERS, SearchInputs, SearchTexts, retriever_scores
from tests.chat_server import WORDS, chat_server, chunk, event
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents, index_of_texts

SERVER = Server("http://localhost:1/v1", "mason")  # at which nobody listens
# Words and vectors put these in different orders: the first has the question's words and another subject.
TRAPS = (
    "Vardholm bread: when it is finished, and finished it is when brown, take it out.",
    "The building of the tower came to its end in 1891.",
    "Masons of the tower were paid in silver.",
    "Bees make honey in June.",
)


def search(question, index, encoder, k=4, min_relevance=90, null_scores=None, retriever="dense"):
    """Retrieve with settings by their names."""
    return retrieve(question, index, encoder, SearchSettings(k, min_relevance, retriever), null_scores)


@pytest.fixture(scope="module")
def index(encoder):
    return index_of_documents(DOCUMENTS, encoder)


@pytest.fixture(scope="module")
def null_scores(index, encoder):
    return null_scores_of(index, encoder)


@pytest.fixture(scope="module")
def reply(index, encoder, decoder, null_scores):
    """A function that asks for a text, with settings by their names; it is checked only where asked for."""

    def reply(
        question=QUESTION, model=decoder, index=index, server=None, reuse=None, check=False, **settings
    ):
        settings = {"write": True, "null_scores": null_scores if index is own else None} | settings
        callbacks, search, sampling = (
            {name: settings.pop(name) for name in names if name in settings}
            for names in (
                ("null_scores", "on_text", "on_found", "stop", "reader"),
                ("k", "min_relevance", "retriever"),
                ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed"),
            )
        )
        search, sampling = SearchSettings(**search), Sampling(**sampling)
        chosen = AnswerSettings(search, **settings, check=check, sampling=sampling)
        return ask(question, index, encoder, Writer(model, server, reuse), chosen, **callbacks)

    own = index
    return reply


@pytest.fixture(scope="module")
def silent(decoder):
    """A decoder that must not be asked."""

    def refuse(*arguments, **settings):
        raise AssertionError("the decoder was asked")

    return SimpleNamespace(
        max_tokens=decoder.max_tokens,
        name="silent",
        chat_template="a template",
        generate=refuse,
        tokenizer=decoder.tokenizer,
        chat_encoding=decoder.chat_encoding,
    )


@pytest.fixture(scope="module")
def answered(reply):
    """An answer, read again without its passages, and the pieces in which its text came."""
    pieces = []
    settings = {"k": 2, "min_relevance": 0, "max_new_tokens": 24}
    answer = reply(**settings, check=True, on_text=pieces.append)
    return answer, pieces


def test_an_answer_lists_what_it_read_and_who_wrote_it(answered, encoder, decoder):
    answer, pieces = answered
    written, times = answer.written, answer.timed.writing
    assert "1891" in answer.text
    assert "".join(pieces).strip() == answer.text
    first = answer.sources[-1]  # the best stands next to the question
    assert DOCUMENTS["tower.md"][first.start : first.end] == first.text
    assert first.document == "tower.md"
    vectors = encoder.encode([QUESTION, first.text])
    assert first.score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert (written.model, written.server) == (decoder.name, None)
    ids = [number for number in written.ids if number not in decoder.end_ids]
    assert decoder.tokenizer.decode(ids).strip() == answer.text
    search = answer.timed.search
    seconds = (search.tokenize_s, search.encode_s, search.search_s, times.prompt_s, times.generate_s)
    assert min(seconds) > 0
    assert (times.prompt_tokens, times.answer_tokens) == (len(written.prompt.ids), len(written.ids))
    assert times.prompt_tokens_per_s > 0


@pytest.mark.parametrize(
    ("question", "min_relevance"), [("Who won the chess championship?", 90), (QUESTION, 100)]
)
def test_where_nothing_is_relevant_the_decoder_is_not_asked(reply, silent, question, min_relevance):
    pieces, settings = [], {"min_relevance": min_relevance}
    answer = reply(question, model=silent, on_text=pieces.append, **settings)
    assert (answer.text, pieces, answer.written) == ("", [], None)
    assert (answer.judged.status, answer.judged.confidence) == ("refused", 0)
    assert answer.sources == answer.quotes == answer.judged.sentences == ()
    assert len(answer.retrieved.hits) == 3
    assert answer.timed.writing.prompt_tokens == 0


def test_the_question_is_embedded_as_the_index_was(encoder):
    index = index_of_documents({"d.md": DOCUMENTS["tower.md"]}, encoder, pooling="cls")
    [hit] = search(QUESTION, index, encoder, 1, 0).hits
    vectors = encoder.encode([QUESTION, hit.chunk.text], pooling="cls")
    np.testing.assert_allclose(hit.score, vectors[0] @ vectors[1], atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"min_relevance": 101}, InputError, r"min_relevance is .*: give 0"),
        ({"min_relevance": float("nan")}, InputError, r"min_relevance is .*: give 0"),
        ({"k": 0}, InputError, "k is 0"),
        ({"question": "  "}, InputError, "question is empty"),
        ({"max_prompt_tokens": 8000, "max_new_tokens": 500}, ContextLengthError, "the 8192 positions"),
        ({"retriever": "best"}, InputError, r"^retriever 'best' is not one of dense, bm25, .*"),
        ({"reads": "pages"}, InputError, "reads 'pages' is not one of sentences, passages"),
        ({"answer_threshold": 0.2, "refuse_threshold": 0.3}, InputError, "the lower one first"),
        ({"answer_threshold": 1.1}, InputError, "numbers from 0 to 1"),
        ({"answer_threshold": float("nan")}, InputError, "numbers from 0 to 1"),
        ({"temperature": -1, "min_relevance": 100}, InputError, "temperature"),
        ({"server": SERVER, "top_k": 5}, InputError, "top_k is .* leave it out"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_whatever_is_found(reply, silent, settings, error, message):
    with pytest.raises(error, match=message):
        reply(model=silent, **settings)


def test_an_index_of_another_model_is_refused(reply, index, silent, null_scores):
    other = replace(index, spec=replace(index.spec, model="x", name="other"))
    with pytest.raises(InputError, match="vectors of other"):
        reply(model=silent, index=other, null_scores=null_scores)


def test_stopping_keeps_what_was_written_and_reads_it_no_more(reply, answered):
    whole, pieces = answered[0], []
    answer = reply(k=2, min_relevance=0, on_text=pieces.append, stop=lambda: len(pieces) >= 3, check=True)
    assert len(pieces) == 3
    assert answer.text == "".join(pieces).strip()
    assert whole.text.startswith(answer.text)
    assert answer.written.finish_reason == "stopped"
    assert whole.written.finish_reason in ("stop", "length")
    assert {each.log_prob_drop for each in answer.judged.sentences} == {None}


def test_a_second_question_about_the_same_passages_reads_only_what_is_new(reply):
    cache = PrefixCache()
    settings = {"k": 1, "min_relevance": 0, "max_new_tokens": 3}
    other = "How many masons built the Vardholm tower?"
    alone = reply(other, **settings)
    first = reply(reuse=cache, **settings)
    assert alone.timed.writing.reused_tokens == first.timed.writing.reused_tokens == 0
    second = reply(other, reuse=cache, **settings)
    assert [source.text for source in first.sources] == [source.text for source in second.sources]
    times, same = second.timed.writing, sum(source.n_tokens for source in second.sources)
    assert same < times.reused_tokens < times.prompt_tokens
    assert second.written.ids == alone.written.ids
    n_read = times.prompt_tokens - times.reused_tokens
    assert times.prompt_tokens_per_s == pytest.approx(n_read / times.prompt_s)


def test_a_server_is_sent_what_the_built_in_model_would_read(reply, decoder, silent):
    with chat_server() as running:
        pieces, sampling = [], {"top_p": 0.9, "seed": 3}
        answer = reply(
            model=silent,
            server=Server(running.url, "mason"),
            on_text=pieces.append,
            max_new_tokens=100_000,  # beyond the built-in model's context
            **sampling,
        )
        [request] = running.requests
    written = answer.written
    assert tuple(pieces) == WORDS
    assert answer.text == "".join(WORDS)
    assert (written.model, written.server, written.ids) == ("mason", running.url, ())
    assert written.finish_reason == "stop"
    assert tuple(request["messages"]) == written.prompt.messages
    assert decoder.chat_encoding(request["messages"])[0].text == written.prompt.text
    assert DOCUMENTS["tower.md"] in request["messages"][-1]["content"]
    assert {name: request[name] for name in sampling} == sampling
    assert answer.timed.writing.answer_tokens == len(decoder.tokenizer.encode(answer.text))
    assert answer.timed.writing.prompt_s > 0


@pytest.fixture(scope="module")
def traps(encoder):
    return index_of_texts(TRAPS, encoder)


@pytest.mark.parametrize("retriever", [name for name, one in RETRIEVERS.items() if not one.needs])
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


def test_where_no_passage_shares_a_word_none_is_found_by_words(reply, traps, silent):
    answer = reply("Zyzzyva?", model=silent, index=traps, min_relevance=0, retriever="bm25")
    assert answer.retrieved.hits == answer.retrieved.margins == answer.sources == ()
    assert answer.written is None


LONG = (
    "# The tower\n\nThe Vardholm tower was finished in 1891 by forty masons. It is painted every spring. "
    "Its keeper kept bees and sold the honey. The stairs have 212 steps."
)


@pytest.fixture(scope="module")
def long_index(encoder):
    return index_of_documents({"long.md": LONG}, encoder)


@pytest.mark.parametrize("reads", ["sentences", "passages"])
def test_quotes_come_first_and_the_model_reads_the_best_sentences_or_whole_passages(reply, long_index, reads):
    events, settings = [], {"min_relevance": 0, "max_new_tokens": 2, "reads": reads}
    callbacks = {"on_found": lambda found: events.append(found.quotes), "on_text": events.append}
    answer = reply(index=long_index, **settings, **callbacks)
    assert events[0] == answer.quotes == best_sentences(answer.evidence, N_QUOTES)
    assert len(events) > 1
    assert all(isinstance(each, str) for each in events[1:])
    for quote in answer.evidence:
        assert LONG[quote.start : quote.end] == quote.text
    assert "1891" in answer.quotes[0].text
    assert 0 < answer.timed.evidence_s < answer.timed.until_quotes_s
    best = [quote.text for quote in reversed(best_sentences(answer.evidence, N_READ))]
    assert [each.text for each in answer.sources] == (best if reads == "sentences" else [LONG])
    assert answer.written.source_places == (0,) * len(answer.sources)
    [hit] = answer.retrieved.hits
    assert {source.score for source in answer.sources} == {hit.score}


def test_where_not_all_sentences_fit_the_prompt_the_best_is_read(reply, long_index, monkeypatch):
    monkeypatch.setattr("engine.generation.answer.LEAST_SHARE", 0)
    settings = {"min_relevance": 0, "max_new_tokens": 1}
    whole = reply(index=long_index, **settings)
    settings["null_scores"] = whole.retrieved.null_scores
    n_tokens = len(whole.written.prompt.ids)
    for budget in (n_tokens - 1, n_tokens - 22):
        less = reply(index=long_index, **settings, max_prompt_tokens=budget)
        assert len(less.written.prompt.ids) <= budget
        assert 1 <= len(less.sources) < N_READ
        assert less.sources[-1].text == less.quotes[0].text


def test_without_writing_no_model_runs_and_the_thresholds_decide_the_status(reply, silent):
    def answer(**settings):
        # a budget that the model would refuse is of no matter
        settings |= {"write": False, "max_prompt_tokens": 9000}
        return reply(model=silent, **settings)

    quoted = answer()
    assert (quoted.text, quoted.written, quoted.sources) == ("", None, ())
    assert quoted.quotes[0].text == DOCUMENTS["tower.md"]
    sure = quoted.judged.confidence
    assert 0 < sure < 1
    assert answer(answer_threshold=sure, refuse_threshold=0).judged.status == "answered"
    assert answer(answer_threshold=sure + 1e-6, refuse_threshold=sure).judged.status == "unsure"
    refused = answer(answer_threshold=1, refuse_threshold=sure + 1e-6)
    assert (refused.judged.status, refused.judged.confidence) == ("refused", sure)
    assert refused.quotes  # what it would have shown can still be looked at


def test_a_sentence_is_compared_with_its_probability_without_the_passages(reply, decoder, answered):
    drawn = {"temperature": 1.2, "seed": 3, "max_new_tokens": 12}
    for answer in (answered[0], reply(check=True, **drawn)):
        sentences = answer.judged.sentences
        found = leave_one_out(decoder, answer.written.prompt, answer.written.ids)
        own = sentences_of(answer.written.ids, decoder.tokenizer)
        drops = found.drops(own)[:, -1]
        assert [each.log_prob_drop for each in sentences] == pytest.approx(list(drops), abs=0.02)
        assert "".join(answer.text[each.start : each.end] for each in sentences) == answer.text
        assert answer.timed.check_s > 0


def test_a_servers_text_is_checked_by_its_words_and_what_is_made_up_is_struck(reply):
    text = ("The tower was finished in 1891. ", "It cost 700 crowns. ", "Forty masons built it.")
    events = [*(event(chunk(piece)) for piece in text), event(chunk(None, "stop")), event("[DONE]")]
    with chat_server(events=events) as running:
        server = Server(running.url, "mason")
        answer = reply(server=server, check=True)
    assert answer.text == "".join(text)
    sentences = answer.judged.sentences
    assert {each.log_prob_drop for each in sentences} == {None}
    assert [each.is_supported for each in sentences] == [True, False, True]
    [number] = [word for word in sentences[1].unknown if word.kind == "number"]
    assert answer.text[number.start : number.end] == "700"
    assert answer.supported_text == "The tower was finished in 1891. Forty masons built it."
    assert answer.timed.check_s > 0


def test_of_passages_without_a_sentence_the_model_reads_the_whole(reply, encoder):
    for text in ("# The Vardholm tower", "?!", "\u200b"):
        index = index_of_texts([text], encoder)
        answer = reply(index=index, min_relevance=0, max_new_tokens=1)
        assert answer.evidence == answer.quotes == ()
        assert [source.text for source in answer.sources] == [text]
        assert answer.judged.status == "refused"
