"""Settings of a search and of an answer."""

from dataclasses import dataclass

from ..errors import InputError, check_choice
from ..retrieval.retrievers import DEFAULT_RETRIEVER, check_retriever
from .confidence import DEFAULT_ANSWER_THRESHOLD, DEFAULT_REFUSE_THRESHOLD
from .sampling import GREEDY, Sampling
from .thinking import MAX_THOUGHT_TOKENS

# About one in ten questions that have nothing to do with the documents is answered. With chunks of 64 to 256
# tokens, 86 to 99 % of the bundled questions and 5 to 30 % of those without an answer are, by pooling.
DEFAULT_MIN_RELEVANCE = 90.0
READINGS = {"sentences": "the best sentences of the passages", "passages": "whole passages, as many as fit"}


@dataclass(frozen=True)
class SearchSettings:
    """How ``k`` passages are searched for, and which of them count as relevant."""

    k: int = 4
    # the lowest `NullScores.relevance` of a passage that counts, 0 to 100: the share of unrelated questions,
    # in percent, whose best passage is further away
    min_relevance: float = DEFAULT_MIN_RELEVANCE
    retriever: str = DEFAULT_RETRIEVER  # one of `RETRIEVERS`

    def __post_init__(self) -> None:
        if not 0 <= self.min_relevance <= 100:
            raise InputError(
                f"min_relevance is {self.min_relevance}: give 0 (every passage counts) to 100 percent"
            )
        check_retriever(self.retriever)


DEFAULT_SEARCH = SearchSettings()


@dataclass(frozen=True)
class AnswerSettings:
    """How a question is answered; prompt and answer together fit the decoder's context."""

    search: SearchSettings = DEFAULT_SEARCH
    max_prompt_tokens: int = 1024
    max_new_tokens: int = 128
    sampling: Sampling = GREEDY
    reads: str = "sentences"  # a key of READINGS
    answer_threshold: float = DEFAULT_ANSWER_THRESHOLD  # confidence from which an answer is shown as one
    refuse_threshold: float = DEFAULT_REFUSE_THRESHOLD  # confidence below which it is refused
    write: bool = False  # whether a language model adds a text of its own
    check: bool = True  # whether each of its sentences is read again without the passages
    think: bool = False  # whether a model with a thinking mode does so first, in MAX_THOUGHT_TOKENS more

    @property
    def most_tokens(self) -> int:
        """Most tokens of thought and answer together."""
        return self.max_new_tokens + (MAX_THOUGHT_TOKENS if self.think else 0)

    def __post_init__(self) -> None:
        check_choice("reads", self.reads, READINGS)
        if (least := min(self.max_prompt_tokens, self.max_new_tokens)) < 1:
            raise InputError(f"a prompt or an answer of {least} tokens is asked for: give 1 token or more")
        if not 0 <= self.refuse_threshold <= self.answer_threshold <= 1:
            raise InputError(
                f"answers are refused below a confidence of {self.refuse_threshold} and shown from "
                f"{self.answer_threshold} on: give two numbers from 0 to 1, the lower one first"
            )


DEFAULT_ANSWER = AnswerSettings()
