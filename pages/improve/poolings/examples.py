"""Example sentences for comparing poolings, and the box for the user's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine import Encoder
from engine.installed import rows_of
from ui.text import escape_markdown
from ui.widgets import check_typed, kept

OWN = "Your own"
MOST_SENTENCES = 12
MAX_CHARACTERS = 20_000
READ_END = 30  # characters shown before the place where reading stops


@dataclass(frozen=True)
class ExampleSet:
    """Three sentences: the second has the meaning of the first, the third does not."""

    sentences: tuple[str, str, str]
    meaning: str


EXAMPLES = {
    row["name"]: ExampleSet((row["first"], row["alike"], row["unlike"]), row["meaning"])
    for row in rows_of("example_sentences.csv")
}


def sentence_input(key: str) -> tuple[list[str], ExampleSet | None]:
    """Draw the choice of sentences; return them, perhaps too few, and the set of an example's."""
    choice = st.pills(
        "Sentences",
        [*EXAMPLES, OWN],
        default=next(iter(EXAMPLES)),
        required=True,
        **kept(f"{key}-set"),
        help="Each example is three sentences that test one weakness of vectors.",
    )
    if choice in EXAMPLES:
        example = EXAMPLES[choice]
        return list(example.sentences), example
    text = st.text_area(
        "Your sentences, one a line",
        "How do I reset my password?\nI forgot my login.\nWhat does shipping cost?",
        **kept(f"{key}-own"),
        height=140,
        help=f"Up to {MOST_SENTENCES}; blank lines are ignored. Leave the box, or press Ctrl + Enter, to "
        "compare them.",
    )
    sentences = [line.strip() for line in check_typed(text, MAX_CHARACTERS).splitlines() if line.strip()]
    if len(sentences) > MOST_SENTENCES:
        st.info(f"The first {MOST_SENTENCES} of {len(sentences):,} sentences are compared.")
    return sentences[:MOST_SENTENCES], None


def show_cut_notes(texts: Sequence[str], encoder: Encoder, max_tokens: int, name: str = "Sentence") -> None:
    """Warn of each text beyond the token limit, and say how much of it is read."""
    for number, whole in enumerate(encoder.tokenizer.encode_batch(list(texts)), start=1):
        if len(whole) > max_tokens:
            end, text = whole.offsets[max_tokens - 2][1], texts[number - 1]
            which = f"{name} {number}" if len(texts) > 1 else "The text"
            note = (
                f"{which} has {len(whole):,} tokens and {max_tokens} are read: up to character {end:,} of "
                f"{len(text):,}, “…{text[max(0, end - READ_END) : end]}”."
            )
            st.warning(escape_markdown(note), icon=":material/content_cut:")
