"""Special tokens around texts: ``[CLS] first [SEP] second [SEP]``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from .encoding import Encoding


@dataclass(frozen=True)
class TemplatePart:
    """A special token that every encoding gets, or the place of a text, and its segment id."""

    segment: int
    text: int | None = None  # 0 for the first text, 1 for the second, None for a special token
    tokens: Sequence[str] = ()
    ids: Sequence[int] = ()


def assemble(template: Sequence[TemplatePart], texts: Sequence[Encoding]) -> Encoding:
    """Put the special tokens of a template around its texts."""
    parts = [
        texts[part.text]
        if part.text is not None
        else Encoding(list(part.ids), list(part.tokens), [(0, 0)] * len(part.ids))
        for part in template
    ]
    return Encoding(
        ids=[number for part in parts for number in part.ids],
        tokens=[token for part in parts for token in part.tokens],
        offsets=[span for part in parts for span in part.offsets],
        type_ids=[part.segment for part, tokens in zip(template, parts, strict=True) for _ in tokens.ids],
    )


def cut_longest_first(texts: Sequence[Encoding], limit: int) -> list[Encoding]:
    """Cut the ends of two texts so that they have at most ``limit`` tokens together, the longer text first.

    They are cut as by ``longest_first`` of the `tokenizers` library: the shorter text stays whole
    if it has at most half of the limit, else each gets half, and the longer one the odd token.
    """
    shorter, longer = sorted(range(2), key=lambda number: len(texts[number]))
    kept = {shorter: len(texts[shorter]), longer: len(texts[longer])}
    if sum(kept.values()) > limit:
        kept[shorter] = min(kept[shorter], limit // 2)
        kept[longer] = limit - kept[shorter]
    return [
        Encoding(each.ids[:n], each.tokens[:n], each.offsets[:n], each.type_ids[:n])
        for each, n in ((texts[number], kept[number]) for number in range(2))
    ]


def read_templates(content: Mapping[str, Any], path: Path) -> tuple[list[TemplatePart], list[TemplatePart]]:
    """Read the templates of one text and of two."""
    processor = content.get("post_processor")
    parts = parts_of_processor(processor)
    others = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "ByteLevel")]
    match others[0] if len(others) == 1 else processor if others else parts[0]:
        case {"type": "TemplateProcessing", "single": parts, "pair": pair_parts, "special_tokens": special}:
            single = [template_part(part, special) for part in parts]
            pair = [template_part(part, special) for part in pair_parts]
        case {"type": "BertProcessing", "cls": cls, "sep": sep}:
            single = [special_part([cls], 0), TemplatePart(0, text=0), special_part([sep], 0)]
            pair = [*single, TemplatePart(1, text=1), special_part([sep], 1)]
        case {"type": "RobertaProcessing", "cls": cls, "sep": sep}:  # all of segment 0, two tokens between
            single = [special_part([cls], 0), TemplatePart(0, text=0), special_part([sep], 0)]
            pair = [*single, special_part([sep], 0), TemplatePart(0, text=1), special_part([sep], 0)]
        case {"type": "ByteLevel"} | None:  # no special tokens
            single, pair = [TemplatePart(0, text=0)], [TemplatePart(0, text=0), TemplatePart(1, text=1)]
        case other:
            found = other.get("type") if isinstance(other, dict) else type(other).__name__
            raise ModelFileError(
                f"{path} is not a readable tokenizer: its post_processor is {found} or incomplete, only "
                f"TemplateProcessing, BertProcessing and RobertaProcessing are read: use a model with one"
            )
    if texts_of(single) != {0} or texts_of(pair) != {0, 1}:
        raise ValueError("post_processor does not place one text, and two")
    return single, pair


def parts_of_processor(processor: Any) -> Sequence[Mapping[str, Any]]:
    """Return the members of a post-processor: itself, or those of a Sequence."""
    if isinstance(processor, dict) and processor.get("type") == "Sequence":
        return [part for each in processor["processors"] for part in parts_of_processor(each)]
    return [processor]


def trims_offsets(processor: Any) -> bool | None:
    """Whether offsets are trimmed in view of a blank put before a text; None if they are not trimmed."""
    for part in parts_of_processor(processor):
        match part:
            case {"type": "ByteLevel" | "RobertaProcessing", "trim_offsets": True}:
                return part.get("add_prefix_space", True) is True
    return None


def read_start_ids(content: Mapping[str, Any], path: Path) -> list[int]:
    """Read the ids of the special tokens before a text; those after it are only for training."""
    before = takewhile(lambda part: part.text is None, read_templates(content, path)[0])
    return [number for part in before for number in part.ids]


def template_part(part: Mapping[str, Any], special: Mapping[str, Any]) -> TemplatePart:
    """Read one part of a TemplateProcessing."""
    match part:
        case {"Sequence": {"id": "A" | "B" as text, "type_id": int(segment)}}:
            return TemplatePart(segment, text="AB".index(text))
        case {"SpecialToken": {"id": str(name), "type_id": int(segment)}}:
            return special_part(zip(special[name]["tokens"], special[name]["ids"], strict=True), segment)
    raise ValueError(f"{part!r} is neither a text nor a special token")


def special_part(pairs: Iterable[Sequence[Any]], segment: int) -> TemplatePart:
    """Return the part of a template that stands for pairs of a token and its id."""
    tokens, ids = zip(*((checked(token, str), checked(number, int)) for token, number in pairs), strict=True)
    return TemplatePart(segment, tokens=tokens, ids=ids)


def texts_of(template: Sequence[TemplatePart]) -> set[int]:
    """Return the numbers of the texts in a template."""
    return {part.text for part in template if part.text is not None}


def checked(value: Any, kind: Any) -> Any:
    """Return a value, or raise `TypeError` unless it has a type; numbers must be 0 or more."""
    if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
        raise TypeError(f"{value!r} stands where {getattr(kind, '__name__', kind)} is expected")
    return value
