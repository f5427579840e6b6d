"""The command that drafts questions from documents: ``python -m engine draft-questions``."""

from pathlib import Path
from typing import Annotated

import typer

from ..documents.loaders import kinds
from ..errors import InputError
from ..evaluation.checks import check_questions
from ..evaluation.drafts import draft_questions
from ..evaluation.questions import DRAFTED, Question, load_questions, to_jsonl
from ..models.reader import shipped_reader
from ..progress import progress
from ..weights.catalog import DEFAULT_DECODER
from ..wording import counted
from .loading import load_decoder, read_documents
from .main import app
from .options import DECODER, MEASURE, JsonOption, check_folder_of, grouped, write_errors
from .printing import print_json


@app.command(name="draft-questions", rich_help_panel=MEASURE)
@grouped
def draft_questions_command(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help=f"A file ({kinds()}), or a folder.")],
    out: Annotated[
        Path, typer.Option(help="The file of questions, JSONL; a draft of this seed that it has stays.")
    ],
    n: Annotated[int, typer.Option("--n", help="Drafts in all; one of six has no answer.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sentences drawn.")] = 0,
    decoder: Annotated[str, typer.Option(help=DECODER)] = DEFAULT_DECODER,
    as_json: JsonOption = False,
) -> None:
    """Draft questions from documents, each with the sentence that answers it, for a person to read.

    `sweep --questions` and the app read the file. Unread drafts tell settings that are clearly worse, not the
    best one: keep, edit or strike them in the app, towards 40.
    """
    check_folder_of(out, "--out")
    if out.suffix.lower() != ".jsonl":
        raise InputError(f"--out {out} is written as JSONL: give a name that ends in .jsonl")
    documents = read_documents(corpus)
    before = load_questions(out) if out.exists() and out.stat().st_size else []
    done = [each for each in before if (each.seed, each.status) == (seed, DRAFTED)]
    if problems := check_questions([each for each in done if each.references], documents):
        raise InputError(f"{out} holds drafts of other documents ({problems[0].text}): give another --out")
    model = load_decoder(decoder)
    drafts = list(done)
    label = f"Drafting {counted(n, 'question')}"
    with write_errors(out), progress(label) as show:
        for draft in draft_questions(documents, n, seed, model, shipped_reader(), done, on_progress=show):
            drafts.append(draft)
            with out.open("a", encoding="utf-8") as file:
                file.write(to_jsonl([draft]))
    report(out, drafts, n, as_json)


def report(out: Path, drafts: list[Question], n: int, as_json: bool) -> None:
    """Print how many questions are drafted, and what comes next."""
    n_without = sum(not each.references for each in drafts)
    if as_json:
        print_json({"file": str(out), "n": len(drafts), "n_unanswerable": n_without})
        return
    words = f"{counted(len(drafts), 'draft')} in {out}, {n_without:,} without an answer in the documents"
    if len(drafts) < n:
        words += "; no other sentence gives a question that is fit: add documents, or take another --seed"
    print(f"{words}. Nobody has read them: upload the file to the app to keep, edit or strike each.")
