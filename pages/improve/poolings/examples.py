"""Example sentences for comparing poolings, and the box for the user's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine import Encoder
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
    "Other words": ExampleSet(
        ("The cat sat on the mat.", "A feline rested on the rug.", "Python is a programming language."),
        "1 and 2 say the same with hardly a word in common; 3 is about something else.",
    ),
    "Negation": ExampleSet(
        (
            "The drug is safe for children.",
            "Children can take this medicine without harm.",
            "The drug is not safe for children.",
        ),
        "1 and 2 say the same; 3 is 1 with a “not” in it and says the opposite.",
    ),
    "Word order": ExampleSet(
        ("The dog bites the man.", "A man was bitten by a dog.", "The man bites the dog."),
        "1 and 2 describe the same event; 3 has the words of 1 in another order and describes another.",
    ),
    "Long and short": ExampleSet(
        (
            "Solar panels turn sunlight into electricity.",
            "In 1954 engineers at Bell Labs showed a cell of silicon that made electric current from "
            "daylight. Since then prices have fallen by more than 99 percent, roofs and deserts have filled "
            "with panels, and in sunny hours they now supply more power than some countries can use, which "
            "is why batteries sell so well.",
            "Sheep turn grass into wool.",
        ),
        "1 and 2 share their subject, but 2 is far longer; 3 is as short as 1 and built like it.",
    ),
    "Stop words": ExampleSet(
        (
            "What is the cause of the fire in the factory?",
            "factory fire cause",
            "What is the point of the rules in the game?",
        ),
        "1 and 2 ask for the same, 2 without function words; 3 shares only function words with 1.",
    ),
    "Rare terms": ExampleSet(
        (
            "CarbFix stores carbon dioxide in basalt.",
            "Basaltic rock is where CarbFix puts the gas.",
            "The library stores old books in boxes.",
        ),
        "1 and 2 share rare words, CarbFix and basalt; 3 shares with 1 only the common “stores”.",
    ),
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
