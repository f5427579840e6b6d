"""Tables, lists, steps and answered questions made by code, so that a reader learns to read more than prose.

A table of made-up records is written in one of the forms in which the readers of files give tables
(`engine/documents/formats`): lines ``column: value``, cells between bars, lists, sections, sentences. Its
questions ask for a cell; those without an answer ask for an empty cell, a row or a column that it lacks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...documents.sentences import lines_around, sentence_spans, stripped
from .articles import Article, Asked, Span
from .negatives import holds, normal
from .record_tables import KEYS, RECORD_KINDS, TASKS, Column, RecordKind, draw, step

EMPTY = ("", "-", "–", "n/a", "")  # an empty cell
Cells = dict[tuple[int, int], Span]  # the spans of cells by row and column


@dataclass
class Text:
    """A text that is written piece by piece."""

    text: str = ""
    cells: Cells = field(default_factory=dict)

    def add(self, piece: str) -> None:
        """Write a piece."""
        self.text += piece

    def cell(self, row: int, column: int, value: str) -> None:
        """Write a cell, and note where it stands."""
        if value:
            self.cells[row, column] = len(self.text), len(self.text) + len(value)
        self.text += value


@dataclass(frozen=True)
class Table:
    """Records: the key of each, the columns, and ``(n_rows, n_columns)`` values, "" for an empty cell."""

    kind: RecordKind
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    values: tuple[tuple[str, ...], ...]
    absent_keys: tuple[str, ...]
    absent_columns: tuple[Column, ...]


def draw_table(names: Sequence[str], rng: np.random.Generator) -> Table:
    """Draw a kind of records, some of its columns, keys and values; about one cell of twelve is empty."""
    kind = draw(rng, RECORD_KINDS)
    style = int(rng.integers(1 << 30))
    keys = list(dict.fromkeys(KEYS[kind.thing](rng, style, names) for _ in range(12)))
    keys = [key for key in keys if not any(key != other and normal(key) in normal(other) for other in keys)]
    n_rows = min(int(rng.integers(2, 7)), max(1, len(keys) - 2))
    shown = sorted(keys[:n_rows], reverse=rng.random() < 0.5) if kind.thing == "year" else keys[:n_rows]
    order = [kind.columns[i] for i in rng.permutation(len(kind.columns))]
    n_columns = int(rng.integers(1, 5))
    values = tuple(
        tuple("" if rng.random() < 0.08 else column.value(rng, style, names) for column in order[:n_columns])
        for _ in shown
    )
    return Table(
        kind, tuple(shown), tuple(order[:n_columns]), values, tuple(keys[n_rows:]), tuple(order[n_columns:])
    )


def column_name(column: Column, rng: np.random.Generator) -> str:
    """Return the name of a column as it is written here."""
    name = draw(rng, column.names)
    return name[0].upper() + name[1:] if rng.random() < 0.6 else name


def write_rows(table: Table, rng: np.random.Generator, row: int | None = None) -> Text:
    """Write a line ``column: value`` for each cell, as rows of a CSV file are read; of one row, or of all."""
    text, names = Text(), [column_name(column, rng) for column in table.columns]
    thing = table.kind.thing[0].upper() + table.kind.thing[1:]
    for number in range(len(table.keys)) if row is None else (row,):
        text.add(f"{thing}: ")
        text.cell(number, -1, table.keys[number])
        for column, value in enumerate(table.values[number]):
            if value:
                text.add(f"\n{names[column]}: ")
                text.cell(number, column, value)
        text.add("\n\n")
    return text


def write_bars(table: Table, rng: np.random.Generator) -> Text:
    """Write a line of cells for each row: between bars, as Markdown, or apart by spaces, as in a PDF."""
    text = Text()
    left, gap, right = (("", " | ", ""), ("| ", " | ", " |"), ("", "   ", ""))[rng.integers(3)]
    head = [table.kind.thing, *(column_name(column, rng) for column in table.columns)]
    text.add(left + gap.join(head) + right + "\n")
    if left:
        text.add("|" + " --- |" * len(head) + "\n")
    empty = draw(rng, EMPTY) if gap != "   " else "-"
    for row, (key, values) in enumerate(zip(table.keys, table.values, strict=True)):
        text.add(left)
        text.cell(row, -1, key)
        for column, value in enumerate(values):
            text.add(gap)
            text.cell(row, column, value)
            text.add("" if value else empty)
        text.add(f"{right}\n")
    return text


def write_list(table: Table, rng: np.random.Generator) -> Text:
    """Write an item for each record, or a heading with an item for each of its cells."""
    text, mark = Text(), draw(rng, ("- ", "* ", "• "))
    names = [column_name(column, rng) for column in table.columns]
    headed = rng.random() < 0.5
    for row, key in enumerate(table.keys):
        text.add("## " if headed else mark)
        text.cell(row, -1, key)
        filled = [(column, value) for column, value in enumerate(table.values[row]) if value]
        for number, (column, value) in enumerate(filled):
            text.add(
                f"\n{mark}{names[column]}: " if headed else (", " if number else ": ") + f"{names[column]} "
            )
            text.cell(row, column, value)
        text.add("\n\n" if headed else "\n")
    return text


def write_sentences(table: Table, rng: np.random.Generator) -> Text:
    """Write a sentence for each cell."""
    text, end = Text(), draw(rng, (" ", "\n"))
    for row, key in enumerate(table.keys):
        for column, value in enumerate(table.values[row]):
            if not value:
                continue
            name, of_key = table.columns[column].names[0], table.kind.of_key(key, rng)
            said = (f"The {name} of {of_key} is ", f"For {of_key}, the {name} is ", f"{name} of {of_key}: ")
            text.add(draw(rng, said))
            text.cell(row, column, value)
            text.add("." + end)
    return text


def write_answered(table: Table, rng: np.random.Generator) -> Text:
    """Write questions with their answers below, as on a page of frequent questions."""
    text = Text()
    ask, reply = (("Q: ", "A: "), ("### ", ""), ("", ""), ("Question: ", "Answer: "))[rng.integers(4)]
    places = [(row, column) for row in range(len(table.keys)) for column in range(len(table.columns))]
    for i in rng.permutation(len(places))[:6]:
        row, column = places[i]
        value = table.values[row][column]
        question = draw(rng, table.columns[column].questions)
        text.add(f"{ask}{question.format(table.kind.of_key(table.keys[row], rng))}\n{reply}")
        text.add(draw(rng, ("", "It is ", "That is ", "Currently ")) if value else "Please ask our office.")
        text.cell(row, column, value)
        text.add(".\n\n" if value else "\n\n")
    return text


FORMS = (write_rows, write_bars, write_bars, write_list, write_sentences, write_answered)


def of_table(names: Sequence[str], around: Sequence[str], rng: np.random.Generator) -> Iterator[Asked]:
    """Yield questions about one table, among sentences of an article in some cases."""
    table = draw_table(names, rng)
    one_row = int(rng.integers(len(table.keys))) if rng.random() < 0.15 else None
    form = draw(rng, FORMS)
    text = form(table, rng) if one_row is None else write_rows(table, rng, one_row)
    title = f"# {draw(rng, table.kind.titles)}\n\n" if rng.random() < 0.5 else ""
    before = draw(rng, around) + "\n\n" if around and rng.random() < 0.25 else ""
    after = "\n" + draw(rng, around) if around and rng.random() < 0.35 else ""
    head = before + title
    passage = head + text.text.rstrip() + after
    shift = len(head)

    def asked(question: str, span: Span | None, near: Span | None) -> Asked:
        if rng.random() < 0.15:
            question = question.rstrip("?")
        moved = [each and (each[0] + shift, each[1] + shift) for each in (span, near)]
        return Asked(question, passage, moved[0], moved[1], "record" if span else "record without")

    def question_of(column: Column, key: str) -> str:
        return draw(rng, column.questions).format(table.kind.of_key(key, rng))

    filled = [cell for cell in text.cells if cell[1] >= 0]
    if not filled:
        return
    for i in rng.permutation(len(filled))[: int(rng.integers(2, 5))]:
        row, column = filled[i]
        yield asked(question_of(table.columns[column], table.keys[row]), text.cells[row, column], None)
    row, column = draw(rng, filled)
    near, value = text.cells[row, column], table.values[row][column]
    if (row, -1) in text.cells and passage.count(value) == 1:
        name = table.columns[column].names[0]
        question = draw(rng, ("Which {} has the {} {}?", "What {} has a {} of {}?"))
        thing = "person" if table.kind.thing == "name" else table.kind.thing
        yield asked(question.format(thing, name, value), text.cells[row, -1], None)
    empty = [
        (r, c)
        for r in ([one_row] if one_row is not None else range(len(table.keys)))
        for c, each in enumerate(table.values[r])
        if not each and form is not write_answered
    ]
    if empty:
        r, c = draw(rng, empty)
        yield asked(question_of(table.columns[c], table.keys[r]), None, text.cells.get((r, -1), near))
    free = [key for key in table.absent_keys if normal(key) not in normal(passage)]
    if free and rng.random() < 0.6:
        yield asked(question_of(table.columns[column], draw(rng, free)), None, near)
    if table.absent_columns and rng.random() < 0.6:
        absent = draw(rng, table.absent_columns)
        yield asked(question_of(absent, table.keys[row]), None, near)


def of_steps(rng: np.random.Generator) -> Iterator[Asked]:
    """Yield questions about numbered steps: a step by its number, and the one after or before another."""
    task, known = draw(rng, TASKS)
    made_up = dict.fromkeys(step(rng) for _ in range(9))
    steps = [*made_up] if rng.random() < 0.6 else [known[i] for i in rng.permutation(len(known))]
    n_steps = int(rng.integers(3, len(steps)))
    shown, hidden = steps[:n_steps], steps[n_steps:]  # in any order, which is to be read
    text, mark = Text(f"## How to {task}\n\n"), draw(rng, ("{}. ", "{}) ", "Step {}: ", "({}) "))
    for number, each in enumerate(shown):
        text.add(mark.format(number + 1))
        text.cell(number, 0, each)
        text.add("\n" if rng.random() < 0.5 else ".\n")
    spans = [text.cells[number, 0] for number in range(n_steps)]

    def low(text: str) -> str:
        return text[0].lower() + text[1:]

    at = int(rng.integers(n_steps))
    by_number = (
        "What is step {} to {}?",
        "What does step {} say when you {}?",
        "Step {}: what must be done to {}?",
    )
    yield Asked(draw(rng, by_number).format(at + 1, task), text.text, spans[at], None, "record")
    yield Asked(draw(rng, by_number).format(n_steps + 2, task), text.text, None, spans[-1], "record without")
    at = int(rng.integers(n_steps - 1))
    then = ("What do you do after you {}?", "What is the next step after you {}?", "You {}: what comes next?")
    yield Asked(draw(rng, then).format(low(shown[at])), text.text, spans[at + 1], None, "record")
    earlier = ("What must be done right before you {}?", "What comes just before you {}?")
    yield Asked(draw(rng, earlier).format(low(shown[at + 1])), text.text, spans[at], None, "record")
    if hidden:
        yield Asked(
            draw(rng, then).format(low(draw(rng, hidden))), text.text, None, spans[at], "record without"
        )


def of_questions(article: Article, rng: np.random.Generator) -> Iterator[Asked]:
    """Yield questions about an article's list of questions: with an answer only where one stands below."""
    answered = [question for question in article.questions if question.span]
    if len(answered) < 4:
        return
    chosen = [answered[i] for i in rng.permutation(len(answered))[: int(rng.integers(3, 6))]]
    with_answers, left_out = rng.random() < 0.6, int(rng.integers(len(chosen)))
    written = Text(draw(rng, ("", "# Questions\n\n", "Review questions\n\n", "## FAQ\n\n")))
    ask, reply = (("Q: ", "A: "), ("### ", ""), ("", ""), ("{}. ", ""))[rng.integers(4)]
    spans, answers = list[Span](), dict[int, Span]()
    for number, question in enumerate(chosen):
        written.add(ask.format(number + 1))
        spans.append((len(written.text), len(written.text) + len(question.text.strip())))
        written.add(question.text.strip() + "\n")
        if with_answers and number != left_out and (found := sentence_of(article, question.span)):
            sentence, span = found
            shift = len(written.text) + len(reply)
            answers[number] = span[0] + shift, span[1] + shift
            written.add(f"{reply}{sentence}\n\n")
    passage, missed = written.text.rstrip(), chosen[left_out]
    for number, span in answers.items():
        if rng.random() < 0.7:
            yield Asked(chosen[number].text, passage, span, None, "record")
    if not holds(normal(passage), article.document.text[slice(*missed.span)]):
        yield Asked(missed.text, passage, None, spans[left_out], "record without")


def sentence_of(article: Article, span: Span) -> tuple[str, Span] | None:
    """Return the sentence around a span of an article, and the span in it; None where several share it."""
    text = article.document.text
    first, end = lines_around(text, *span)
    for start, last in sentence_spans(text[first:end]):
        if first + start <= span[0] and span[1] <= first + last:
            start, last = stripped(text, first + start, first + last)
            return text[start:last], (span[0] - start, span[1] - start)
    return None


def records(
    articles: Sequence[Article], names: Sequence[Sequence[str]], n: int, seed: int
) -> Iterator[Asked]:
    """Yield about ``n`` questions about tables, steps and lists of questions, with the articles' names."""
    rng = np.random.default_rng([seed, 1])
    while n > 0:
        number = int(rng.integers(len(articles)))
        text = articles[number].document.text
        paragraphs = [each for each in text.split("\n\n")[1:30] if len(each) > 60]
        around = [part[:160] for part in paragraphs]
        way = rng.random()
        if way < 0.72:
            found = list(of_table(names[number], around, rng))
        elif way < 0.82:
            found = list(of_steps(rng))
        else:
            found = list(of_questions(articles[number], rng))
        yield from found
        n -= max(1, len(found))
