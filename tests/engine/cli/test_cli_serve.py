"""The command that serves: it ends by SIGTERM once requests are answered, and refuses with one line."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from engine.serving.server import listening
from tests.command_line import refusal, run
from tests.engine_server import EngineServer
from tests.model_files import edit_tensors
from tests.sentence_transformer_folders import save_bert
from tests.text_files import write_files

ROOT = Path(__file__).parents[3]


@pytest.fixture
def started(monkeypatch):
    """What the command would serve, and how, in place of serving it."""
    calls = []
    monkeypatch.setattr("engine.serving.server.run", lambda *arguments: calls.append(arguments) or 0)
    return calls


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", {"bees.md": "The keeper of the lighthouse kept bees."})


def test_a_corpus_and_an_index_are_served_with_their_settings(started, corpus, tmp_path):
    cut = ("--chunk-tokens", 16, "--pooling", "max", "--precision", "int8")
    assert run("index", corpus, "--out", tmp_path / "kept", *cut).exit_code == 0
    asked = ("--retriever", "bm25", "--k", 2, "--truncate", "--max-texts", 7)
    for given in ((corpus, *cut), ("--index", tmp_path / "kept")):
        result = run("serve", *given, *asked, "--port", 0)
        assert result.exit_code == 0, result.stderr
        served, _, hosts, key = started.pop()
        assert (served.encoder.precision, served.pooling, served.truncate) == ("int8", "max", True)
        assert served.searched.settings.search.retriever == "bm25"
        assert (served.searched.settings.search.k, served.searched.settings.write) == (2, False)
        assert (served.searched.reader.name, served.searched.writer) == ("reader", None)
        assert [chunk.document for chunk in served.searched.index.chunks] == ["bees.md"]
        assert served.limits.texts == 7
        assert (hosts, key) == ({"localhost", "127.0.0.1", "::1"}, "")


def test_a_model_in_a_folder_is_served_under_its_last_name(started, tmp_path, monkeypatch):
    save_bert(tmp_path / "secret" / "mini")
    monkeypatch.setenv("GLASSBOX_API_KEY", "k3y")
    options = ("--host", "0.0.0.0", "--allowed-host", "api.example.org", "--port", 0)
    result = run("serve", "--model", tmp_path / "secret" / "mini", *options)
    assert result.exit_code == 0, result.stderr
    served, _, hosts, key = started.pop()
    assert (served.encoder.name, key) == ("mini", "k3y")
    assert hosts == {"localhost", "127.0.0.1", "::1", "api.example.org"}
    assert "warning" not in result.stderr
    monkeypatch.delenv("GLASSBOX_API_KEY")
    assert "warning: whoever reaches 0.0.0.0 may use this server" in run("serve", *options).stderr


def test_an_index_of_another_model_is_one_line(corpus, tmp_path):
    save_bert(tmp_path / "mini", max_tokens=20)
    model = ("--model", tmp_path / "mini", "--chunk-tokens", 16)
    made = run("index", corpus, "--out", tmp_path / "kept", *model)
    assert made.exit_code == 0, made.stderr
    edit_tensors(tmp_path / "mini", lambda of: of.update({name: -array for name, array in of.items()}))
    line = refusal("serve", "--index", tmp_path / "kept", "--port", 0)
    assert "give the model that made them" in line


def is_open(address):
    try:
        httpx.get(f"{address}/health")
    except httpx.TransportError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process there")
def test_sigterm_answers_what_was_taken_and_takes_no_more():
    command = [sys.executable, "-m", "engine", "serve", "--port", "0"]
    environment = {**os.environ, "GLASSBOX_API_KEY": "k3y"}
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        lines = iter(process.stderr.readline, "")
        address = next(found for line in lines if (found := re.search(r"http://\S+", line))).group()
        server, headers = EngineServer(address, "k3y"), {"Authorization": "Bearer k3y"}
        texts = [f"Number {number}: {'many words ' * 40}" for number in range(150)]
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.openai.embeddings.create, model="all-MiniLM-L6-v2", input=texts)
            while not re.search(r"requests_in_flight 2\.0", server.get("/metrics", headers=headers).text):
                assert not answer.done(), "it was answered before it could be interrupted"
            process.send_signal(signal.SIGTERM)
            while is_open(address):
                assert not answer.done(), "new requests are refused before the last one is answered"
            assert len(answer.result().data) == 150
        assert process.wait(30) == 0
        assert process.stderr.read() == "Ended, with every request answered\n"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--pooling", "best"), "pooling 'best' is not one of"),
        (("--pooling", "idf"), "weighs tokens by a corpus"),
        (("README.md", "--index", "folder"), "leave out one of them"),
        (("--index", "nowhere"), "nowhere holds no index"),
        (("--tools",), "--tools are those of documents: give CORPUS or --index"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_one_line(options, reason):
    assert reason in refusal("serve", *options)


def test_a_port_in_use_is_one_line():
    with listening("127.0.0.1", 0) as taken:
        assert "give another --port" in refusal("serve", "--port", taken.getsockname()[1])


def test_a_missing_package_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("engine.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    line = refusal("serve")
    assert "fastapi, which is not installed: pip install -r requirements-serve.txt" in line


def test_an_assistant_asks_over_standard_input_and_output(corpus):
    client = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
    asked = {"name": "ask", "arguments": {"question": "Who kept bees?"}}
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", **client}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": asked},
    ]
    command = [sys.executable, "-m", "engine", "mcp", corpus]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        started, answered = (json.loads(process.stdout.readline()) for _ in range(2))
        process.stdin.close()
    assert started["result"]["serverInfo"]["name"] == "glassbox"
    found = answered["result"]["structuredContent"]
    assert found["quotes"][0]["document"] == "bees.md"
    assert process.returncode == 0
