"""Guessing the next tokens from the text so far: prompt lookup decoding (Saxena 2023).

An answer often repeats what its passages say, or itself. Where its last tokens occurred before, those that
followed them there are a guess, which the decoder reads along with the last token: the weights come from
memory once for all of them. What it would have chosen itself stays, so the answer is the same; only the time
is another.
"""

from collections.abc import Sequence

# The last tokens are looked for in these numbers, and so many are guessed. Of answers to the bundled
# questions, the last two tokens and two guesses save most, and hardly ever cost anything.
N_GRAMS = (3, 2)
GUESSED_TOKENS = 2


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
            Tokens that are of use, if these are fewer than `GUESSED_TOKENS`.
        """
        for place in range(self._n_read, len(ids)):
            for n in N_GRAMS:
                if n <= place:
                    self._followers[tuple(ids[place - n : place])] = place
        self._n_read = len(ids)
        places = (self._followers.get(tuple(ids[-n:])) for n in N_GRAMS)
        found = next((place for place in places if place is not None), len(ids))
        return list(ids[found : found + min(most, GUESSED_TOKENS)])
