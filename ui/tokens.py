"""Tokens as text: with visible white space, as labels of figures, and as HTML coloured by weights."""

from collections.abc import Callable, Sequence
from html import escape

from engine.layers.tracing import Array
from engine.tokenizers.text_tokenizer import TextTokenizer
from ui.colours import BLUE, VERMILION, paint
from ui.text import escape_plotly, joined

AS_ENCODER_COUNTS = "as the embedding model counts them, special tokens included"
AS_DECODER_COUNTS = "as the decoder counts them"
LABELLED_TOKENS = 48  # more labels than this overlap


def special_names(tokenizer: TextTokenizer) -> list[str]:
    """Return the special tokens around a text: ``["[CLS]", "[SEP]"]``, or others, or none."""
    before, _, after = tokenizer.around(tokenizer.encode("").tokens)
    return [*before, *after]


def special_words(tokenizer: TextTokenizer) -> str:
    """Name the special tokens around a text in a sentence, unescaped: ``[CLS] and [SEP]``."""
    names = special_names(tokenizer)
    return joined(names, "and") if names else "special tokens"


def text_by_weight(tokens: Sequence[str], weights: Array, chosen: int) -> str:
    """Return the tokens as HTML, each darker the larger its weight, with a frame around the chosen one."""
    largest = float(weights.max()) or 1.0
    spans = []
    for number, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
        background = paint(BLUE, float(weight) / largest)
        frame = f"outline:2px solid {VERMILION};" if number == chosen else ""
        spans.append(
            f'<span title="{number} {escape(token)}: {float(weight):.4f}" '
            f'style="background:{background};{frame}padding:1px 2px;border-radius:3px">'
            f"{escape(visible_blanks(token))}</span>"
        )
    return " ".join(spans)


def token_labels(tokens: Sequence[str]) -> list[str]:
    """Return a unique label for each token, escaped for Plotly."""
    return [f"{number} {escape_plotly(token)}" for number, token in enumerate(tokens)]


def token_axis(update: Callable[..., object], n_tokens: int, **settings: object) -> None:
    """Set up an axis of tokens: with all labels where they fit, else with some."""
    few = {"nticks": LABELLED_TOKENS // 2} if n_tokens > LABELLED_TOKENS else {"dtick": 1}
    update(type="category", tickfont_size=11, **few, **settings)


def visible_blanks(token: str) -> str:
    """Return a token with its white space made visible."""
    return token.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥") or "∅"
