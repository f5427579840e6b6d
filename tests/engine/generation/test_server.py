import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.errors import InputError, ModelUnavailableError
from engine.generation import server as server_module
from engine.generation.sampling import Sampling
from engine.generation.server import Server
from tests.chat_server import WORDS, chat_server, chunk, closed_port, event, full_port, whole_answer

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who built the tower?"}]


def answer_of(server, **settings):
    return list(Server(server.url, "mason").generate(MESSAGES, **settings))


def test_an_event_loop_that_runs_already_is_left_alone():
    async def in_a_notebook():
        with chat_server() as server:
            return answer_of(server)

    with ThreadPoolExecutor() as pool:  # this thread may have a loop already
        pieces = pool.submit(asyncio.run, in_a_notebook()).result()
    assert tuple(piece.text for piece in pieces if piece.text) == WORDS


def test_pieces_come_as_the_server_sends_them_before_the_answer_is_complete():
    first, *rest = whole_answer()
    has_come = threading.Event()

    def events():
        yield first
        has_come.wait()
        yield from rest

    with chat_server(events=events()) as server:
        pieces = Server(server.url, "mason").generate(MESSAGES)
        assert next(pieces).text == WORDS[0]
        has_come.set()
        others = list(pieces)
    assert tuple(piece.text for piece in others if piece.text) == WORDS[1:]
    assert [piece.finish_reason for piece in others] == [None] * (len(others) - 1) + ["stop"]


def test_an_answer_cut_by_the_server_says_so():
    for reason in ("length", "content_filter"):
        with chat_server(events=whole_answer(reason)) as server:
            assert answer_of(server)[-1].finish_reason == reason


@pytest.mark.parametrize(
    ("events", "ends_by"),
    [
        ([event(chunk("Forty ")), event("[DONE]")], "stop"),
        ([event(chunk("Forty "))], "unfinished"),
        ([event(chunk("Forty ")), event(chunk(None, "error")), event("[DONE]")], "unfinished"),
        ([event(chunk("Forty ")), event(chunk(None, "max_tokens"))], "length"),
        ([event({**chunk(), "choices": None}), event(chunk("Forty ", "eos"))], "stop"),
        ([b": waiting\n\n", event(chunk([{"type": "text", "text": "Forty "}], "tool_calls"))], "stop"),
        (
            [event(chunk("Forty ", "stop")), event({**chunk(), "choices": [], "usage": {"total_tokens": 2}})],
            "stop",
        ),
        ([event(chunk("Forty ", "stop")).replace(b"\n", b"\r\n")], "stop"),
        ([event({"choices": [{"delta": None}]}), event(chunk("Forty ", "stop"))], "stop"),
        (
            [event(chunk("Forty ")), event({"choices": [{"delta": None, "finish_reason": "length"}]})],
            "length",
        ),
        ([event({"type": "ping"}), event(chunk("Forty ", "stop")), event({"usage": {"n": 2}})], "stop"),
    ],
)
def test_a_stream_ends_as_servers_end_theirs(events, ends_by):
    with chat_server(events=events) as server:
        *words, last = answer_of(server)
    assert [piece.text for piece in words] == ["Forty "]
    assert last.finish_reason == ends_by


def test_a_server_that_does_not_stream_is_read_as_a_whole():
    whole = {"choices": [{"message": {"role": "assistant", "content": "Forty "}, "finish_reason": "length"}]}
    with chat_server(events=[json.dumps(whole).encode()], content_type="application/json") as server:
        assert [(piece.text, piece.finish_reason) for piece in answer_of(server)] == [
            ("Forty ", None),
            ("", "length"),
        ]


def refusal(parameter, words, status=400):
    return status, {"error": {"message": words, "param": parameter}}


UNSUPPORTED = refusal("max_tokens", "Unsupported parameter: 'max_tokens' is not supported.")
ONLY_1 = refusal("temperature", "Unsupported value: only the default (1) is supported.")
DEPRECATED = refusal(None, "`temperature` is deprecated for this model")
EXTRA = {"detail": [{"loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted"}]}
ALTERNATE = refusal(None, "Conversation roles must alternate user/assistant/user/...", 500)
COLD = {"temperature": 0.0}
JOINED = [{"role": "user", "content": "Be brief.\n\nWho built the tower?"}]


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        (
            {"max_tokens": UNSUPPORTED, "temperature": ONLY_1},
            {"messages": MESSAGES, "max_completion_tokens": 256},
        ),
        ({"temperature": DEPRECATED}, {"messages": MESSAGES, "max_tokens": 256}),
        ({"max_tokens": (422, EXTRA)}, {"messages": MESSAGES, "max_completion_tokens": 256} | COLD),
        ({"system": ALTERNATE}, {"messages": JOINED, "max_tokens": 256} | COLD),
    ],
)
def test_what_a_model_refuses_is_left_out_from_then_on(refused, sent):
    with chat_server(refused=refused) as server:
        for _ in range(2):
            assert "".join(piece.text for piece in answer_of(server)) == "".join(WORDS)
    *tried, first, second = server.requests
    assert len(tried) == len(refused)
    assert first == second == {"model": "mason", "stream": True, **sent}


@pytest.mark.parametrize(
    ("parameter", "words"),
    [("temperature", "temperature must be between 0 and 1"), (None, "the model is not supported")],
)
def test_a_refusal_of_a_value_is_told_and_not_remembered(parameter, words):
    with chat_server(refused={"temperature": refusal(parameter, words)}) as server:
        for _ in range(2):
            with pytest.raises(ModelUnavailableError, match=words):
                answer_of(server)
    assert len(server.requests) == 2


def test_half_of_a_surrogate_pair_is_replaced():
    events = [event(chunk("a\ud83d")), *whole_answer()]
    with chat_server(events=events, models=("mason", "\udc00b")) as server:
        assert "".join(piece.text for piece in answer_of(server)) == "a\ufffd" + "".join(WORDS)
        assert Server(server.url).models() == ["mason", "\ufffdb"]


@pytest.mark.parametrize("content", [[40], 40, [{"type": "text", "text": 40}]])
def test_an_answer_that_is_no_text_is_refused(content):
    refused = pytest.raises(ModelUnavailableError, match="type int")
    with chat_server(events=[event(chunk(content)), *whole_answer()]) as server, refused:
        answer_of(server)


def test_the_request_holds_the_messages_and_the_settings_that_were_given_and_no_others():
    with chat_server() as server:
        answer_of(server)
        answer_of(server, max_new_tokens=9, sampling=Sampling(0.7, top_p=0.9, seed=3), stop=["\n"])
    plain, full = server.requests
    assert plain == {
        "model": "mason",
        "messages": MESSAGES,
        "stream": True,
        "max_tokens": 256,
        "temperature": 0.0,
    }
    assert full == {**plain, "max_tokens": 9, "temperature": 0.7, "top_p": 0.9, "seed": 3, "stop": ["\n"]}


def test_a_stop_or_leaving_the_loop_closes_the_connection():
    with chat_server(pause=0.2) as server:
        got = []
        for piece in Server(server.url, "mason").generate(MESSAGES, is_stopped=lambda: len(got) >= 2):
            got.append(piece.text)
        assert got == list(WORDS[:2])
        assert server.hung_up.wait(30)
        server.hung_up.clear()
        pieces = Server(server.url, "mason").generate(MESSAGES)
        assert next(pieces).text == WORDS[0]
        pieces.close()
        assert server.hung_up.wait(30)


def test_the_key_is_sent_and_never_shown():
    with chat_server(key="secret") as server:
        mine = Server(server.url, "mason", "secret")
        assert mine.models() == ["mason", "miller"]
        assert "".join(piece.text for piece in mine.generate(MESSAGES)) == "".join(WORDS)
    assert "secret" not in repr(mine)


def test_a_key_in_the_environment_is_not_sent_to_a_server_that_was_given_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with chat_server(key="secret") as server, pytest.raises(ModelUnavailableError, match="401"):
        Server(server.url).models()


@pytest.mark.parametrize(
    "url",
    ["localhost:11434/v1", "", "ftp://a/v1", "file:///etc/passwd", "http://", "http://[", "http://a:x/v1"],
)
def test_what_is_no_web_address_is_refused(url):
    for call in both_ways(url):
        with pytest.raises(InputError, match="begins with http:// or https://"):
            call()


def test_what_cannot_be_a_key_or_a_model_is_refused():
    for key in ("clé", "a\nb"):
        with pytest.raises(InputError, match="copy it again"):
            Server("http://localhost:1/v1", "mason", key).models()
    with pytest.raises(InputError, match=r"no model .* is chosen"):
        next(Server("http://localhost:1/v1").generate(MESSAGES))


def both_ways(url, model="mason"):
    return (lambda: Server(url).models(), lambda: list(Server(url, model).generate(MESSAGES)))


def test_a_refused_connection_says_where_and_what_to_do(monkeypatch):
    for sleep in ("time.sleep", "anyio.sleep"):  # nothing is tried again
        monkeypatch.setattr(sleep, lambda seconds: pytest.fail("there is a pause before another trial"))
    with closed_port() as url:
        for call in both_ways(url):
            with pytest.raises(ModelUnavailableError, match=f"connection to {url} failed .* is running"):
                call()


def test_a_server_that_takes_no_connection_is_given_up_soon(monkeypatch):
    monkeypatch.setattr(server_module, "CONNECT_S", 0.5)
    with full_port() as url:
        for call in both_ways(url):
            with pytest.raises(ModelUnavailableError, match=r"did not answer in time .* check the address"):
                call()


def test_a_refusal_is_given_in_the_servers_words_with_what_to_do():
    with chat_server(key="secret") as server:
        for call in both_ways(server.url):
            with pytest.raises(ModelUnavailableError, match=r"401, 'Incorrect API key .*give the key"):
                call()
    with chat_server() as server:
        _, ask = both_ways(server.url, "baker")
        unknown = r"the model 'baker' \(404, .*choose one of its models"
        with pytest.raises(ModelUnavailableError, match=unknown):
            ask()
        for call in both_ways(server.url.removesuffix("/v1")):
            with pytest.raises(ModelUnavailableError, match=r"404.*ends in /v1"):
                call()


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([b"<html>Welcome</html>"], "before the first word"),
        ([], "before the first word"),
        ([event(chunk("Forty ")), event("{broken")], "does not speak as OpenAI's servers do"),
        ([event('"words"')], "does not speak as OpenAI's servers do"),
        ([event({"choices": None})], "before the first word"),
        *(
            ([event(chunk("Forty ")), event(error)], "broke off its answer: out of memory")
            for error in (
                {"error": {"message": "out of memory"}},
                {"error": "out of memory"},
                {"object": "error", "message": "out of memory", "code": 500},
                {"detail": "out of memory"},
            )
        ),
    ],
)
def test_what_is_no_stream_of_a_chat_completion_is_refused(events, reason):
    with chat_server(events=events) as server, pytest.raises(ModelUnavailableError, match=reason):
        answer_of(server)
