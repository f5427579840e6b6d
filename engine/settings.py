"""The settings of cutting, embedding, search and answer: one table.

The app, the command line, experiments, links, saved files, exported scripts and the documentation are derived
from it. A setting has the same key everywhere: of its widget, its option (``--chunk-tokens``), its field in a
`Configuration`, in a link and in a saved file. Choices are references to the tables of the engine: what is
added there can be chosen at once.

The table stands above the packages whose tables it names; those do not import it.
"""

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from .documents.chunk_context import CONTEXTS
from .documents.splitters import DEFAULT_SPLITTING, MIN_CHUNK_TOKENS, SPLITTERS, Splitting
from .errors import InputError, check_choice
from .generation.sampling import RULES, Rule, Sampling
from .generation.settings import DEFAULT_ANSWER, DEFAULT_SEARCH, READINGS, AnswerSettings, SearchSettings
from .generation.thinking import MAX_THOUGHT_TOKENS
from .installed import rows_of
from .layers.pooling import POOLINGS
from .models.embedding_head import MODEL_DEFAULT
from .models.precision import PRECISIONS
from .models.prompts import PROMPT_USES
from .retrieval.index_choice import EXACT_CHUNKS, TRUSTED, share
from .retrieval.index_kinds import AUTO, INDEX_KINDS
from .retrieval.retrievers import RETRIEVERS
from .weights.catalog import DEFAULT_ENCODER
from .wording import did_you_mean

Stage = Literal["cut", "embedding", "search", "answer"]
OWN_LABEL = "the model's own"


@dataclass(frozen=True)
class Choice:
    """A value of a setting that is in no table of the engine; its label and description for people."""

    label: str
    help: str = ""


@dataclass(frozen=True)
class Setting:
    """The names of a setting, its values, and where it applies."""

    stage: Stage  # what it applies to
    # its value at first; for settings that a model has a value of its own for, that of the default model
    default: Any
    # its values by name, each with a label and a help text; none for numbers and switches
    choices: Mapping[str, Any] = field(default_factory=dict)
    own: str = ""  # the name of the model's own value, if there is one
    low: float = 0  # the least of its numbers
    high: float | None = None  # the greatest; None for numbers that no slider sets
    step: float = 1
    tried: Sequence[int] = ()  # the numbers that a sweep offers
    none: str = "none"  # what None is called
    # whether the app has a widget for it, so that links and saved files hold its value
    has_widget: bool = True
    # its texts, those of data/settings.csv
    label: str = ""  # its name
    unit: str = ""  # what its numbers count
    plural: str = ""  # what several values are called; empty for settings that no sweep varies
    help: str = ""  # what it does, in one line
    details: str = ""  # what the app says after it

    @property
    def title(self) -> str:
        """Its name with the unit: ``Chunk size (tokens)``."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def name(self) -> str:
        """Its name within a sentence: ``chunk size``."""
        return self.label[0].lower() + self.label[1:]

    def words(self, value: Any) -> str:
        """Return a value in words: ``1,024``, ``0.5``, ``on``, ``BM25 (words)``."""
        if value is None:
            return self.none
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str):
            own = OWN_LABEL if value == self.own else value
            return str(self.choices[value].label) if value in self.choices else own
        return f"{value:,g}"

    def allows(self, value: object) -> bool:
        """Whether a value from outside, such as a link, is one of this setting."""
        if self.choices:
            return isinstance(value, str) and (value in self.choices or value == self.own != "")
        if isinstance(self.default, bool):
            return isinstance(value, bool)
        if self.high is None or type(value) is not type(self.high):
            return False
        return self.low <= value <= self.high


def rule_setting(rule: Rule) -> Setting:
    """Return the setting of a rule of sampling, whose default is the value that turns it off."""
    words: dict[str, Any] = {"label": rule.label, "help": rule.help}
    return Setting("answer", rule.off, low=rule.low, high=rule.high, step=rule.step, **words)


# In the order of the app's sidebar. To add a setting, add an entry, its line in data/settings.csv, and the
# field that it sets.
ENTRIES = {
    "splitter": Setting("cut", DEFAULT_SPLITTING.method, choices=SPLITTERS),
    "chunk_tokens": Setting(
        "cut",
        DEFAULT_SPLITTING.chunk_tokens,
        low=2 * MIN_CHUNK_TOKENS,
        high=512,
        step=8,
        tried=(32, 48, 64, 96, 128, 192, 256, 384, 512),
    ),
    "overlap": Setting("cut", DEFAULT_SPLITTING.overlap, high=256, tried=(0, 8, 16, 32, 64, 128)),
    "context": Setting("cut", DEFAULT_SPLITTING.context, choices=CONTEXTS),
    "parent_tokens": Setting("cut", 0, high=1024, step=32),
    "max_tokens": Setting(
        "embedding", None, low=2 * MIN_CHUNK_TOKENS, high=512, step=8, tried=(128, 256, 512), none=OWN_LABEL
    ),
    "pooling": Setting("embedding", "mean", choices=POOLINGS, own=MODEL_DEFAULT),
    "prompts": Setting("embedding", "own", choices=PROMPT_USES),
    "precision": Setting("embedding", "float32", choices=PRECISIONS),
    "model": Setting("embedding", DEFAULT_ENCODER, has_widget=False),
    "retriever": Setting("search", DEFAULT_SEARCH.retriever, choices=RETRIEVERS),
    "index_kind": Setting(
        "search",
        AUTO,
        choices=ChainMap(INDEX_KINDS, {AUTO: Choice("by size", f"Exact for up to {EXACT_CHUNKS:,} chunks.")}),
    ),
    "k": Setting("search", DEFAULT_SEARCH.k, low=1, high=10, tried=(*range(1, 11), 20)),
    "min_relevance": Setting("search", round(DEFAULT_SEARCH.min_relevance), high=100),
    "write": Setting("answer", DEFAULT_ANSWER.write),
    "max_prompt_tokens": Setting("answer", DEFAULT_ANSWER.max_prompt_tokens, low=128, high=4096, step=64),
    "max_new_tokens": Setting("answer", DEFAULT_ANSWER.max_new_tokens, low=16, high=512, step=16),
    "think": Setting("answer", DEFAULT_ANSWER.think),
    "follow_ups": Setting("answer", True),
    "reads": Setting(
        "answer", DEFAULT_ANSWER.reads, choices={name: Choice(label) for name, label in READINGS.items()}
    ),
    "answer_threshold": Setting("answer", round(100 * DEFAULT_ANSWER.answer_threshold), high=100),
    "refuse_threshold": Setting("answer", round(100 * DEFAULT_ANSWER.refuse_threshold), high=100),
    **{key: rule_setting(rule) for key, rule in RULES.items()},
    "seed": Setting("answer", None),
}
NUMBERS = {  # in the texts
    "trusted": share(TRUSTED),
    "min_relevance": f"{DEFAULT_SEARCH.min_relevance:.0f}",
    "thought": f"{MAX_THOUGHT_TOKENS:,}",
}
TEXTS: dict[str, dict[str, Any]] = {row.pop("setting"): row for row in rows_of("settings.csv")}
SETTINGS = {
    key: replace(entry, **{name: text.format_map(NUMBERS) for name, text in TEXTS.get(key, {}).items()})
    for key, entry in ENTRIES.items()
}


def default(key: str) -> Any:
    """Return the default of a setting."""
    return SETTINGS[key].default


def changes_in_words(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of ``new`` that differ in words: ``chunk size 64 → 192``."""
    changed = {key: SETTINGS[key] for key, value in new.items() if old[key] != value}
    return {key: f"{one.name} {one.words(old[key])} → {one.words(new[key])}" for key, one in changed.items()}


KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}


def check_value(key: str, value: object) -> None:
    """Raise `InputError` for a value of another kind than a setting's, or that is none of its choices."""
    setting = SETTINGS[key]
    if setting.choices:
        check_choice(key, value, [*setting.choices, *filter(None, [setting.own])])
    kind = int if setting.default is None else type(setting.default)
    allowed = {int: (int, type(None)) if setting.default is None else (int,), float: (int, float)}
    if type(value) not in allowed.get(kind, (kind,)):
        unit = f" ({setting.unit})" if setting.unit else ""
        raise InputError(f"{key} is {value!r}: give {KINDS[kind]}{unit}")
    if key == "k" and isinstance(value, int) and value < 1:
        raise InputError(f"k is {value}: ask for 1 passage or more")


def named_settings(values: Mapping[str, Any], stages: Collection[Stage]) -> dict[str, Any]:
    """Return settings by their keys, from names that are keys or labels: ``chunk_tokens``, ``chunk_size``.

    Raises `InputError` where no setting of these stages has that name, or the value is none of the setting's.
    """
    keys = {
        name: key
        for key, setting in SETTINGS.items()
        if setting.stage in stages
        for name in (setting.name.lower().replace(" ", "_"), key)
    }
    found = {}
    for name, value in values.items():
        if name not in keys:
            known = ", ".join(dict.fromkeys(keys.values()))
            raise InputError(
                f"there is no setting {name!r} here: choose of {known}{did_you_mean(name, keys)}"
            )
        check_value(keys[name], value)
        found[keys[name]] = value
    return found


def answer_settings(
    values: Mapping[str, Any], sampling: Sampling = DEFAULT_ANSWER.sampling
) -> AnswerSettings:
    """Return the settings of a search and an answer from values by key; none may be missing."""
    return AnswerSettings(
        SearchSettings(values["k"], values["min_relevance"], values["retriever"]),
        values["max_prompt_tokens"],
        values["max_new_tokens"],
        sampling,
        values["reads"],
        values["answer_threshold"] / 100,  # the table has percent
        values["refuse_threshold"] / 100,
        values["write"],
        think=values["think"],
    )


@dataclass(frozen=True)
class Configuration:
    """One combination of the settings that a sweep varies, as in `SETTINGS`.

    ``max_tokens`` is None for the model's own limit, and ``pooling`` may be ``"own"``, the model's own head.
    """

    splitter: str = default("splitter")
    chunk_tokens: int = default("chunk_tokens")
    overlap: int = default("overlap")
    model: str = default("model")
    max_tokens: int | None = default("max_tokens")
    pooling: str = default("pooling")
    retriever: str = default("retriever")
    k: int = 5  # at which metrics are usual
    prompts: str = default("prompts")
    precision: str = default("precision")
    context: str = default("context")

    @property
    def splitting(self) -> Splitting:
        """How documents are cut."""
        return Splitting(self.splitter, self.chunk_tokens, self.overlap, self.context)


SWEPT = tuple(one.name for one in fields(Configuration))
