"""The command line: ``python -m engine``."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import __version__
from ..errors import GlassboxError
from ..generation.answer import NOTHING_FOUND, Answer
from ..generation.answer_json import answer_json, found_json
from ..generation.answering import add_text, find_answer
from ..generation.conversation import Turn, follow_up
from ..generation.passage_search import retrieve
from ..generation.sampling import GREEDY, Sampling, unused_settings
from ..generation.settings import AnswerSettings, SearchSettings
from ..progress import say
from ..retrieval.relevance import closer_than
from ..retrieval.vector_files import save_npz
from ..settings import Configuration, default
from ..verify import verify_model
from ..weights.catalog import DEFAULT_ENCODER
from ..wording import beginning, counted
from .command_group import CommandGroup
from .loading import (
    check_second_models,
    index_documents,
    load_decoder,
    load_encoder,
    load_reader,
    load_search_model,
    load_searched,
    load_writer,
    null_scores_in,
    read_documents,
    say_languages,
)
from .options import (
    DECODER,
    MODELS,
    AnsweringOptions,
    EmbeddingOptions,
    EncoderOption,
    JsonOption,
    SearchedOptions,
    check_folder_of,
    grouped,
    question_of,
    write_errors,
)
from .printing import place, print_json, print_table

SHOWN = 100  # characters of a passage
# Options of answers that only a text of the decoder depends on, besides those of sampling.
WRITING = ("decoder", "max_prompt_tokens", "max_new_tokens", "reads", "think")

app = typer.Typer(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Ask your documents, with every step open to view. "
    "Progress goes to standard error; exit codes: 0 done, 1 a check failed, 2 bad usage or input, "
    "141 the reader of the output left.",
)


def print_version(is_wanted: bool) -> None:
    """Print the version, and end."""
    if is_wanted:
        print(f"Glassbox {__version__}")
        raise typer.Exit()


@app.callback(no_args_is_help=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Take the options before the command."""


def answer_settings(answering: AnsweringOptions, sampling: Sampling) -> AnswerSettings:
    """Return the settings of an answer from the options; warn of those without effect."""
    if answering.write:
        unused, reason = unused_settings(sampling), "as the temperature is 0: add --temperature 0.7, say"
    else:
        own = [each for each in fields(answering) if each.name in WRITING]
        unused = [each.name for each in own if getattr(answering, each.name) != each.default]
        unused += [each.name for each in fields(sampling) if getattr(sampling, each.name) != each.default]
        reason = "as no text is written without --write"
    if unused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        say(f"warning: {names} without effect, {reason}")
    search = SearchSettings(answering.k, answering.min_relevance, answering.retriever)
    return AnswerSettings(
        search,
        answering.max_prompt_tokens,
        answering.max_new_tokens,
        sampling,
        answering.reads,
        answering.answer_threshold,
        answering.refuse_threshold,
        write=answering.write,
        think=answering.think,
    )


@app.command(rich_help_panel=MODELS)
@grouped
def verify(
    model: EncoderOption = DEFAULT_ENCODER,
    dtype: Annotated[str, typer.Option(help="Precision: float32 or float64.")] = "float32",
    text: Annotated[
        list[str] | None, typer.Option(help="A text to compare on; may be given several times.")
    ] = None,
    decoder: Annotated[str | None, typer.Option(help=f"To compare in place of an encoder. {DECODER}")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every stage of a model with the official one; exit 1 where one differs too much."""
    if dtype not in ("float32", "float64"):
        raise typer.BadParameter("give float32 or float64", param_hint="--dtype")
    if decoder is not None and dtype == "float64":
        raise typer.BadParameter("decoders compute only in float32", param_hint="--dtype")
    precision = np.float32 if dtype == "float32" else np.float64
    loaded = load_encoder(model, precision) if decoder is None else load_decoder(decoder)
    model = decoder or model
    say(f"Comparing every stage with the official {model} in {dtype}")
    checks = verify_model(loaded, text)
    passed = all(check.passed for check in checks)
    if as_json:
        stages = [{**asdict(check), "passed": check.passed} for check in checks]
        print_json({"model": model, "dtype": dtype, "passed": passed, "stages": stages})
    else:
        print_table(
            ["stage", "end to end", "alone", "allowed", ""],
            [
                [
                    check.stage,
                    check.difference(check.end_to_end),
                    f"{check.alone:.1e}",
                    f"{check.tolerance:.1e}",
                    "" if check.passed else "FAILED",
                ]
                for check in checks
            ],
        )
        n_passed = sum(check.passed for check in checks)
        print(f"{n_passed} of {len(checks)} stages of {model} equal the official model in {dtype}")
    if not passed:
        raise typer.Exit(1)


@app.command()
@grouped
def search(
    question: Annotated[str, typer.Argument(help="What to look for.", callback=question_of)],
    corpus: SearchedOptions,
    retriever: str = default("retriever"),
    k: int = Configuration.k,
    as_json: JsonOption = False,
) -> None:
    """Find the best passages of a corpus for a question.

    The retriever decides their order; the score of each is the cosine of its vector and the question's.
    """
    settings = SearchSettings(k, retriever=retriever)
    check_second_models([retriever], corpus)
    encoder, index, unrelated, about = load_searched(corpus, retriever)
    note = say_languages(question, index, encoder)
    null_scores = null_scores_in(index, encoder, unrelated)
    say("Searching")
    found = retrieve(question, index, encoder, settings, null_scores)
    if as_json:
        print_json(found_json(question, found) | about | {"language_note": note})
        return
    if not found.hits:
        print("No passage shares a word with the question: ask in other words, or by another retriever.")
    for rank, hit in enumerate(found.hits, start=1):
        closer = closer_than(found.null_scores, hit.score)
        print(f"{rank}. {hit.score:.3f}, {closer}  {place(hit.chunk, hit.chunk.headings)}")
        print(f"   {beginning(hit.chunk.text, SHOWN)}")


@app.command(name="ask")
@grouped
def ask_command(
    question: Annotated[str, typer.Argument(help="What to answer.", callback=question_of)],
    corpus: SearchedOptions,
    answering: AnsweringOptions,
    sampling: Sampling = GREEDY,
    after: Annotated[
        list[str] | None,
        typer.Option(help="A question asked before, which this one may follow on; repeat it for several."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the passages of a corpus: words that answer, quotes, and how sure they are."""
    settings = answer_settings(answering, sampling)
    check_second_models([answering.retriever], corpus)
    writer = load_writer(answering, settings)  # before anything is embedded
    encoder, index, unrelated, about = load_searched(corpus, answering.retriever)
    note = say_languages(question, index, encoder)
    null_scores = null_scores_in(index, encoder, unrelated)
    reader, turns = load_reader(encoder), tuple[Turn, ...]()
    for asked in (*(after or ()), question):
        say("Searching and reading")
        own, turns = follow_up(asked, turns, index, encoder, null_scores)
        answer = find_answer(own, index, encoder, settings, null_scores, reader)
        if writer is not None and answer.retrieved.relevant:
            try:
                answer = add_text(answer, encoder, writer, settings, turns=turns)
            except GlassboxError as error:
                say(f"warning: the language model wrote no text, and what was found stands ({error})")
        turns = (*turns, Turn(asked, answer.shown_text))
    if as_json:
        print_json(answer_json(answer) | about | {"language_note": note})
        return
    if answer.question != question:
        print(f"read as: {answer.question}")
    print_answer(answer)
    found = answer.retrieved
    for source, rank in zip(
        answer.sources, answer.written.source_places if answer.written else (), strict=True
    ):
        closer = closer_than(found.null_scores, source.score)
        where = place(source, found.hits[rank].chunk.headings)
        print(f"[{source.number}] {source.score:.3f}, {closer}  {where}")


def print_answer(answer: Answer) -> None:
    """Print how sure an answer is, its quotes, and the model's words with what is unsupported."""
    if not answer.retrieved.relevant:
        print(NOTHING_FOUND)
        return
    judged, written = answer.judged, answer.written
    print(f"{judged.status}, {judged.confidence:.0%} sure")
    if answer.reading:
        print(f"\n{' '.join(answer.reading.text.split())}")
    if answer.other_reading:
        print(f"or: {' '.join(answer.other_reading.text.split())}")
    for quote in answer.quotes:
        headings = answer.retrieved.hits[quote.place].chunk.headings
        print(f"\n  “{' '.join(quote.text.split())}”\n  {place(quote, headings)}")
    if written and written.thought and not written.text:
        print("\nThe model thought until it had to end, and wrote no answer.")
    if answer.text and judged.status != "refused":
        print("\nIn the model's words:")
        for each in judged.sentences:
            reason = f"  [unsupported: {each.reason}]" if each.reason else ""
            print(f"  {answer.text[each.start : each.end].strip()}{reason}")
    print()


@app.command()
@grouped
def embed(
    path: Annotated[Path, typer.Argument(help="A file or a folder, as for a corpus.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    embedding: EmbeddingOptions,
    as_json: JsonOption = False,
) -> None:
    """Split and embed documents; write texts, ids, spans and vectors to an .npz file.

    Its arrays, one row a chunk: documents (names), starts, ends, vectors (n_chunks, d_model). The texts of
    all chunks stand one after the other in text (UTF-8); text_starts says where each chunk's begins. So do
    the token ids in ids and id_starts.
    """
    if out.suffix != ".npz":
        raise typer.BadParameter(f"{out} does not end in .npz", param_hint="--out")
    check_folder_of(out, "--out")
    encoder = load_search_model(embedding)
    index = index_documents(read_documents(path), encoder, embedding)
    ids = encoder.tokenizer.ids_batch([chunk.indexed for chunk in index.chunks])
    if (with_tokens := encoder.as_encoder) is not None:
        ids = [with_tokens.truncate(sequence, embedding.max_tokens) for sequence in ids]
    with write_errors(out):
        save_npz(out, index, ids)
    if as_json:
        print_json({"out": str(out), "chunks": len(index.chunks), "tokens": sum(map(len, ids))})
    else:
        print(f"{counted(len(index.chunks), 'chunk')} of {sum(map(len, ids))} tokens in {out}")
