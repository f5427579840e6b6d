import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.weights.catalog import DEFAULT_DECODER, KNOWN_MODELS
from tests.command_line import printed, refusal, run

ROOT = Path(__file__).parents[3]


def test_the_decoders_are_listed_with_their_licences():
    models = printed("models")["models"]
    assert [each["name"] for each in models] == [name for name in KNOWN_MODELS if KNOWN_MODELS[name].sizes]
    default = models[0]
    assert (default["name"], default["downloaded"]) == (DEFAULT_DECODER, True)
    assert default["estimated_tokens_per_s"] > 0
    lines = run("models").stdout.splitlines()
    [llama] = [line for line in lines if line.startswith("Llama-3.2-1B-Instruct")]
    assert "808 MB" in llama
    assert llama.endswith("Llama 3.2 Community, to be accepted")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no file that is always full")
@pytest.mark.parametrize(
    "arguments",
    [["search", "--help"], pytest.param(["download", DEFAULT_DECODER], marks=pytest.mark.nightly)],
)
def test_output_that_cannot_be_written_ends_without_a_traceback(arguments):
    command = [sys.executable, "-m", "engine", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    line = "error: the output cannot be written (No space left on device): make room\n"
    assert (done.returncode, done.stderr) == (2, line)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_messages_never_go_to_the_output():
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "engine", "download", "gpt-5"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_terms_have_to_be_accepted_before_a_download(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_CACHE", str(tmp_path))
    way = "read https://ai.google.dev/gemma/terms, and accept it by `download gemma-3-1b-it --accept-licence`"
    assert way in refusal("download", "gemma-3-1b-it")
    assert way in refusal("ask", "Why?", "--write", "--decoder", "gemma-3-1b-it")
    offline = refusal("download", "gemma-3-1b-it", "--accept-licence")
    assert "switched off by HF_HUB_OFFLINE" in offline


def test_a_model_in_the_cache_is_not_downloaded():
    assert printed("download", DEFAULT_DECODER)["path"].endswith(".gguf")


def test_what_does_not_fit_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSBOX_CACHE", str(tmp_path))
    monkeypatch.setattr("engine.generation.listed_decoders.available_memory", lambda: 10**9)
    assert "warning: Qwen3-4B needs about 4.3 GB of memory" in run("download", "Qwen3-4B").stderr


@pytest.mark.parametrize("name", ["gpt-5", "a/b/c"])
def test_an_unknown_name_is_one_line(name):
    result = run("download", name)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
