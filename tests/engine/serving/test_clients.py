"""Bodies of requests as the clients that people have send them, and what these read of the answers."""

import json
import time
from contextlib import suppress
from dataclasses import replace

import httpx
import numpy as np
import pytest

from engine.generation.answering import find_answer
from engine.generation.decoder import Decoder
from engine.generation.sampling import Sampling
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.retrieval.relevance import null_scores_of
from engine.serving.served import INDEX, Searched, Served
from tests.engine.serving.test_asking import slow_tokens
from tests.engine_server import MODEL, engine_server
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents

DOCUMENT_TEXTS = ["It was built in 1891.", "Cats sleep."]
COHERE = {"model": "rerank-v3.5", "documents": DOCUMENT_TEXTS}
MIXED = [DOCUMENT_TEXTS[0], {"text": DOCUMENT_TEXTS[1]}]
# Of cohere 5.21.1, langchain-cohere 0.6.0, llama-index-core 0.14.25 and Jina's documentation.
RERANKING = {
    "cohere v2": ("/v2/rerank", COHERE | {"top_n": 1}),
    "cohere v1": ("/v1/rerank", COHERE | {"documents": MIXED, "top_n": 2, "return_documents": True}),
    "langchain-cohere": ("/v2/rerank", COHERE | {"top_n": 3, "max_tokens_per_doc": None}),
    "jina": ("/v1/rerank", COHERE | {"model": "jina-reranker-v2", "top_n": 1, "return_documents": False}),
}


@pytest.fixture(scope="module")
def served(encoder, decoder, reader):
    index = index_of_documents(DOCUMENTS, encoder)
    settings = AnswerSettings(SearchSettings(2, 0))
    searched = Searched(index, null_scores_of(index, encoder), settings, reader, Writer(decoder))
    return Served(encoder, searched=searched, tools=True)


@pytest.mark.parametrize("client", RERANKING)
def test_documents_are_ranked_for_clients_of_cohere_and_jina(server, client):
    path, body = RERANKING[client]
    answer = server.post(path, {"query": "When was the lighthouse built?", **body}).json()
    assert [each["index"] for each in answer["results"]] == [0, 1][: body["top_n"]]
    assert all(0 <= each["relevance_score"] <= 1 for each in answer["results"])
    assert answer["meta"]["api_version"]["version"] == path[2]
    assert answer["meta"]["warnings"] == [f"there is no model '{body['model']}': glassbox-reader answered"]
    assert ("document" in answer["results"][0]) == body.get("return_documents", False)


def test_texts_are_ranked_for_clients_of_tei(server):
    body = {"query": "When was it built?", "raw_scores": False, "return_text": True, "truncate": True}
    answer = server.post("/rerank", {**body, "texts": DOCUMENT_TEXTS}).json()
    assert [(each["index"], each["text"]) for each in answer] == [*enumerate(DOCUMENT_TEXTS)]
    assert 1 >= answer[0]["score"] > answer[1]["score"] >= 0


def test_ollamas_client_gets_vectors_of_texts_cut_unless_it_forbids(server, encoder):
    answer = server.post("/api/embed", {"model": "all-minilm", "input": ["a", "word " * 300]}).json()
    np.testing.assert_allclose(answer["embeddings"], encoder.encode(["a", "word " * 300]), atol=1e-6)
    assert answer["prompt_eval_count"] == 3 + 256
    assert answer["total_duration"] > 0
    assert answer["truncated"] == [{"index": 1, "tokens": 302, "read": 256}]
    assert answer["warnings"] == [f"there is no model 'all-minilm': {MODEL} answered"]
    refused = server.post("/api/embed", {"model": MODEL, "input": "word " * 300, "truncate": False})
    assert refused.status_code == 400
    assert "text 0 has 302 tokens" in refused.json()["error"]


def chunks_of(response):
    """The chunks of a stream, whose last line says that it is done."""
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_the_language_model_chats_as_it_is(server, decoder):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hi."}]
    sampling = Sampling(temperature=0.7, top_p=0.9, seed=1)
    expected = [*decoder.generate(messages, 8, sampling)]
    text = "".join(token.text for token in expected)
    # of openai 2.54 and 3.57
    body = {"messages": messages, "model": decoder.name, "max_tokens": 8}
    body |= {"seed": 1, "temperature": 0.7, "top_p": 0.9}
    answer = server.post("/v1/chat/completions", body).json()
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": text, "refusal": None}
    assert (answer["object"], choice["finish_reason"]) == ("chat.completion", expected[-1].finish_reason)
    n_prompt = len(decoder.prompt_ids(messages))
    usage = {"prompt_tokens": n_prompt, "completion_tokens": 8, "total_tokens": n_prompt + 8}
    assert answer["usage"] == usage

    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}, "tools": []}
    first, *pieces, last, counted = chunks_of(server.post("/v1/chat/completions", streamed))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert first["warnings"] == ["not read, as there is no such field: 'tools'"]
    assert "".join(each["choices"][0]["delta"]["content"] for each in pieces) == text
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "length")
    assert (counted["choices"], counted["usage"]) == ([], usage)
    assert {each["object"] for each in (first, *pieces, last)} == {"chat.completion.chunk"}
    assert len({each["id"] for each in (first, *pieces, last, counted)}) == 1


def test_the_documents_answer_a_chat_with_their_sources(server, served, encoder):
    searched = served.searched
    expected = find_answer(
        QUESTION, searched.index, encoder, searched.settings, searched.null_scores, searched.reader
    )
    # of langchain-openai 1.7.4, and with a content in parts
    body = {"messages": [{"content": QUESTION, "role": "user"}], "model": INDEX, "stream": False}
    answer = server.post("/v1/chat/completions", body).json()
    text = answer["choices"][0]["message"]["content"]
    quote = expected.quotes[0]
    assert text.startswith(f"1891 [1]\n\n[1] {quote.document}: “{quote.text}”")
    [source, *_] = answer["sources"]
    assert (source["number"], source["document"]) == (1, quote.document)
    assert (source["start"], source["end"]) == (quote.start, quote.end)
    assert answer["glassbox"]["status"] == expected.judged.status
    parts = [{"type": "text", "text": QUESTION}]
    streamed = {"messages": [{"role": "user", "content": parts}], "model": INDEX, "stream": True}
    first, *pieces, last = chunks_of(server.post("/v1/chat/completions", streamed))
    assert "".join(each["choices"][0]["delta"]["content"] for each in pieces) == text
    assert last["sources"] == answer["sources"]
    assert "warnings" not in first


def test_a_chat_goes_on_about_its_topic_and_says_where_nothing_is_relevant(served):
    settings = replace(served.searched.settings, search=SearchSettings(2, 90))
    asked = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "In 1891."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": "And by whom?"},
    ]
    with engine_server(replace(served, searched=replace(served.searched, settings=settings))) as running:
        answer = running.post("/v1/chat/completions", {"model": INDEX, "messages": asked}).json()
        asked = [{"role": "user", "content": "Who won the chess championship?"}]
        other = running.post("/v1/chat/completions", {"model": INDEX, "messages": asked}).json()
    assert "Vardholm tower" in answer["glassbox"]["question"]
    assert other["choices"][0]["message"]["content"].startswith("Nothing in these documents")
    assert other["sources"] == []


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "gpt-9"}, 404, "there is no model 'gpt-9': this server has"),
        ({"messages": []}, 400, "messages: give a list of 1 to 1,000 objects with a role and a content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages: give a list"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, 400, "end with the user's"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "the question is empty"),
        ({"messages": [{"role": "user", "content": "word " * 300}]}, 400, "text 0 has 302 tokens"),
        ({"model": "decoder", "temperature": -1}, 400, "temperature is -1.0: give 0"),
        ({"temperature": -1}, 400, "temperature is -1.0: give 0"),
        ({"stream": "yes"}, 400, "stream: input should be a valid boolean"),
        ({"model": "decoder", "n": 2}, 400, "n: input should be 1"),
        (
            {"model": "decoder", "messages": [{"role": "user", "content": "a" * 300_000}]},
            400,
            "characters, over",
        ),
        ({"model": "decoder", "messages": [{"role": "user", "content": "a " * 9000}]}, 400, "tokens"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_chats_that_cannot_be_answered_are_refused_with_a_line(
    server, decoder, body, status, message, stream
):
    body = {"model": INDEX, "messages": [{"role": "user", "content": "a"}], "stream": stream, **body}
    if body["model"] == "decoder":
        body["model"] = decoder.name
    response = server.post("/v1/chat/completions", body)
    assert response.status_code == status
    error = response.json()["error"]
    assert message in error["message"]
    assert "\n" not in error["message"]


def test_chats_without_a_model_say_what_is_missing_and_the_only_one_answers_to_any_name(served, encoder):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": QUESTION}]}
    with engine_server(Served(encoder)) as running:
        response = running.post("/v1/chat/completions", body)
        assert response.status_code == 404
        assert "chats need documents or a language model" in response.json()["error"]["message"]
    with engine_server(replace(served, searched=replace(served.searched, writer=None))) as running:
        answer = running.post("/v1/chat/completions", body).json()
        assert answer["model"] == INDEX
        assert answer["warnings"] == [f"there is no model 'gpt-4o': {INDEX} answered"]
        listed = [each["id"] for each in running.get("/v1/models").json()["data"]]
        assert listed == [MODEL, INDEX]


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_ends_where_its_client_leaves(server, decoder, monkeypatch, stream):
    written = slow_tokens(monkeypatch, 0.05, Decoder)
    messages = [{"role": "user", "content": "Tell a long story."}]
    body = {"model": decoder.name, "messages": messages, "stream": stream, "max_tokens": 400}
    with suppress(httpx.ReadTimeout):
        chat = {"url": f"{server.url}/v1/chat/completions", "json": body, "timeout": 0.3}
        with httpx.stream("POST", **chat) as response:
            next(response.iter_bytes())
    until = time.monotonic() + 60
    while not written or server.metric("glassbox_requests_in_flight") > 1:
        assert time.monotonic() < until
        time.sleep(0.02)
    n_written = len(written)
    time.sleep(0.3)
    assert len(written) <= n_written + 1


def rpc(server, method, **parameters):
    """Call a method of MCP as clients of its versions of 2025 do."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})
    return httpx.post(f"{server.url}/mcp", content=content, headers=headers, timeout=60).json()["result"]


def test_assistants_search_ask_and_list_the_documents(server, served):
    pytest.importorskip("mcp")
    client = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
    started = rpc(server, "initialize", protocolVersion="2025-06-18", **client)
    assert started["serverInfo"]["name"] == "glassbox"
    assert "quote them as the source" in started["instructions"]
    tools = {tool["name"]: tool for tool in rpc(server, "tools/list")["tools"]}
    assert list(tools) == ["search", "ask", "list_documents"]
    assert tools["search"]["inputSchema"]["required"] == ["query"]

    def call(name, **arguments):
        return rpc(server, "tools/call", name=name, arguments=arguments)

    [hit] = call("search", query=QUESTION, k=1)["structuredContent"]["hits"]
    documents = served.searched.index.documents
    assert documents[hit["document"]].text[hit["start"] : hit["end"]] == hit["text"]
    assert call("ask", question=QUESTION)["structuredContent"]["answer"]["text"] == "1891"
    listed = call("list_documents")["structuredContent"]
    assert listed["n_documents"] == len(documents)
    assert {each["name"] for each in listed["documents"]} == set(documents)
    refused = call("search", query=" ")
    assert refused["isError"]
    assert refused["content"][0]["text"].endswith("the question is empty: ask something")
    assert call("search", query="a", k=1000)["isError"]
