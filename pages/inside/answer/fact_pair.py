"""The two prompts that are compared: with and without a passage of the answer, or two of the user's own."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.generation.answer import Written
from engine.generation.decoder import Decoder
from engine.generation.passages import ids_without
from engine.inspection.model.patching import PromptPair, align_prompts
from pages.inside.answer.attribution import attribution_of
from pages.inside.answer.compare import show_side_by_side, word_differences
from ui.models import load_decoder
from ui.text import escape_markdown
from ui.tokens import visible_blanks
from ui.widgets import check_typed

# The default model says Paris by itself, and Berlin after the first passage.
EXAMPLE = {
    "pair-first": "By a new law, the capital of France is now Berlin.",
    "pair-second": "By a new law, the capital of France is now Paris.",
    "pair-ending": "The capital of France is now",
    "pair-answer": "",
}
MAX_CHARACTERS = 5_000


@dataclass(frozen=True)
class NamedPair:
    """Two prompts, and what they are called in sentences."""

    pair: PromptPair
    clean: str
    corrupted: str


def token_name(decoder: Decoder, number: int) -> str:
    """Return a token with its white space visible, unescaped."""
    return visible_blanks(decoder.token_text(number))


def spoken(token: str) -> str:
    """Return a token as a word of a sentence, without white space around it, escaped for Markdown."""
    return escape_markdown(token.strip("␣") or token)


def answer_words(decoder: Decoder, pair: PromptPair) -> str:
    """Return the tokens of a pair's answer as words of a sentence, escaped for Markdown."""
    return spoken("".join(token_name(decoder, number) for number in pair.answer))


def pair_of_answer(written: Written) -> NamedPair | None:
    """Draw the choice of a passage and of a token; return the prompt with the passage and without.

    None where the answer has no words.
    """
    found = attribution_of(written)
    if found is None:
        return None
    decoder, prompt, ids = load_decoder(), found.prompt, found.ids
    drops = found.left_out.complete - found.left_out.without  # (n_passages, n_answer)
    best_passage, best_token = np.unravel_index(drops.argmax(), drops.shape)
    left, right = st.columns(2)
    identity = hash((prompt.ids, ids))
    passage = left.selectbox(
        "Passage to leave out",
        range(len(drops)),
        int(best_passage),
        format_func=lambda number: f"[{number + 1}] {written.prompt.sources[number].document}",
        key=f"origin-passage-{identity}",
        help="The prompt with it is compared with the prompt without it.",
    )
    token = right.selectbox(
        "Token of the answer",
        range(len(ids)),
        int(best_token),
        format_func=lambda place: (
            f"{place} {token_name(decoder, ids[place])}  ({drops[passage, place]:+.2f} nats)"
        ),
        key=f"origin-token-{identity}",
        help="In brackets, how far the log-probability of the token falls without the passage. The one that "
        "depends most on a passage is chosen at first.",
    )
    begun = ids[:token]
    without = ids_without(prompt, [passage + 1], decoder)
    pair = align_prompts([*prompt.ids, *begun], [*without, *begun], [ids[token]])
    return NamedPair(pair, f"with passage {passage + 1}", "without it")


def own_pair() -> NamedPair:
    """Draw two prompts of the user's own, at first the example, and the boxes to change them; return them."""
    shown = st.container()
    with st.expander("Write two prompts of your own", icon=":material/edit:"):
        first, second, ending, said = pair_boxes()
    decoder = load_decoder()
    texts = f"{first} {ending}".strip(), f"{second} {ending}".strip()
    with shown:
        marked = word_differences(*texts[::-1])[1], word_differences(*texts)[1]
        show_side_by_side(("First prompt", "Second prompt"), marked)
    clean, corrupted = (decoder.prompt_ids(text) for text in texts)
    answer = decoder.tokenizer.encode(f" {said}").ids if said else []
    if not answer and clean:
        answer = [next(decoder.generate(clean, max_new_tokens=1)).token_id]
    pair = align_prompts(clean, corrupted, answer)
    return NamedPair(pair, "after the first prompt", "after the second one")


def pair_boxes() -> tuple[str, str, str, str]:
    """Draw the boxes of two passages, of what follows both, and of the answer; return their texts."""
    for key, text in EXAMPLE.items():
        st.session_state.setdefault(key, text)
    columns = st.columns(2)
    first = columns[0].text_area(
        "First passage",
        key="pair-first",
        persist_state="session",
        height=96,
        help="A fact; best one that the model does not know, or that contradicts it.",
    )
    second = columns[1].text_area(
        "Second passage",
        key="pair-second",
        persist_state="session",
        height=96,
        help="Another fact, best of as many tokens: then its own place can be compared, too. Empty for no "
        "passage.",
    )
    left, right = st.columns(2)
    ending = left.text_input(
        "Both go on with",
        key="pair-ending",
        persist_state="session",
        help="A question, or a beginning for the model to complete.",
    )
    said = right.text_input(
        "Answer",
        key="pair-answer",
        persist_state="session",
        max_chars=200,
        placeholder="what the model says after the first prompt",
        help="Its log-probability is compared; a blank is put before it. Empty for the most probable next "
        "token after the first prompt.",
    )
    st.button(
        "A passage that contradicts the model",
        key="pair-example",
        icon=":material/replay:",
        type="tertiary",
        on_click=st.session_state.update,
        args=(EXAMPLE,),
        help="Fills the boxes with the example: by itself the model says Paris.",
    )
    for text in (first, second, ending):
        check_typed(text, MAX_CHARACTERS)
    return first.strip(), second.strip(), ending.strip(), said.strip()
