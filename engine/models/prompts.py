"""Prompts: instructions that a model was trained with before each text, such as ``query: ``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import InputError, check_choice

Role = Literal["query", "document"]  # of a text in a search


@dataclass(frozen=True)
class PromptUse:
    """Whether a search puts a model's prompts before its texts; name and description for people."""

    label: str
    help: str


PROMPT_USES = {
    "own": PromptUse("the model's own", "As the model was trained, such as “query: ” before questions."),
    "none": PromptUse("none", "Only the texts, to see what the model's prompts are worth."),
}
QUERY_NAMES = ("query",)
DOCUMENT_NAMES = ("document", "passage", "corpus")
ALWAYS = ("query", "document")  # prompts that sentence-transformers has for every model, empty if need be


@dataclass(frozen=True)
class Prompts:
    """A model's prompts by name, and the name of its default prompt (or None)."""

    named: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None

    def text(self, name: str | None) -> str:
        """Return a prompt; "" has none, None is the model's default."""
        name = self.default if name is None else name
        if not name:
            return ""
        if name not in self.named and name not in ALWAYS:
            known = ", ".join(map(repr, self.named)) or "no prompts at all"
            raise InputError(f"there is no prompt {name!r}: the model has {known}; give '' for none")
        return self.named.get(name, "")

    @property
    def query(self) -> str:
        """Name of the prompt before questions, "" if there is none."""
        return self._first(QUERY_NAMES)

    @property
    def document(self) -> str:
        """Name of the prompt before documents, "" if there is none."""
        return self._first(DOCUMENT_NAMES)

    def used(self, use: str) -> "Prompts":
        """Return these prompts or none, by a key of `PROMPT_USES`; another raises `InputError`."""
        check_choice("prompts", use, PROMPT_USES)
        return self if use == "own" else Prompts()

    def of(self, role: Role) -> str:
        """Return the prompt before questions or before documents, "" if there is none."""
        return self.text(self.query if role == "query" else self.document)

    def before(self, role: Role, texts: Sequence[str]) -> list[str]:
        """Put the prompt before the questions or documents of a search."""
        prompt = self.of(role)
        return [prompt + text for text in texts]

    @property
    def in_search(self) -> dict[Role, str]:
        """The prompts that a search uses, by the role of the texts; empty where it uses none."""
        roles: tuple[Role, Role] = ("query", "document")
        return {role: self.of(role) for role in roles if self.of(role)}

    def _first(self, names: tuple[str, ...]) -> str:
        return next((name for name in names if self.named.get(name)), "")
