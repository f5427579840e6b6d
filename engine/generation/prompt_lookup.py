"""Guessing the next tokens from the text so far: prompt lookup decoding (Saxena 2023).

An answer often repeats what its passages say, or itself. Where its last tokens occurred before, those that
followed them there are a guess, which the decoder reads along with the last token: the weights come from
memory once for all of them. What it would have chosen itself stays, so the answer is the same; only the time
is another.
"""

from collections.abc import Sequence

# How many tokens are guessed where so many of the last ones occurred before, the most looked for first: the
# longer what comes again, the longer it goes on. Measured on answers to the bundled questions and on texts
# continued from the bundled documents, these save most, and hardly ever cost anything.
GUESSED_TOKENS = {4: 5, 3: 2, 2: 2}


class PromptLookup:
    """Where each run of tokens occurred last in a text that grows."""

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], int] = {}
        self._n_read = 0

    def guess(self, ids: Sequence[int], most: int) -> list[int]:
        """Tokens that followed the last ones of ``ids`` where they occurred before; none if they did not.

        Parameters
        ----------
        ids
            The text, which begins with that of the call before.
        most
            Tokens that are of use, if these are fewer than would be guessed.
        """
        for place in range(self._n_read, len(ids)):
            for n in GUESSED_TOKENS:
                if n <= place:
                    self._followers[tuple(ids[place - n : place])] = place
        self._n_read = len(ids)
        for n, n_guessed in GUESSED_TOKENS.items():
            found = self._followers.get(tuple(ids[-n:]))
            if found is not None:
                return list(ids[found : found + min(most, n_guessed)])
        return []
