"""The command that serves: it ends by SIGTERM once requests are answered, and refuses with one line."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import engine.cli.serve  # noqa: F401 (adds its command to the app)
from engine.cli.main import app
from engine.serving.server import listening
from tests.engine_server import EngineServer

ROOT = Path(__file__).parents[3]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
        texts = [f"Number {number}: {'many words ' * 40}" for number in range(400)]
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.openai.embeddings.create, model="all-MiniLM-L6-v2", input=texts)
            while not re.search(r"requests_in_flight 2\.0", server.get("/metrics", headers=headers).text):
                assert not answer.done(), "it was answered before it could be interrupted"
            process.send_signal(signal.SIGTERM)
            while is_open(address):
                assert not answer.done(), "new requests are refused before the last one is answered"
            assert len(answer.result().data) == 400
        assert process.wait(30) == 0
        assert process.stderr.read() == "Every request was answered: ended\n"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--pooling", "best"), "pooling 'best' is not one of"),
        (("--pooling", "idf"), "weighs tokens by a corpus"),
        (("notes", "--index", "folder"), "leave out one of them"),
        (("--index", "nowhere"), "nowhere holds no index"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_one_line(options, reason):
    result = run("serve", *options)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert reason in result.stderr.splitlines()[-1]


def test_a_port_in_use_is_one_line():
    with listening("127.0.0.1", 0) as taken:
        result = run("serve", "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "give another --port" in result.stderr.splitlines()[-1]


def test_a_missing_package_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("engine.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = run("serve")
    assert result.exit_code == 2
    assert "fastapi, which is not installed: pip install -r requirements-serve.txt" in result.stderr
