"""The choice of a decoder: what it takes is said first, and a download that broke off goes on."""

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest
import streamlit as st

from engine.errors import GlassboxError
from engine.weights import catalog, download
from engine.weights.catalog import APACHE_2, DEFAULT_DECODER
from engine.weights.fetch import known_model_path
from tests.apps import app_of, said, tables
from tests.hub_server import cache, hub  # noqa: F401 (fixtures)
from tests.tokenizer_files import small_byte_level

GEMMA = catalog.LICENCES["Gemma Terms of Use"]
NAME = "tiny-llm"
PLACE = "owner/tiny-llm/tiny.gguf"


def picker():
    from pages.ask.decoder_choice import decoder_picker

    decoder_picker()


@pytest.fixture(scope="module")
def weights(tmp_path_factory, torch):
    """The bytes of a .gguf file of a random decoder."""
    from tests.engine.models.test_decoder_families import random_model, write_gguf

    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_gguf(path, random_model(small_byte_level(), "llama"), small_byte_level())
    return path.read_bytes()


@pytest.fixture
def known(hub, weights, monkeypatch, cache):  # noqa: F811
    """A small model known by name, on a server in the place of the Hub; the default one is in the cache."""
    monkeypatch.setattr(download, "PAUSE_S", 0)
    monkeypatch.setattr(download, "PIECE_BYTES", 10_000)
    default = catalog.KNOWN_MODELS[DEFAULT_DECODER]
    folder = cache / DEFAULT_DECODER
    monkeypatch.setenv("GLASSBOX_CACHE", str(Path.home() / ".cache" / "glassbox"))
    path = known_model_path(default)
    monkeypatch.setenv("GLASSBOX_CACHE", str(cache))
    folder.mkdir(parents=True)
    (folder / path.name).symlink_to(path)
    hub[PLACE] = weights

    def add(licence=APACHE_2, n_numbers=200_000):
        file = catalog.ModelFile("tiny.gguf", hashlib.sha256(weights).hexdigest(), len(weights))
        sizes = catalog.DecoderSizes(n_numbers, "Q8_0", 2, 2, 8, 64)
        model = catalog.KnownModel(NAME, licence, "owner/tiny-llm", "v1", (file,), sizes)
        monkeypatch.setitem(catalog.KNOWN_MODELS, NAME, model)
        return model

    yield add
    st.cache_resource.clear()


def chosen(name=NAME):
    return app_of(picker).run().selectbox(key="wanted_decoder").set_value(name).run()


def until_done(app):
    with suppress(GlassboxError):
        app.session_state["jobs"]["download"].result()
    return app.run()


def in_use(app):
    if "decoder" in app.session_state:
        return app.session_state["decoder"]
    return DEFAULT_DECODER


def test_what_it_takes_is_said_before_it_is_downloaded_and_used(known, hub):  # noqa: F811
    model = known()
    app = chosen()
    words = said(app).replace("\\", "")
    assert "of memory: fits in the" in words
    assert "tokens/s here (estimated)" in words
    assert f"Licence [Apache-2.0]({APACHE_2.url})." in words
    assert f"{DEFAULT_DECODER} stays in use until then." in words
    assert hub.sent == []
    button = app.button(key="start-download")
    assert button.label == f"Download {model.size / 1e6:.0f} MB"
    app = until_done(button.click().run())
    assert in_use(app) == NAME
    assert f"{NAME} · here" in app.selectbox(key="wanted_decoder").options


def test_a_download_that_broke_off_goes_on(known, hub):  # noqa: F811
    model = known()
    hub.cut = [50_000, *[0] * 9]
    app = until_done(chosen().button(key="start-download").click().run())
    assert "the next try goes on there" in app.error[0].value
    assert in_use(app) == DEFAULT_DECODER
    button = app.button(key="start-download")
    assert button.label == f"Go on ({(model.size - 50_000) / 1e6:.0f} MB left)"
    hub.cut = []
    assert in_use(until_done(button.click().run())) == NAME
    assert sum(n_bytes for _, n_bytes in hub.sent) < 1.2 * model.size


def test_terms_are_accepted_first(known):
    known(licence=GEMMA)
    app = chosen()
    assert f"[Gemma Terms of Use]({GEMMA.url}), to be accepted" in said(app)
    assert app.button(key="start-download").disabled
    app.checkbox(key=f"terms-{NAME}").check().run()
    assert not app.button(key="start-download").disabled


def test_what_does_not_fit_is_not_downloaded(known):
    known(n_numbers=10**14)
    app = chosen()
    assert "**does not fit** in the" in said(app)
    assert app.warning[0].value.startswith("It does not fit in the memory that is free")
    assert app.button(key="start-download").disabled


def test_a_full_disk_is_said_before_the_download(known, monkeypatch):
    known()
    monkeypatch.setattr("pages.ask.decoder_choice.free_disk_space", lambda folder: 1000)
    app = chosen()
    assert "The disk has 1.0 kB free" in app.warning[0].value
    assert app.button(key="start-download").disabled


def test_all_are_compared_in_a_table(known):
    known(licence=GEMMA)
    app = app_of(picker).run().button(key="compare-decoders").click().run()
    [table] = tables(app)
    assert table["Model"].iloc[-1] == NAME
    assert table["Here"].iloc[0] == "in use"
    assert table["Licence"].iloc[-1] == "Gemma Terms of Use, to be accepted"


def test_a_model_of_ones_own_is_loaded_at_once(known, weights, tmp_path):
    path = tmp_path / "own.gguf"
    path.write_bytes(weights)
    app = chosen("Another file, folder or id…")
    assert in_use(app) == DEFAULT_DECODER
    assert in_use(app.text_input(key="own_decoder").set_value(str(path)).run()) == str(path)
    assert "In use." in said(app)
    app.text_input(key="own_decoder").set_value("/nowhere/model.gguf").run()
    assert in_use(app) == str(path)
    assert "no model '/nowhere/model.gguf'" in app.error[0].value.replace("\\", "")
