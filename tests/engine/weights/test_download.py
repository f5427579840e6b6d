"""Downloads that end early, from a server on this machine in the place of the Hub."""

import hashlib
import shutil
from collections import namedtuple

import pytest

from engine.errors import ModelUnavailableError
from engine.weights import download as downloads
from engine.weights.catalog import APACHE_2, KnownModel, ModelFile
from engine.weights.download import DownloadStoppedError, part_path
from engine.weights.fetch import known_model_path, model_path
from engine.weights.transfer import Transfer

WEIGHTS = bytes(range(256)) * 4000  # 1,024,000 bytes
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
MODEL = KnownModel("tiny", APACHE_2, "owner/tiny", "v1", (ModelFile("tiny.gguf", SHA256, len(WEIGHTS)),))
PLACE = "owner/tiny/tiny.gguf"
RANGE = "bytes={}-".format


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """No second between two tries, and pieces that are small against the file."""
    monkeypatch.setattr(downloads, "PAUSE_S", 0)
    monkeypatch.setattr(downloads, "PIECE_BYTES", 10_240)


@pytest.fixture
def served(hub):
    hub[PLACE] = WEIGHTS
    return hub


def part(cache):
    return part_path(cache / "tiny" / ".download" / "tiny.gguf", SHA256)


def assert_whole(cache):
    [path] = (cache / "tiny").iterdir()
    assert path.name == "tiny.gguf"
    assert path.read_bytes() == WEIGHTS


def stop_at(n_bytes):
    """Return the two functions that stop a download behind some bytes."""
    state = {"done": 0}

    def on_progress(done, total):
        state["done"] = done

    return on_progress, lambda: state["done"] >= n_bytes


def test_a_stopped_download_goes_on_where_it_was(served, cache):
    with pytest.raises(DownloadStoppedError, match=r"stopped at 0\.3 of 1\.0 MB: the next try goes on there"):
        known_model_path(MODEL, *stop_at(300_000))
    kept = part(cache).stat().st_size
    assert 300_000 <= kept < len(WEIGHTS)
    seen = []
    assert known_model_path(MODEL, lambda *step: seen.append(step)).read_bytes() == WEIGHTS
    assert served.sent[-1] == (RANGE(kept), len(WEIGHTS) - kept)
    assert seen[0][0] > kept
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert_whole(cache)


def test_a_lost_connection_is_taken_up_at_once(served, cache):
    served.cut = [409_600, 307_200]
    known_model_path(MODEL)
    assert [asked for asked, _ in served.sent] == [None, RANGE(409_600), RANGE(716_800)]
    assert_whole(cache)


def test_a_download_that_ends_at_99_percent_goes_on_there(served, cache):
    served.cut = [1_013_760, *[0] * 8]
    with pytest.raises(ModelUnavailableError, match=r"ended at 1\.0 of 1\.0 MB \(peer closed connection"):
        known_model_path(MODEL)
    assert part(cache).stat().st_size == 1_013_760
    assert not (cache / "tiny" / "tiny.gguf").exists()
    served.cut = []
    known_model_path(MODEL)
    assert served.sent[-1] == (RANGE(1_013_760), 10_240)
    assert_whole(cache)


def test_a_server_without_ranges_starts_anew(served, cache):
    served.has_ranges = False
    served.cut = [200_000]
    known_model_path(MODEL)
    assert served.sent[-1][1] == len(WEIGHTS)
    assert_whole(cache)


def test_wrong_bytes_are_deleted_and_said(served, cache):
    served[PLACE] = WEIGHTS[:-1] + b"x"
    served.etags[PLACE] = SHA256  # the Hub states the right sum, and sends something else
    with pytest.raises(ModelUnavailableError, match=r"has SHA-256 .*the download is deleted"):
        known_model_path(MODEL)
    assert list((cache / "tiny").iterdir()) == []


def test_a_file_that_changed_on_the_hub_is_not_even_downloaded(served, cache):
    served[PLACE] = b"other"
    with pytest.raises(ModelUnavailableError, match="it was changed there, and is not downloaded"):
        known_model_path(MODEL)
    assert served.sent == []


@pytest.mark.parametrize(("sha256", "content"), [("0" * 64, b"old"), (SHA256, WEIGHTS + b"x")])
def test_a_part_of_another_version_or_too_long_is_dropped(served, cache, sha256, content):
    old = part_path(part(cache).with_name("tiny.gguf"), sha256)
    old.parent.mkdir(parents=True)
    old.write_bytes(content)
    known_model_path(MODEL)
    assert served.sent == [(None, len(WEIGHTS))]
    assert_whole(cache)


def test_a_damaged_part_is_found_out_by_the_sum(served, cache):
    part(cache).parent.mkdir(parents=True)
    part(cache).write_bytes(b"x" * 1000)
    with pytest.raises(ModelUnavailableError, match="the download is deleted"):
        known_model_path(MODEL)
    known_model_path(MODEL)
    assert_whole(cache)


def test_a_full_disk_is_said_before_the_download(served, cache, monkeypatch):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 500_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(ModelUnavailableError, match=r"0\.00 GB more and 0\.00 GB are free .*GLASSBOX_CACHE"):
        known_model_path(MODEL)
    assert served.sent == []


def test_two_programs_do_not_write_one_file(served, cache):
    tries = []

    def start_another(done, total):
        if not tries:
            tries.append(done)
            with pytest.raises(ModelUnavailableError, match="another program is downloading it"):
                known_model_path(MODEL)

    known_model_path(MODEL, start_another)
    assert tries
    assert_whole(cache)


def test_an_etag_is_no_path(served, cache):
    served.etags[PLACE] = "../../../outside"
    with pytest.raises(DownloadStoppedError):
        known_model_path(MODEL, *stop_at(300_000))
    assert [path.name for path in (cache / "tiny" / ".download").iterdir()] == ["tiny.gguf.outside.part"]
    known_model_path(MODEL)
    assert_whole(cache)


def test_terms_that_were_not_accepted_are_named(served, cache):
    served.refused[PLACE] = (403, "GatedRepo")
    way_out = r"accept its terms at http\S+/owner/tiny, and set HF_TOKEN"
    with pytest.raises(ModelUnavailableError, match=way_out):
        known_model_path(MODEL)


def test_a_model_without_a_wheel_has_one_source(cache):
    with pytest.raises(ModelUnavailableError) as raised:
        known_model_path(MODEL)
    assert "switched off by HF_HUB_OFFLINE" in str(raised.value)
    assert "pip" not in str(raised.value)


def hub_folder(hub, weights=WEIGHTS):
    files = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": weights}
    hub.update({f"someone/model/{name}": content for name, content in files.items()})


@pytest.mark.parametrize("rest", [WEIGHTS, WEIGHTS[::-1]], ids=["the same", "another revision"])
def test_a_stopped_folder_goes_on_with_the_same_files_only(hub, cache, rest):
    hub_folder(hub)
    with pytest.raises(DownloadStoppedError):
        model_path("someone/model", *stop_at(300_000))
    n_sent = len(hub.sent)
    hub_folder(hub, weights=rest)
    folder = model_path("someone/model")
    assert (folder / "model.safetensors").read_bytes() == rest
    if rest == WEIGHTS:
        assert len(hub.sent) == n_sent + 1  # the rest of the weights, and no other file


def test_a_change_on_the_hub_since_the_first_download_is_told(hub, cache):
    hub_folder(hub)
    folder = model_path("someone/model")
    (folder / "model.safetensors").unlink()
    hub_folder(hub, weights=b"changed")
    with pytest.raises(ModelUnavailableError, match=r"model\.safetensors changed on the Hub since the first"):
        model_path("someone/model")
    (folder / "hub.json").unlink()
    assert (model_path("someone/model") / "model.safetensors").read_bytes() == b"changed"


def reported(clock, *states):
    found = Transfer()
    for clock[0], done, total in states:
        found(done, total)
    return found


def test_bytes_rate_and_time_left_in_words(clock):
    halfway = reported(clock, (0, 100_000_000, 600_000_000), (2, 120_000_000, 600_000_000))
    assert halfway.words == "120.0 of 600.0 MB · 10.0 MB/s · 48 s left"
    assert halfway.share == pytest.approx(0.2)
    end = reported(clock, (0, 0, 4_000_000), (1, 4_000_000, 4_000_000))
    assert (end.words, end.share) == ("4.0 of 4.0 MB · 4.0 MB/s", 1)
    assert reported(clock, (0, 5_000_000, 9_000_000)).words == "5.0 of 9.0 MB"
    assert reported(clock, (0, 0, 0), (1, 2_000_000, 0)).words == "2.0 MB · 2.0 MB/s"
    assert reported(clock, (0, 1, 0)).share == 0
    slowed = reported(clock, (0, 0, 10**9), (9, 900_000_000, 10**9), (10, 901_000_000, 10**9))
    assert slowed.bytes_per_s == pytest.approx(1e6)  # of the last seconds
