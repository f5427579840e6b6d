"""The server through the clients that people have: the openai package, httpx, and our own."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine import Encoder
from engine.errors import ModelUnavailableError
from engine.evaluation.embedding_server import EmbeddingServer
from engine.layers.activation import sigmoid
from engine.models.prompts import Prompts
from engine.models.reranker import Reranker
from engine.retrieval.bm25 import Bm25
from engine.serving.served import RequestLimits, Served
from tests.engine_server import MODEL, engine_server
from tests.sentence_transformer_folders import save_reranker

TEXTS = ["The cat sat.", "A feline rests on the mat.", "Lighthouses are tall.", "7"]
LONG = "word " * 300
SMALL = RequestLimits(body_mb=0.02, texts=3, tokens=40)


@pytest.fixture(scope="module")
def small(served):
    """A server with small limits."""
    with engine_server(served, SMALL) as running:
        yield running


def vectors_of(answer):
    assert [each.index for each in answer.data] == list(range(len(answer.data)))
    return np.array([each.embedding for each in answer.data], np.float32)


def error_of(response):
    """The error of an answer in OpenAI's shape, whose message is one line without a path."""
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    assert "Traceback" not in error["message"]
    assert "/usr" not in error["message"]
    return error


def test_the_openai_package_gets_the_vectors_of_the_encoder(server, encoder):
    create, expected = server.openai.embeddings.create, encoder.encode(TEXTS)
    answer = create(model=MODEL, input=TEXTS, encoding_format="float")
    np.testing.assert_allclose(vectors_of(answer), expected, atol=1e-6)
    packed = create(model=MODEL, input=TEXTS, encoding_format="base64")  # asked for, it is given as it is
    data = [np.frombuffer(base64.b64decode(each.embedding), "<f4") for each in packed.data]
    np.testing.assert_allclose(np.array(data), expected, atol=1e-6)
    ids = encoder.tokenizer.ids_batch(TEXTS)
    n_tokens = sum(map(len, ids))
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (n_tokens, n_tokens)
    assert answer.model == MODEL
    for given, rows in ((TEXTS[0], [0]), (ids[1], [1]), (ids, [0, 1, 2, 3])):
        answer = create(model=MODEL, input=given)  # the package asks for base64 by itself
        np.testing.assert_allclose(vectors_of(answer), expected[rows], atol=1e-6)


def test_our_own_client_of_such_servers_works_with_it(server, encoder):
    connected = EmbeddingServer.connect(f"{server.url}#{MODEL}", encoder.tokenizer)
    assert connected.d_model == 384
    vectors = connected.encode_as("document", TEXTS, ["own"])["own"]
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-6)
    with pytest.raises(ModelUnavailableError, match="text 0 has 302 tokens"):
        connected.encode_as("document", [LONG], ["own"])


def test_models_are_listed_and_the_only_one_answers_for_others_which_is_told(server):
    [model] = server.openai.models.list().data
    assert (model.id, model.dimensions, model.max_tokens) == (MODEL, 384, 256)
    assert server.openai.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        server.openai.models.retrieve("gpt-9")
    answer = server.openai.embeddings.create(model="text-embedding-3-small", input="x")
    assert answer.model == MODEL
    assert answer.warnings == [f"there is no model 'text-embedding-3-small': {MODEL} answered"]


@pytest.mark.parametrize(
    ("fields", "parameter", "message"),
    [
        ({"input": ""}, "input", "text 0 is empty"),
        ({"input": ["a", ""]}, "input", "text 1 is empty"),
        ({"input": []}, "input", "give one text or more"),
        ({"input": [[]]}, "input", "text 0 has no tokens"),
        ({"input": [1.5]}, "input", "give a text, a list of texts, a list of token ids"),
        ({"input": [10**400]}, "input", "token id 1000"),
        ({"input": [30_522]}, "input", "token id 30522 of text 0 is not of all-MiniLM-L6-v2"),
        ({"input": {"text": "a"}}, "input", "give a text"),
        ({"input": "\ud800"}, None, "half of a surrogate pair"),
        ({"input": "a", "dimensions": 64}, "dimensions", "have 384: leave it out"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "'float' or 'base64'"),
        ({"input": "a", "prompt_name": "title"}, None, "there is no prompt 'title'"),
        ({"input": LONG}, "input", "text 0 has 302 tokens, over the 256 that all-MiniLM-L6-v2 reads"),
    ],
)
def test_input_that_cannot_be_embedded_is_refused_with_a_line(server, fields, parameter, message):
    response = server.post("/v1/embeddings", {"model": MODEL, **fields})
    error = error_of(response)
    assert (response.status_code, error["param"]) == (400, parameter)
    assert message in error["message"]


def test_texts_are_cut_only_where_that_is_asked_for_and_it_is_told(server, encoder, served):
    answer = server.openai.embeddings.create(model=MODEL, input=["a", LONG], extra_body={"truncate": True})
    assert answer.truncated == [{"index": 1, "tokens": 302, "read": 256}]
    np.testing.assert_allclose(vectors_of(answer), encoder.encode(["a", LONG]), atol=1e-6)
    assert answer.usage.prompt_tokens == 3 + 256
    with engine_server(replace(served, truncate=True)) as cutting:
        assert cutting.embed(LONG).json()["truncated"] == [{"index": 0, "tokens": 302, "read": 256}]
        assert cutting.embed(LONG, truncate=False).status_code == 400


def test_vectors_are_cut_pooled_and_prompted_as_the_server_and_the_request_say(encoder):
    asking = replace(encoder, prompts=Prompts({"query": "query: "}))
    with engine_server(Served(asking, pooling="max", matryoshka=True)) as running:
        create = running.openai.embeddings.create
        expected = asking.encode(TEXTS, "max", normalize_embeddings=True, truncate_dim=64)
        answer = create(model=MODEL, input=TEXTS, dimensions=64)
        np.testing.assert_allclose(vectors_of(answer), expected, atol=1e-6)
        assert "give 1 to 384" in error_of(running.embed("a", dimensions=385))["message"]
        answer = create(model=MODEL, input=TEXTS, extra_body={"prompt_name": "query"})
        np.testing.assert_allclose(vectors_of(answer), asking.encode_query(TEXTS, pooling="max"), atol=1e-6)
        assert "read as they are" in error_of(running.embed([1], prompt_name="query"))["message"]


@pytest.mark.parametrize(
    ("texts", "status", "message"),
    [
        (["a"] * 4, 400, "4 texts, over the 3 of a request"),
        (["a b c d e f g h i j k l m n o p"] * 3, 400, "54 tokens, over the 40 of a request"),
        ("a" * 20_001, 413, "more than 0.02 MB"),
    ],
)
def test_more_than_the_limits_is_refused(small, texts, status, message):
    response = small.embed(texts)
    assert response.status_code == status
    assert message in error_of(response)["message"]


def test_a_body_that_tells_no_length_or_is_no_json_object_is_refused(small, server):
    content = (b" " * 1000 for _ in range(30))
    assert small.post("/v1/embeddings", content=content).status_code == 413
    headers = {"Content-Type": "application/json"}
    numbers = b'{"model": "m", "input": [%s]}' % (b"9" * 5000)
    for body in (b"{", b"[]", b"\xff", b"", b"[" * 4000, numbers):
        response = server.post("/v1/embeddings", content=body, headers=headers)
        assert response.status_code == 400
        error_of(response)
    plain = {"Content-Type": "text/plain"}  # as a web page can send it without being asked
    body = b'{"model": "all-MiniLM-L6-v2", "input": "a"}'
    refused = server.post("/v1/embeddings", content=body, headers=plain)
    assert refused.status_code == 415
    assert "'text/plain': send it as Content-Type: application/json" in error_of(refused)["message"]


def test_more_requests_than_the_limit_are_asked_to_come_again(served):
    with engine_server(served, RequestLimits(requests=1)) as running, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: running.embed([LONG[:900]] * 20), range(8)))
        busy = [each for each in answers if each.status_code == 503]
        assert {each.status_code for each in answers} == {200, 503}
        assert all(int(each.headers["Retry-After"]) >= 1 for each in busy)
        assert error_of(busy[0])["code"] == "overloaded"
        assert running.get("/health").status_code == 200


def test_a_request_that_takes_too_long_ends(served, monkeypatch):
    with engine_server(served, RequestLimits(seconds=0.05)) as running:
        response = running.embed([LONG[:1200]] * 300)
        assert response.status_code == 504
        assert "not done within 0.05 s" in error_of(response)["message"]


def test_what_is_not_answered_when_the_server_has_to_end_is_told(encoder, monkeypatch, capfd):
    started, through = threading.Event(), threading.Event()

    def slow(self, key, items):
        started.set()
        through.wait()
        return np.zeros((len(items), 384), np.float32)

    monkeypatch.setattr(Served, "work", slow)
    with ThreadPoolExecutor(1) as pool, engine_server(Served(encoder), RequestLimits(drain_s=0)) as running:
        answer = pool.submit(running.embed, "a")
        started.wait()
        running.stop()
        response = answer.result()
        through.set()
    assert response.status_code == 503
    assert "the server ended before this request was answered" in error_of(response)["message"]
    assert capfd.readouterr().err == ""


def test_a_key_is_asked_for_everywhere_but_at_the_health_check(served):
    with engine_server(served, key="gl4ss-s3cret") as running:
        assert vectors_of(running.openai.embeddings.create(model=MODEL, input="a")).shape == (1, 384)
        with pytest.raises(openai.AuthenticationError) as error:
            openai.OpenAI(base_url=f"{running.url}/v1", api_key="wrong").embeddings.create(
                model=MODEL, input="a"
            )
        assert error.value.code == "invalid_api_key"
        for path in ("/metrics", "/v1/models", "/openapi.json"):
            assert running.get(path).status_code == 401
            assert running.get(path, headers={"Authorization": "Bearer gl4ss-s3cret"}).status_code == 200
        assert running.get("/v1/models", headers={"Authorization": "Bearer é".encode()}).status_code == 401
        assert running.get("/health/ready").json() == {"status": "ready"}


def test_only_the_host_names_of_the_server_lead_to_it(server, served):
    hosts = {"localhost:1": 200, "127.0.0.1": 200, "[::1]:9": 200, "rebound.example:80": 421, "": 421}
    for host, status in hosts.items():  # a web page may have another name lead here
        assert server.get("/v1/models", headers={"Host": host}).status_code == status
    with engine_server(served, hosts=["api.example.org"]) as running:
        assert running.get("/health", headers={"Host": "API.example.org"}).status_code == 200
        assert running.get("/health").status_code == 421
    with engine_server(served, hosts=["*"]) as running:
        assert running.get("/health", headers={"Host": "x"}).status_code == 200


def test_without_a_cross_encoder_documents_are_ordered_by_the_reader_and_common_words(server, reader):
    texts = ["It is painted white.", "It was built in 1891 by Ada Lind.", "A red car. " * 200]
    query = "Who built it?"
    words = Bm25(texts).scores([query])[0].astype(float)
    expected = reader.score(query, ["", *texts])[1:] + 10 * (words / words.max() - 1)
    body = {"query": query, "documents": [texts[0], {"text": texts[1]}, texts[2]], "top_n": 2}
    answer = server.post("/rerank", body | {"return_documents": True}).json()
    assert (answer["method"], answer["model"]) == ("reader", "glassbox-reader")
    assert [each["index"] for each in answer["results"]] == np.argsort(-expected)[:2].tolist()
    assert answer["results"][0]["document"] == {"text": texts[1]}
    for each in answer["results"]:
        assert each["relevance_score"] == pytest.approx(sigmoid(expected[each["index"]]), rel=1e-3)
    raw = server.post("/rerank", {"query": query, "texts": [*texts, ""], "raw_scores": True}).json()
    assert raw[0]["index"] == 1
    assert {each["index"]: each["score"] for each in raw}[2] == pytest.approx(expected[2], abs=1e-3)
    assert raw[-1] == {"index": 3, "score": -100.0}


def test_a_cross_encoder_orders_documents(encoder, tmp_path):
    reranker = replace(Reranker.load(save_reranker(tmp_path)), name="random")
    documents = ["a b c", "j i h g", "abc def " * 30]
    with engine_server(Served(replace(encoder, reranker=reranker))) as running:
        refused = running.post("/rerank", {"query": "d e", "documents": documents})
        assert "text 2 has with the query" in error_of(refused)["message"]
        body = {"query": "d e", "documents": documents, "truncate": True, "model": "random"}
        answer = running.post("/v1/rerank", body).json()
        scores = {each["index"]: each["relevance_score"] for each in answer["results"]}
        expected = reranker.score("d e", documents)
        assert [scores[number] for number in range(3)] == pytest.approx(expected, abs=1e-5)
        assert answer["method"] == "cross-encoder"
        assert [each["index"] for each in answer["truncated"]] == [2]
        assert [each.id for each in running.openai.models.list().data] == [MODEL, "random"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"documents": []}, "documents is empty"),
        ({"documents": ["a", 3]}, "give a list of texts"),
        ({"top_n": 0}, "top_n: input should be greater than or equal to 1"),
        ({"documents": None}, "give documents, or texts as TEI has them"),
        ({"texts": ["b"]}, "give documents, or texts as TEI has them"),
        ({"query": " "}, "query: text 0 is empty"),
        ({"documents": ["b" * 100_001]}, "text 0 has 100,001 characters, over the 100,000 that are read"),
    ],
)
def test_what_cannot_be_reranked_is_refused_with_a_line(server, fields, message):
    response = server.post("/rerank", {"query": "a", "documents": ["b"], **fields})
    assert response.status_code in (400, 404)
    assert message in error_of(response)["message"]


def test_without_a_corpus_search_and_ask_say_what_is_missing(server):
    for path in ("/search", "/ask"):
        response = server.post(path, {"query": "a"})
        assert response.status_code == 404
        assert (
            error_of(response)["message"]
            == f"{path} needs documents: start the server with CORPUS or --index"
        )
    assert server.get("/nowhere").status_code == 404
    assert server.get("/v1/embeddings").status_code == 405
    error_of(server.get("/v1/embeddings"))


def test_a_failure_within_is_a_line_for_the_client_and_one_for_the_log(encoder, monkeypatch, capfd):
    def broken(*arguments, **settings):
        raise RuntimeError("of /usr/secret\nand more")

    with engine_server(Served(encoder)) as running:
        monkeypatch.setattr(Encoder, "encode_ids", broken)
        response = running.embed("a")
        assert response.status_code == 500
        assert error_of(response)["message"] == "the server failed on this request: see its log"
        monkeypatch.undo()
        assert running.embed("a").status_code == 200
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("error: /v1/embeddings: RuntimeError in broken")


def test_prometheus_reads_the_metrics(served):
    with engine_server(served) as running:
        running.embed(TEXTS)
        running.embed("")
        running.get("/nowhere")
        found = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(running.get("/metrics").text)
            for sample in family.samples
        }
    path, other = ("path", "/v1/embeddings"), ("path", "other")
    assert found["glassbox_requests_total", path, ("status", "200")] == 1
    assert found["glassbox_requests_total", path, ("status", "400")] == 1
    assert found["glassbox_requests_total", other, ("status", "404")] == 1
    assert found["glassbox_request_seconds_count", path] == 2
    assert found[("glassbox_batch_texts_sum",)] == len(TEXTS)
    assert found[("glassbox_tokens_total",)] == found[("glassbox_batch_tokens_sum",)] > len(TEXTS)
    assert found[("glassbox_queued_tokens",)] == 0
    assert found[("glassbox_requests_in_flight",)] == 1, "the one that asks"
