"""The model that writes an answer: the built-in decoder, or a server."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import ContextLengthError
from .decoder import Decoder
from .generated_token import GeneratedToken
from .prefix_cache import PrefixCache
from .prompt import Prompt
from .prompt_words import EXAMPLE_END
from .sampling import server_settings
from .server import Server, TextDelta
from .settings import AnswerSettings


@dataclass(frozen=True)
class Writer:
    """The model that writes an answer: the ``decoder``, or a ``server`` in its place."""

    decoder: Decoder  # its tokenizer counts the tokens of either
    server: Server | None = None
    # as of `Decoder.generate`: prompts with the same passages begin alike, the second is read sooner
    reuse: PrefixCache | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.decoder.name if self.server is None else self.server.model

    @property
    def url(self) -> str | None:
        """Address of the server, None for the decoder."""
        return None if self.server is None else self.server.url

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens of the last answer that were taken from the prefix cache."""
        return self.reuse.reused_tokens if self.reuse is not None and self.server is None else 0

    def check(self, settings: AnswerSettings) -> None:
        """Raise an error for settings that the model does not have or cannot fulfil."""
        n_prompt, n_new = settings.max_prompt_tokens, settings.most_tokens
        if self.server is not None:
            server_settings(settings.sampling)
            return
        if n_prompt + n_new > self.decoder.max_tokens:
            raise ContextLengthError(
                f"{n_prompt} prompt tokens and {n_new} new ones exceed the {self.decoder.max_tokens} "
                f"positions of the model: lower one of them"
                + (", or let the model not think first" if settings.think else "")
            )

    def generate(
        self, prompt: Prompt, settings: AnswerSettings, is_stopped: Callable[[], bool]
    ) -> Iterator[GeneratedToken] | Iterator[TextDelta]:
        """Yield the text of an answer by tokens or deltas; a server is left once ``is_stopped()``."""
        n_new, sampling = settings.most_tokens, settings.sampling
        if self.server is None:
            # A model that goes on after examples would ask the next question itself.
            stop = EXAMPLE_END if self.decoder.chat_template is None else ()
            return self.decoder.generate(prompt.ids, n_new, sampling, stop, reuse=self.reuse)
        return self.server.generate(prompt.messages, n_new, sampling, is_stopped=is_stopped)
