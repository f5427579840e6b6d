import pytest

from engine.generation import listed_decoders as listed
from engine.weights.catalog import DEFAULT_DECODER, KNOWN_MODELS
from engine.weights.stored import block_size


def test_the_sizes_fit_the_files_and_every_file_is_pinned():
    """A header takes up to 12 MB; a file of the mix Q4_K_M has some matrices in larger types."""
    for model in KNOWN_MODELS.values():
        assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files), model.name
        assert model.licence.url.startswith("https://")
        assert model.wheel or len(model.hub_revision) == 40
        if model.sizes:  # a decoder
            columns, n_bytes = block_size(model.sizes.kind)
            least = model.sizes.n_numbers * n_bytes / columns
            most = {"Q8_0": 1.0, "Q4_1": 1.2, "Q4_K": 1.45}[model.sizes.kind] * least + 12e6
            assert least <= model.size <= most, model.name


def test_without_kernels_all_weights_are_float32(monkeypatch):
    monkeypatch.setattr("engine.models.decoders.has_op_tape", lambda: False)
    for each in listed.listed_decoders():
        assert each.memory_bytes > 4 * each.model.sizes.n_numbers


def test_speeds_are_the_rate_by_the_weights(decoder):
    assert 0 < listed.read_rate(decoder) < 1e13
    by_name = {each.model.name: each for each in listed.listed_decoders(read_rate=1e9)}
    default, larger = by_name[DEFAULT_DECODER], by_name["SmolLM2-360M-Instruct"]
    assert default.tokens_per_s == pytest.approx(1e9 / 98_362_432)
    assert default.tokens_per_s > larger.tokens_per_s


@pytest.mark.parametrize(("free", "fits"), [(10**9, {True, False}), (0, {False}), (None, {None})])
def test_free_memory_decides_what_fits(monkeypatch, free, fits):
    monkeypatch.setattr(listed, "available_memory", lambda: free)
    assert {each.fits for each in listed.listed_decoders()} == fits
