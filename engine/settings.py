"""The settings of cutting, embedding, search and answer: one table.

The app, the command line, experiments, links, saved files, exported scripts and the documentation are derived
from it. A setting has the same key everywhere: of its widget, its option (``--chunk-tokens``), its field in a
`Configuration`, in a link and in a saved file. Choices are references to the tables of the engine: what is
added there can be chosen at once.

The table stands above the packages whose tables it names; those do not import it.
"""

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .documents.chunk_context import CONTEXTS
from .documents.splitters import DEFAULT_SPLITTING, MIN_CHUNK_TOKENS, SPLITTERS, Splitting
from .errors import InputError, check_choice
from .generation.sampling import RULES, Rule, Sampling
from .generation.settings import DEFAULT_ANSWER, DEFAULT_SEARCH, READINGS, AnswerSettings, SearchSettings
from .generation.thinking import MAX_THOUGHT_TOKENS
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

    label: str  # its name
    stage: Stage  # what it applies to
    # its value at first; for settings that a model has a value of its own for, that of the default model
    default: Any
    help: str  # what it does, in one line
    details: str = ""  # what the app says after it
    unit: str = ""  # what its numbers count
    # its values by name, each with a label and a help text; none for numbers and switches
    choices: Mapping[str, Any] = field(default_factory=dict)
    own: str = ""  # the name of the model's own value, if there is one
    low: float = 0  # the least of its numbers
    high: float | None = None  # the greatest; None for numbers that no slider sets
    step: float = 1
    plural: str = ""  # what several values are called; empty for settings that no sweep varies
    tried: Sequence[int] = ()  # the numbers that a sweep offers
    none: str = "none"  # what None is called
    # whether the app has a widget for it, so that links and saved files hold its value
    has_widget: bool = True

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
    return Setting(rule.label, "answer", rule.off, rule.help, low=rule.low, high=rule.high, step=rule.step)


# In the order of the app's sidebar. To add a setting, add an entry, and the field that it sets.
SETTINGS: dict[str, Setting] = {
    "splitter": Setting(
        "Splitter",
        "cut",
        DEFAULT_SPLITTING.method,
        "How documents are cut into chunks.",
        choices=SPLITTERS,
        plural="splitters",
    ),
    "chunk_tokens": Setting(
        "Chunk size",
        "cut",
        DEFAULT_SPLITTING.chunk_tokens,
        "Most tokens of a chunk as the embedding model counts them, special tokens included.",
        "Each chunk becomes one vector. Small chunks are precise, large ones keep more context but blur it. "
        "The default encoder was trained on 128 tokens and reads 256.",
        unit="tokens",
        low=2 * MIN_CHUNK_TOKENS,
        high=512,
        step=8,
        plural="chunk sizes",
        tried=(32, 48, 64, 96, 128, 192, 256, 384, 512),
    ),
    "overlap": Setting(
        "Overlap",
        "cut",
        DEFAULT_SPLITTING.overlap,
        "Most tokens that a chunk repeats of the one before, as the embedding model counts them, special "
        "tokens included.",
        "A sentence on the border is whole in one of the two. Sizes without room for it are not possible. A "
        "sliding window has its own overlap.",
        unit="tokens",
        low=0,
        high=256,
        plural="overlaps",
        tried=(0, 8, 16, 32, 64, 128),
    ),
    "context": Setting(
        "Context",
        "cut",
        DEFAULT_SPLITTING.context,
        "What is put before the text of a chunk where it is embedded and indexed.",
        "The span stays, and answers quote only that; its tokens count against the token limit. “Documents "
        "and chunks”, tab “Chunks”, shows it in grey.",
        choices=CONTEXTS,
        plural="contexts",
    ),
    "parent_tokens": Setting(
        "Small to big",
        "cut",
        0,
        "Tokens of the larger chunk around each that an answer gets in its place, as the embedding model "
        "counts them, special tokens included; 0: the chunk itself.",
        "Small chunks are searched precisely, and large ones have enough context for an answer. Up to the "
        "chunk size, the chunk itself is used.",
        unit="tokens",
        low=0,
        high=1024,
        step=32,
    ),
    "max_tokens": Setting(
        "Token limit",
        "embedding",
        None,
        "Tokens of a chunk that the model reads; the rest is dropped.",
        "sentence-transformers reads 256 tokens with the default encoder, which was trained on 128 and has "
        "512 positions.",
        low=2 * MIN_CHUNK_TOKENS,
        high=512,
        step=8,
        plural="token limits",
        tried=(128, 256, 512),
        none=OWN_LABEL,
    ),
    "pooling": Setting(
        "Pooling",
        "embedding",
        "mean",
        "How the vectors of a text's tokens become one.",
        "“Pooling compared” shows what each does.",
        choices=POOLINGS,
        own=MODEL_DEFAULT,
        plural="poolings",
    ),
    "prompts": Setting(
        "Prompts",
        "embedding",
        "own",
        "The model's prompts before questions and chunks, if it has any.",
        choices=PROMPT_USES,
        plural="uses of prompts",
    ),
    "precision": Setting(
        "Precision",
        "embedding",
        "float32",
        "How the encoder computes, and a cross-encoder if one is loaded.",
        "“Best settings” measures what that costs here.",
        choices=PRECISIONS,
        plural="precisions",
    ),
    "model": Setting(
        "Model",
        "embedding",
        DEFAULT_ENCODER,
        "What embeds: a known name, a folder or a Hugging Face id, or http://host:port#model-name for a "
        "server that speaks OpenAI's protocol.",
        plural="models",
        has_widget=False,
    ),
    "retriever": Setting(
        "Retriever",
        "search",
        DEFAULT_SEARCH.retriever,
        "Finds the passages and ranks them.",
        "“Best settings” measures which retriever is best.",
        choices=RETRIEVERS,
        plural="retrievers",
    ),
    "index_kind": Setting(
        "Index",
        "search",
        AUTO,
        "Finds the nearest vectors; unless it is exact, hybrids score only those and BM25’s best.",
        f"A kind that finds less than {share(TRUSTED)} of what exact search finds in a sample of your "
        "chunks is not used. “Documents and chunks”, tab “Index”, measures all of them.",
        choices=ChainMap(INDEX_KINDS, {AUTO: Choice("by size", f"Exact for up to {EXACT_CHUNKS:,} chunks.")}),
    ),
    "k": Setting(
        "Passages",
        "search",
        DEFAULT_SEARCH.k,
        "How many of the best chunks count as found and may go into the prompt.",
        "All metrics but MRR are at this k.",
        unit="k",
        low=1,
        high=10,
        plural="numbers of passages",
        tried=(*range(1, 11), 20),
    ),
    "min_relevance": Setting(
        "Relevance threshold",
        "search",
        round(DEFAULT_SEARCH.min_relevance),
        "A passage counts as relevant if at least this many of 100 unrelated questions find nothing as "
        "close in the same documents; 0: every passage counts.",
        "If no passage does, the app says so instead of answering, unless the reader is sure of its words "
        f"and the threshold is at most {DEFAULT_SEARCH.min_relevance:.0f}. This is not a cosine; a high "
        "cosine depends on the model, the pooling and the chunks. Relevance is judged by vectors, whichever "
        "retriever found the passage.",
        low=0,
        high=100,
    ),
    "write": Setting(
        "Write a text by the language model too",
        "answer",
        DEFAULT_ANSWER.write,
        "Have the language model add a text of its own to the words and sentences found, each of its "
        "sentences checked.",
        "It takes longer, and makes more mistakes. A button below each answer has it written for one "
        "question.",
    ),
    "max_prompt_tokens": Setting(
        "Prompt budget",
        "answer",
        DEFAULT_ANSWER.max_prompt_tokens,
        "Passages are added to the prompt, best first, up to this many tokens as the decoder counts them.",
        "A passage may have more of them than the encoder counts for the chunk size.",
        unit="tokens",
        low=128,
        high=4096,
        step=64,
    ),
    "max_new_tokens": Setting(
        "Longest answer",
        "answer",
        DEFAULT_ANSWER.max_new_tokens,
        "Most tokens of the model's text, as the decoder counts them.",
        "Generation stops here if the model has not ended its answer.",
        unit="tokens",
        low=16,
        high=512,
        step=16,
    ),
    "think": Setting(
        "Let the model think first",
        "answer",
        DEFAULT_ANSWER.think,
        "Let a model with a thinking mode (Qwen3, SmolLM3) think first; its thought is no part of the "
        "answer.",
        f"Other models write as they do without it. The thought takes up to {MAX_THOUGHT_TOKENS:,} tokens "
        "more, and is shown folded: quotes, checks and follow-up questions do not regard it.",
    ),
    "follow_ups": Setting(
        "Follow-up questions",
        "answer",
        True,
        "“And in 2016?” finds nothing by itself: it is searched for with the words of the conversation.",
        "That is done where its topic brings a question much closer to the documents; the page shows the "
        "words and lets you change them. Earlier questions and answers take up to a quarter of the prompt.",
    ),
    "reads": Setting(
        "The model reads",
        "answer",
        DEFAULT_ANSWER.reads,
        "What the model reads of the passages.",
        "A small model gets lost in whole passages. On the bundled questions it is right three times as "
        "often when it reads only the three sentences that answer best. A larger model, on a server, may do "
        "better with whole passages.",
        choices={name: Choice(label) for name, label in READINGS.items()},
    ),
    "answer_threshold": Setting(
        "Answered from",
        "answer",
        round(100 * DEFAULT_ANSWER.answer_threshold),
        "How likely an answer has to be right to be shown as one; below, it is shown as unsure.",
        "“Best settings”, tab “Results”, draws how many answers remain at each value, and how many of them "
        "are right.",
        unit="% sure",
        low=0,
        high=100,
    ),
    "refuse_threshold": Setting(
        "Refused below",
        "answer",
        round(100 * DEFAULT_ANSWER.refuse_threshold),
        "Below this, not even the closest sentences are shown as an answer.",
        unit="% sure",
        low=0,
        high=100,
    ),
    **{key: rule_setting(rule) for key, rule in RULES.items()},
    "seed": Setting("Seed", "answer", None, "The same seed and settings give the same answer again."),
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
