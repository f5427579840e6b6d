"""The base of all encoders' tokenizers: special tokens around texts, and many texts at once.

`encode`, `encode_pair` and `stages` use the Python code of the engine; `encode_batch` and `ids_batch` give
the same results for many texts through the compiled `tokenizers` library.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..weights.tensors import read_json, unreadable_tokenizer
from .added_tokens import SPLIT, AddedToken, read_added_tokens
from .configured import changed
from .encoding import Encoding, check_text
from .normalized import apply, unchanged
from .normalizers import patterns_are_known, read_normalizer
from .templates import TemplatePart, assemble, checked, cut_longest_first, read_templates, trims_offsets

if TYPE_CHECKING:
    import tokenizers


T = TypeVar("T")

NO_CHANGES: Mapping[str, Any] = {}
PADDING = re.compile(r"[\[<|]*(PAD|pad|padding)[\]>|]*")
# The byte of a blank in byte-level BPE, and white space.
BLANKS = "Ġ" + "".join(character for character in map(chr, range(0x3001)) if character.isspace())


@dataclass(frozen=True)
class SharedSettings:
    """The settings of tokenizer.json besides those of splitting a word."""

    tokens: Mapping[str, int]  # id of each token, without the added ones
    added: Sequence[AddedToken]
    single: Sequence[TemplatePart]  # template of one text
    pair: Sequence[TemplatePart]  # template of two
    padding: str  # the padding token
    # changes the offsets of a text's tokens, see `trimmed_offsets`; None leaves them
    trim: Callable[[Encoding], Encoding] | None = None
    # whether the library may run it: the patterns of its normalizer take time linear in the text, and no
    # added token becomes nothing by it, at which the library fails
    in_library: bool = True


def read_content(path: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tokenizer.json with other sections in place of its own, of ``model`` only some keys."""
    return changed(read_json(path), changes)


def read_shared(content: Mapping[str, Any], tokens: Mapping[str, int], path: Path) -> SharedSettings:
    """Read the settings besides those of splitting a word, given the id of each token."""
    single, pair = read_templates(content, path)
    added = read_added_tokens(content, tokens)
    known = {*tokens.values(), *(token.id for token in added)}
    for part in (*single, *pair):
        if unknown := set(part.ids) - known:
            raise ValueError(f"post_processor adds the token {min(unknown)}, which the vocabulary lacks")
    prefixed = trims_offsets(content.get("post_processor"))
    return SharedSettings(
        tokens=tokens,
        added=added,
        single=single,
        pair=pair,
        padding=checked((content.get("padding") or {}).get("pad_token", default_padding(content)), str),
        trim=None if prefixed is None else partial(trimmed_offsets, prefixed=prefixed),
        in_library=patterns_are_known(content) and not any_vanishes(added, content, path),
    )


def any_vanishes(added: Sequence[AddedToken], content: Mapping[str, Any], path: Path) -> bool:
    """Whether an added token that is matched in the normalised text is itself normalised to nothing."""
    normalized = [token.content for token in added if token.normalized and token.content]
    changes = read_normalizer(content, path) if normalized else []
    return not all(apply(changes, unchanged(text)).text for text in normalized)


def default_padding(content: Mapping[str, Any]) -> str:
    """Return the first added token that is called padding, else BERT's."""
    added = [token["content"] for token in content.get("added_tokens", [])]
    return next((token for token in added if PADDING.fullmatch(token)), "[PAD]")


class TextTokenizer(ABC):
    """The tokenizer.json of an encoder; never truncates and never pads."""

    continuation = (
        ""  # prefix of tokens within a word, "" if the vocabulary marks beginnings of words instead
    )

    def __init__(self, path: Path, settings: SharedSettings, changes: Mapping[str, Any]) -> None:
        self.path, self._changes, self._trim = path, changes, settings.trim
        self.in_library = settings.in_library
        self._single, self._pair = settings.single, settings.pair
        self._ids = {**settings.tokens, **{token.content: token.id for token in settings.added}}
        self._texts = {number: token for token, number in self._ids.items()}
        self.special_ids = frozenset(token.id for token in settings.added if token.special)
        self.n_special = sum(len(part.ids) for part in self._single)  # around one text
        text = next(place for place, part in enumerate(self._single) if part.text is not None)
        self.n_after = sum(len(part.ids) for part in self._single[text:])  # of these, behind the text
        self.pad_id = self._ids.get(settings.padding, 0)

    @abstractmethod
    def stages(self, text: str) -> Sequence[Any]:
        """Return the stages of each word of a text, without special tokens."""

    @abstractmethod
    def _encode_plain(self, text: str) -> Encoding:
        """Return the tokens of a text without special tokens."""

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(self._texts) + 1

    def token(self, number: int) -> str:
        """Return the token that has an id."""
        return self._texts[number]

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, None for a text that is none."""
        return self._ids.get(token)

    def readable(self, number: int) -> str:
        """Return a token as people read it, or the number of an id without one, which fills up a table."""
        return self._texts.get(number, f"(unused {number})")

    def readable_tokens(self, encoding: Encoding) -> list[str]:
        """Return the tokens of an encoding as people read them."""
        return encoding.tokens

    def around(self, tokens: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Divide a text's ids (or tokens, or offsets): special ones before, its own, special ones behind."""
        before, end = self.n_special - self.n_after, len(tokens) - self.n_after
        return list(tokens[:before]), list(tokens[before:end]), list(tokens[end:])

    def encode(self, text: str) -> Encoding:
        """Return all tokens of a text, special ones included."""
        check_text(text, "the text")
        return assemble(self._single, [self._trimmed(text)])

    def encode_pair(self, first: str, second: str, max_tokens: int | None = None) -> Encoding:
        """Return the tokens of two texts, such as ``[CLS] first [SEP] second [SEP]``.

        ``type_ids`` tells the texts apart where the model does; offsets are spans of a token's own text. With
        ``max_tokens`` the longer text is cut first.
        """
        check_text(first, "the first text")
        check_text(second, "the second text")
        texts = [self._trimmed(first), self._trimmed(second)]
        if max_tokens is not None:
            texts = cut_longest_first(texts, max_tokens - sum(len(part.ids) for part in self._pair))
        return assemble(self._pair, texts)

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Tokenize many texts at once."""
        if not self.in_library:
            return [self.encode(text) for text in checked_texts(texts)]
        encodings = self._library.encode_batch(checked_texts(texts))
        return [Encoding(e.ids, e.tokens, e.offsets, e.type_ids) for e in encodings]

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids of many texts, which is faster; errors are those of `encode_batch`."""
        if not self.in_library:
            return [self.encode(text).ids for text in checked_texts(texts)]
        return [e.ids for e in self._library.encode_batch_fast(checked_texts(texts))]

    def _trimmed(self, text: str) -> Encoding:
        plain = self._encode_plain(text)
        return plain if self._trim is None else self._trim(plain)

    @cached_property
    def _library(self) -> "tokenizers.Tokenizer":
        """The same tokenizer in the `tokenizers` library."""
        import tokenizers

        try:
            if self._changes:
                content = read_content(self.path, self._changes)
                is_split = content.pop(SPLIT, False)
                library = tokenizers.Tokenizer.from_str(json.dumps(content))
                library.encode_special_tokens = is_split
            else:
                library = tokenizers.Tokenizer.from_file(str(self.path))
        except BaseException as error:  # the library raises bare Exception, and PanicException
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise unreadable_tokenizer(self.path, error) from error
        library.no_truncation()
        library.no_padding()
        return library


def trimmed_offsets(encoding: Encoding, prefixed: bool) -> Encoding:
    """Leave the blanks at both ends of each token out of its offsets, as RoBERTa's tokenizer does.

    With ``prefixed``, one blank at the start of the first token is the tokenizer's own, and no part of the
    text.
    """
    offsets = []
    for number, (token, (start, end)) in enumerate(zip(encoding.tokens, encoding.offsets, strict=True)):
        before, after = n_blanks(token), n_blanks(token[::-1])
        if before == 1 and prefixed and (number == 0 or start == 0):
            before = 0
        start = min(start + before, end)
        offsets.append((start, max(end - after, start) if end >= after else end))
    return replace(encoding, offsets=offsets)


def n_blanks(token: str) -> int:
    """Return the number of blanks at the start of a token, written as ``Ġ`` or as white space."""
    return len(token) - len(token.lstrip(BLANKS))


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list, or raise `InputError` for one that is not a text."""
    texts = list(texts)
    for number, text in enumerate(texts):
        check_text(text, f"text {number}")
    return texts
