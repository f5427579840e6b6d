"""The command that finds out why an answer is wrong: ``python -m engine diagnose``."""

from dataclasses import fields
from typing import Annotated

import typer

from ..documents.document import Failure
from ..errors import InputError
from ..evaluation.answers import ShortAnswer
from ..generation.conversation import Turn
from ..inspection.diagnosis.asking import Searched
from ..inspection.diagnosis.diagnose import diagnose
from ..progress import say
from ..retrieval.vector_cache import VectorCache
from ..settings import SETTINGS
from .loading import check_second_models, load_reader, load_searched, null_scores_in, say_languages
from .main import app, print_answer
from .options import AnsweringOptions, JsonOption, SearchedOptions, as_utf8, grouped, question_of
from .printing import print_json

MARKS = {True: "yes", False: "NO", None: "-"}


@app.command(name="diagnose")
@grouped
def diagnose_command(
    question: Annotated[
        str, typer.Argument(help="The question that was answered wrongly, or refused.", callback=question_of)
    ],
    passage: Annotated[str, typer.Option(help="Words of the passage that answers it.", callback=as_utf8)],
    corpus: SearchedOptions,
    answering: AnsweringOptions,
    answer: Annotated[
        str,
        typer.Option(
            help="The right answer; parts that must all occur stand between &, spellings of one between |. "
            "Without it, any words of the passage count as right.",
            show_default=False,
        ),
    ] = "",
    after: Annotated[
        list[str] | None,
        typer.Option(help="A question asked before, which this one may follow on; repeat it for several."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find out why a question is not answered from a passage, and try what gives the right answer.

    Follows the passage from its file to the answer, names the first link that broke, and asks again with each
    cure: another setting, or another wording. Only a cure that gives the right answer is offered as one.
    """
    if not passage.strip():
        raise InputError("the passage is blank: give some of its words by --passage")
    wanted = ShortAnswer.parse(answer)
    check_second_models([answering.retriever], corpus)
    model, index, unrelated, about = load_searched(corpus, answering.retriever)
    say_languages(question, index, model)
    values = {key: setting.default for key, setting in SETTINGS.items()}
    for group in (corpus, answering):
        given = {field.name: getattr(group, field.name) for field in fields(group)}
        values |= {key: value for key, value in given.items() if key in SETTINGS}
    for key in ("answer_threshold", "refuse_threshold"):
        values[key] = round(100 * values[key], 6)  # in percent, as the app has them
    null_scores = null_scores_in(index, model, unrelated)
    is_cut_here = corpus.index is None and corpus.vectors is None
    searched = Searched(
        index,
        model,
        load_reader(model),
        values,
        null_scores,
        list(index.documents.values()) if is_cut_here else (),
        VectorCache() if corpus.cache is None else VectorCache(corpus.cache),
    )
    # Chunks that stay as they are are not embedded again.
    searched.cache.put_many(index.texts, index.vectors, index.spec)
    turns: tuple[Turn, ...] = ()
    for asked in after or ():
        turns = (*turns, Turn(asked, searched.answer(asked, turns).shown_text))
    say("Following the passage, and trying cures")
    failures = [Failure(**each) for each in about["failures"]]
    found = diagnose(question, passage, searched, wanted, turns, failures=failures)
    if as_json:
        print_json(found.to_json() | about)
    else:
        print(f"{found.cause}: {found.sentence}\n")
        for link in found.chain.links:
            print(f"{MARKS[link.holds]:4}{link.title}: {link.evidence}")
        print(f"\nCure: {found.cure_words}\n\nBefore: ", end="")
        print_answer(found.before)
        if found.trial is not None:
            print("After: ", end="")
            print_answer(found.trial.answer)
