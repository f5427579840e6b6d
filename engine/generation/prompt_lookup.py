"""Guessing the next tokens from the text so far: prompt lookup decoding (Saxena 2023).

An answer often repeats its passages, or itself. Where its last tokens occurred before, the tokens that
followed them there are a guess, which the decoder reads along with the last token: the weights come from
memory once for all of them. Only guesses that the decoder itself would have chosen are kept, so the answer is
the same and only the time differs.
"""

from collections.abc import Sequence

# Length of the repeated run of last tokens: number of tokens guessed, the longest run looked up first. The
# longer the repeated run, the longer the repetition goes on. On answers to the bundled questions and on
# continuations of the bundled documents these numbers save most, and hardly ever cost time.
GUESSED_TOKENS = {4: 5, 3: 2, 2: 2}


class PromptLookup:
    """Last occurrence of each run of tokens in a growing text."""

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], int] = {}
        self._n_read = 0

    def guess(self, ids: Sequence[int], most: int) -> list[int]:
        """Tokens that followed the last ones of ``ids`` where they occurred before; none if they did not.

        Parameters
        ----------
        ids
            The text, which begins with the text of the previous call.
        most
            Most tokens to guess.
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
