"""Programs in the files of a model: chat templates and regular expressions are stopped in time."""

import pytest
import regex

from engine.generation.chat import render_chat
from engine.tokenizers.patterns import compiled, cut
from tests.hostile.child import in_child
from tests.tokenizer_files import byte_level, save

MESSAGES = [{"role": "user", "content": "x"}]
TEMPLATES = {
    "product": "{{ 'a' * 10**9 }}",
    "center": "{{ 'a'.center(10**9) }}",
    "filter": "{{ 'a' | center(1000000000) }}",
    "width": "{{ '%1000000000d' % 1 }}",
    "format": "{{ '{:1000000000}'.format(1) }}",
    "doubling": "{% set n = namespace(s='aaaaaaaa') %}"
    "{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_a_template_that_fills_the_memory_or_the_stack_is_stopped(case):
    outcome = in_child(render_chat, TEMPLATES[case], MESSAGES, seconds=15, megabytes=500)
    assert outcome.error == "ModelFileError"
    assert outcome.message.startswith("the model's chat template cannot be rendered: ")
    assert len(outcome.message) < 300


def test_a_pattern_that_backtracks_without_end_is_stopped():
    pattern, text = "(?:a|aa)+$", "a" * 5000 + "!"
    outcome = in_child(cut, compiled(pattern), text, 0, len(text), seconds=15, megabytes=500)
    assert outcome.error == "ModelFileError"
    assert "of the tokenizer takes over 2 s" in outcome.message


@pytest.mark.parametrize("pattern", ["a{1000000}", "(?:(?:a{100}){100}){100}", "a|" * 5000])
def test_a_pattern_too_large_to_compile_is_refused(pattern):
    with pytest.raises(regex.error):
        compiled(pattern)


def test_patterns_that_nobody_knows_are_not_given_to_the_library(tmp_path):
    from engine.tokenizers.tokenizer_file import BytePairEncoderTokenizer

    library = byte_level("gpt-2")
    split = {"type": "Split", "pattern": {"Regex": "(?:a|aa)+$"}, "behavior": "Isolated", "invert": False}
    byte_steps = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": False}
    steps = {"type": "Sequence", "pretokenizers": [split, byte_steps]}
    around = {"type": "RobertaProcessing", "sep": ["<|end|>", 0], "cls": ["<|begin|>", 1]}
    around |= {"trim_offsets": True, "add_prefix_space": False}
    known = BytePairEncoderTokenizer(save(library, tmp_path / "known.json", post_processor=around))
    unknown = BytePairEncoderTokenizer(
        save(library, tmp_path / "unknown.json", post_processor=around, pre_tokenizer=steps)
    )
    assert known.in_library
    assert not unknown.in_library
    assert unknown.ids_batch(["the cat", ""]) == [unknown.encode(text).ids for text in ("the cat", "")]
