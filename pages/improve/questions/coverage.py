"""How many labelled questions there are about each document in use."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from engine.documents.document import Document
from engine.evaluation.questions import stem
from engine.wording import counted
from ui.questions.kept import BUNDLED
from ui.questions.sets import set_about, usable_questions
from ui.text import joined

MOST_NAMED = 3


def labelled_counts(documents: Sequence[Document]) -> tuple[dict[str, int], int, int]:
    """Return the number of usable labelled questions by document, in all, and of those not bundled."""
    questions = usable_questions(documents)
    bundled = set(set_about(BUNDLED, documents).usable)
    n_about = Counter(question.corpus_id for question in questions)
    counts = {document.name: n_about[stem(document.name)] for document in documents}
    return counts, len(questions), sum(question not in bundled for question in questions)


def headline(counts: Mapping[str, int], n_questions: int, n_own: int) -> str:
    """Say in a sentence which of the documents in use the labelled questions are about.

    ``counts`` are their numbers by the name of the document; those about two of the same name count for both.
    """
    n = len(counts)
    named = "the document in use" if n == 1 else f"the {n:,} documents in use"
    if not n_questions:
        return f"No labelled question is about {named}: no setting can be measured yet."
    without = [name for name, count in counts.items() if not count]
    about = f"{n - len(without):,} of {named}" if without else named
    spread = f", {each_words(counts.values())}" if n > 1 and not without else ""
    if without:
        none = joined(without, "and") if len(without) <= MOST_NAMED else f"{len(without):,} others"
        spread = f"; {none} {'has' if len(without) == 1 else 'have'} none"
    asked = f"{counted(n_questions, 'labelled question')}, {own_words(n_questions, n_own)},"
    return f"{asked} {'is' if n_questions == 1 else 'are'} about {about}{spread}."


def own_words(n_questions: int, n_own: int) -> str:
    """``"none of them your own"``: how many of the questions are."""
    if n_questions == 1:
        return "your own" if n_own else "a bundled one"
    return f"{'all' if n_own == n_questions else f'{n_own:,}' if n_own else 'none'} of them your own"


def each_words(counts: Collection[int]) -> str:
    """``"8 to 60 about each"``: the range of the numbers of questions."""
    least, most = min(counts), max(counts)
    return f"{least:,} about each" if least == most else f"{least:,} to {most:,} about each"
