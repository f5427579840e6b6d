from dataclasses import replace

import pytest

from engine.errors import InputError
from engine.evaluation.grid import fitting, grid
from engine.evaluation.library_model import LibraryModel
from engine.models.prompts import Prompts


def settings_of(configurations, *keys):
    return [tuple(getattr(one, key) for key in keys) for one in configurations]


def left_out(made, *keys):
    return settings_of([one.configuration for one in made.left_out], *keys)


def test_sizes_without_room_for_an_overlap_are_left_out_and_told():
    made = grid(chunk_tokens=[16, 64], overlap=[0, 14, 100])
    sizes = ("chunk_tokens", "overlap")
    assert settings_of(made.configurations, *sizes) == [(16, 0), (64, 0), (64, 14)]
    assert left_out(made, *sizes) == [(16, 14), (16, 100), (64, 100)]
    assert made.left_out[0].why == "overlap 14 does not fit a chunk of 16 tokens: give 0 to 13"


def test_sliding_chunks_have_no_overlap_to_choose():
    made = grid(splitter=["sliding", "fixed"], overlap=[8, 0])
    expected = [("sliding", 8), ("fixed", 8), ("fixed", 0)]
    assert settings_of(made.configurations, "splitter", "overlap") == expected
    assert "ignores the overlap" in made.left_out[0].why


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"splitter": ["fixd"]}, "splitter 'fixd' is not one of"),
        ({"pooling": ["men"]}, "pooling 'men' is not one of"),
        ({"retriever": ["tfidf"]}, "retriever 'tfidf' is not one of"),
        ({"k": [5, 0]}, "k is 0"),
        ({"overlap": []}, "no overlap is given"),
        ({"max_tokens": []}, "no max_tokens is given"),
        ({"model": "all-MiniLM-L6-v2"}, "no model is given"),
    ],
)
def test_a_mistake_is_no_empty_grid(settings, message):
    with pytest.raises(InputError, match=message):
        grid(**settings)


def test_the_pooling_of_library_models_is_asked_of_no_other(encoder):
    library = LibraryModel("theirs", None, encoder.tokenizer, 8, "", 64)
    made = grid(pooling=["mean", "own"], model=[encoder.name, "theirs"])
    fit = fitting(made, {encoder.name: encoder, "theirs": library})
    assert settings_of(fit.configurations, "model", "pooling") == [(encoder.name, "mean"), ("theirs", "own")]
    assert left_out(fit, "model", "pooling") == [("theirs", "mean")]


def test_what_a_model_cannot_do_is_left_out(encoder):
    made = grid(pooling=["mean", "idf", "own"], max_tokens=[None, 256, 100_000])
    fit = fitting(made, {encoder.name: encoder})
    expected = [("mean", None), ("idf", None), ("mean", 256), ("idf", 256)]
    assert settings_of(fit.configurations, "pooling", "max_tokens") == expected
    assert {one.why.split(":")[0] for one in fit.left_out} == {"max_tokens is 100000"}


def test_the_models_own_pooling_is_named(encoder):
    [fit] = fitting(grid(pooling=["own"]), {encoder.name: encoder}).configurations
    assert fit.pooling == "mean"


def test_prompts_are_left_out_only_where_there_are_some(encoder):
    made = grid(prompts=["own", "none"])
    fit = fitting(made, {encoder.name: encoder})
    assert settings_of(fit.configurations, "prompts") == [("own",)]
    [left_out] = fit.left_out
    assert left_out.why == f"{encoder.name} has no prompts to leave out: 'own' stands for both"
    prompted = replace(encoder, prompts=Prompts({"query": "query: "}))
    assert fitting(made, {encoder.name: prompted}).configurations == made.configurations
