"""The commands that evaluate: ``python -m engine sweep``, ``evaluate`` and ``answers``."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from ..documents.document import Document
from ..documents.loaders import kinds
from ..errors import InputError, ModelUnavailableError
from ..evaluation.answers import (
    ANSWER_METRICS,
    BUNDLED_ANSWERS,
    AnswerRow,
    answer_metrics,
    check_answers,
    load_answer_questions,
    measure_answers,
)
from ..evaluation.beir import BeirSet, load_beir
from ..evaluation.bootstrap import level_interval
from ..evaluation.given_chunks import given_configurations, measure_given
from ..evaluation.grid import fitting, grid
from ..evaluation.metrics import METRICS, Retrieved, at_depth
from ..evaluation.questions import DRAFTED, Question
from ..evaluation.sample import MOST_QUESTIONS, some_questions
from ..evaluation.setting_order import expected_of, setting_orders
from ..evaluation.significance import LEVEL
from ..evaluation.sweep import SweepInputs, sweep
from ..evaluation.sweep_answers import MOST_ANSWERED, Answering, limit_of
from ..evaluation.sweep_cost import sweep_seconds
from ..evaluation.sweep_row import MEASURES, RIGHT, SweepRow, retrieves_every_chunk
from ..evaluation.sweep_store import append, resume, stamp_of, to_csv, to_json
from ..generation.answer import Answer
from ..generation.answering import ask
from ..generation.sampling import GREEDY, Sampling
from ..models.embedding_head import MODEL_DEFAULT
from ..models.encoder import Encoder
from ..models.precision import chosen_precision
from ..progress import progress, say
from ..retrieval.embedding_model import Model
from ..retrieval.retrievers import RETRIEVERS, SearchInputs, SearchTexts, reason_unavailable, retriever_scores
from ..retrieval.vector_cache import VectorCache
from ..retrieval.vector_files import read_index
from ..settings import SWEPT, default
from ..weights.catalog import DEFAULT_ENCODER
from ..wording import counted, readable_time
from .loading import (
    check_second_models,
    index_documents,
    load_embedding_model,
    load_encoder,
    load_reader,
    load_search_model,
    load_second_model,
    load_writer,
    null_scores_in,
    read_documents,
    say_if_slower,
    second_models,
)
from .main import answer_settings, app
from .options import (
    MEASURE,
    AnsweringOptions,
    CorpusOptions,
    DocumentOption,
    EncoderOption,
    JsonOption,
    SampleOption,
    SecondModelOptions,
    SweptValues,
    check_folder_of,
    grouped,
    write_errors,
)
from .printing import print_json, print_table
from .sources import present, sources, warn_of_problems, with_matched_names

EVALUATED = ("dense", "bm25", "hybrid")
EVALUATED_METRICS = ("ndcg@k", "recall@k", "mrr")
EVALUATED_K = 10
SHOWN_WHERE_VARIED = ("prompts", "precision", "context")  # settings in the printed table
SHOWN_ROWS = 20
SORTED_BY = "mrr"
FOUND = ("hit_rate@k", "found_at_equal_reading")
# Of the index, to measure a row, and to score all chunks for a question.
COSTS = ("MB", "seconds", "ms a search")


@app.command(name="sweep", rich_help_panel=MEASURE)
@grouped
def sweep_command(
    values: SweptValues,
    second: SecondModelOptions,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help=f"A file ({kinds()}), or a folder.", show_default="bundled corpus, none with --beir"
        ),
    ] = None,
    document: DocumentOption = None,
    beir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="A BEIR folder, or one packed as a .zip file: its texts become one document, a section "
            "each, with its questions. May be given several times.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Labelled questions: CSV or JSONL with question and passage, or with places; or CSV with "
            "question and answer, as `answers` reads it.",
            show_default="bundled questions, or those of --beir",
        ),
    ] = None,
    answers: Annotated[
        int,
        typer.Option(
            min=0, help="Questions that are answered in every configuration, drawn by a seed; 0 for none."
        ),
    ] = MOST_ANSWERED,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Chunks of the documents with their vectors, measured next to the grid: .npz as `embed` "
            "writes it, or .parquet. One of --model, --pooling and --prompts made them."
        ),
    ] = None,
    sample: SampleOption = MOST_QUESTIONS,
    resume_file: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            help="A file that results are appended to; what it has is not measured again. Next to it, "
            "embeddings are kept until all is measured, unless --cache is given.",
        ),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="A file that keeps embeddings between sweeps (SQLite).")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a table to this file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure every combination of settings on labelled questions, and show the best.

    A setting takes several values, with commas between. A stopped sweep continues with the same --resume
    file.
    """
    if csv is not None:
        check_folder_of(csv, "--csv")
    values["precision"] = [chosen_precision(name) for name in values["precision"]]
    check_second_models(values["retriever"], second, required=False)  # what lacks its model is left out
    configurations = grid(**values)
    say_if_slower(*values["precision"])
    documents, asked, to_answer = sources(corpus, beir or (), document or (), questions, sample)
    models = load_models(values["model"], values["retriever"], second)
    given = [] if vectors is None else given_rows(vectors, models, values, documents, asked)
    if MODEL_DEFAULT not in values["pooling"] and any(each.as_encoder is None for each in models.values()):
        configurations = grid(**values | {"pooling": [*values["pooling"], MODEL_DEFAULT]})
    chosen = fitting(configurations, models)
    reasons = Counter(each.why for each in chosen.left_out)
    if not chosen.configurations:
        raise InputError(f"nothing is left of the grid: {next(iter(reasons))}")
    for why, number in reasons.items():
        say(f"left out {number} of the grid: {why}")
    inputs = SweepInputs(documents, asked, chosen.configurations, models)
    answered = some_questions(to_answer, answers) if answers else []
    if answered:
        reader = load_reader(next(iter(models.values())))
        inputs = replace(inputs, answering=Answering(answered, documents, reader))
    done, parts = list[SweepRow](), None
    if resume_file is not None:
        kept, parts = resume(resume_file, stamp_of(inputs))
        wanted = set(chosen.configurations)
        of_these = [row for row in kept if row.configuration in wanted]
        done = [row for row in of_these if [answer.question for answer in row.answers] == list(answered)]
    counts = counted(len(chosen.configurations), "configuration"), counted(len(asked), "question")
    if answered:
        which = f"{len(answered):,} of {counted(len(to_answer), 'question')}"
        say(f"Answering {which} in each; --answers 0 answers none")
    own_cache = None if resume_file is None or cache else resume_file.with_name(f"{resume_file.name}.vectors")
    rows, kept_vectors = list(done), VectorCache(cache or own_cache)
    if sys.stderr.isatty():  # the estimate takes seconds
        finished = {row.configuration for row in done}
        missing = [one for one in chosen.configurations if one not in finished]
        if missing:
            seconds = sweep_seconds(replace(inputs, configurations=missing), kept_vectors)
            say(f"It takes about {readable_time(seconds)}")
    try:
        with progress(f"Measuring {' on '.join(counts)}") as show:
            for row in sweep(inputs, kept_vectors, show, done=done, parts=parts):
                rows.append(row)
                if resume_file is not None:
                    append(resume_file, row)
    except KeyboardInterrupt:
        say(
            "stopped: nothing is kept without --resume FILE"
            if resume_file is None
            else "stopped: what is done is kept, and the same command goes on from there"
        )
        raise
    if kept_vectors.notice:
        say(f"warning: {kept_vectors.notice}")
    if own_cache is not None:
        kept_vectors.remove()
    rows.sort(key=lambda row: chosen.configurations.index(row.configuration))
    rows += given
    if found := [row for row in rows if retrieves_every_chunk(row)]:
        say(
            f"warning: {len(found)} of {len(rows)} configurations retrieve all their chunks (k is their "
            f"number or more; the fewest are {min(row.n_chunks for row in found)}), so that recall@k says "
            "nothing: take a smaller k, smaller chunks or more documents"
        )
    if csv is not None:
        with write_errors(csv):
            csv.write_text(to_csv(rows), encoding="utf-8", newline="")
    if as_json:
        print_json(to_json(rows))
    elif csv is None:
        print_best(rows, asked)


def load_models(
    names: Sequence[str], retrievers: Sequence[str], options: SecondModelOptions
) -> dict[str, Model]:
    """Load models by their names, each with second ones; missing default ones are named."""
    models = {name: load_embedding_model(name) for name in dict.fromkeys(names)}
    second: dict[str, Any] = {}
    for kind, source in second_models(retrievers, options).items():
        try:
            second[kind] = load_second_model(kind, source)
        except ModelUnavailableError as error:
            if kind in options.named:
                raise
            say(f"warning: {error}")
    return {
        name: replace(encoder, **second) if (encoder := model.as_encoder) else model
        for name, model in models.items()
    }


def given_rows(
    path: Path,
    models: Mapping[str, Model],
    values: SweptValues,
    documents: Sequence[Document],
    questions: Sequence[Question],
) -> list[SweepRow]:
    """Measure chunks whose vectors are given, by the first model and settings of it that made them."""
    say(f"Reading {path}")
    poolings = dict.fromkeys([*values["pooling"], MODEL_DEFAULT])
    reasons = []
    for name, pooling, *read_as in product(models, poolings, values["prompts"], values["precision"]):
        try:
            model = models[name].with_prompts(read_as[0]).with_precision(read_as[1])
            index = read_index(path, model, pooling)
        except InputError as error:
            reasons.append(str(error))
            continue
        retrievers = [each for each in values["retriever"] if not reason_unavailable(each, model)]
        configurations = given_configurations(
            index, name, read_as, retrievers or values["retriever"], values["k"]
        )
        rows = measure_given(index, model, documents, questions, configurations)
        return sorted(rows, key=lambda row: configurations.index(row.configuration))
    raise InputError(reasons[0])


def print_best(rows: Sequence[SweepRow], questions: Sequence[Question]) -> None:
    """Print the best rows with settings and figures, by `SORTED_BY`, or as unread drafts make one expect."""
    shown = [
        key
        for key in SWEPT
        if key not in SHOWN_WHERE_VARIED or len({getattr(row.configuration, key) for row in rows}) > 1
    ]
    by = SORTED_BY
    if any(each.status == DRAFTED for each in questions):
        by, gains = "expected", expected_of(rows, questions, SORTED_BY)
        own = zip(rows, gains, strict=True)
        rows = [replace(row, metrics={**row.metrics, by: gain.difference}) for row, gain in own]
    rows = sorted(rows, key=lambda row: -row.metrics[by])
    best, table = rows[:SHOWN_ROWS], []
    for row in best:
        values = [getattr(row.configuration, key) for key in shown]
        low, high = row.intervals[SORTED_BY]
        right_low, right_high = row.intervals.get(RIGHT, (0.0, 0.0))
        figures = (
            *([f"{row.metrics[by] - best[0].metrics[by]:+.3f}"] if by != SORTED_BY else []),
            f"{row.metrics[SORTED_BY]:.3f}",
            f"{low:.3f} to {high:.3f}",
            *(f"{row.metrics[name]:.3f}" for name in FOUND),
            f"{row.metrics[RIGHT]:.3f} ({right_low:.2f} to {right_high:.2f})" if RIGHT in row.metrics else "",
            f"{row.index_bytes / 1e6:.2f}",
            f"{row.seconds:.1f}",
            "" if row.search_seconds is None else f"{1000 * row.search_seconds:.2f}",
        )
        table.append(["own" if value is None else value for value in values] + [*figures])
    names = [*(key.replace("_", " ") for key in shown), *([by] if by != SORTED_BY else [])]
    found = [MEASURES[name].label for name in (*FOUND, RIGHT)]
    print_table([*names, METRICS[SORTED_BY].label, "95 % interval", *found, *COSTS], table)
    if by != SORTED_BY:
        every = expected_of(rows, questions, SORTED_BY)
        n_worse = sum(one.difference < 0 and one.p_value < LEVEL for one in every)
        print(
            f"expected: MRR against the first row, by {setting_orders()[SORTED_BY].n_corpora} labelled "
            f"corpora and these questions; {n_worse:,} of {len(rows):,} are clearly worse than that row"
        )
    if (limit := limit_of(best[0].answers)) is not None:
        say(f"the first row: {limit.words}")
    if len(rows) > SHOWN_ROWS:
        print(f"the first {SHOWN_ROWS} of {len(rows)}: --csv or --json gives all")


@app.command(rich_help_panel=MEASURE)
@grouped
def evaluate(
    folder: Annotated[
        Path,
        typer.Argument(
            help="A BEIR folder (corpus.jsonl, queries.jsonl and qrels/*.tsv), or one as a .zip file."
        ),
    ],
    model: EncoderOption = DEFAULT_ENCODER,
    pooling: str = MODEL_DEFAULT,
    precision: str = default("precision"),
    as_json: JsonOption = False,
) -> None:
    """Evaluate vector search, BM25 and both on a labelled collection, each document as one passage.

    Text beyond the model's token limit is not read. Relevance counts as yes or no.
    """
    say(f"Reading {folder}")
    collection = load_beir(folder)
    say_if_slower(precision)
    encoder = load_encoder(model).with_precision(precision)
    pooling = encoder.pooling if pooling == MODEL_DEFAULT else pooling
    rows = evaluated(collection, encoder, pooling)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "model": model,
                "pooling": pooling,
                "precision": encoder.precision,
                "n_documents": len(collection.documents),
                "n_questions": len(collection.questions),
                "rows": rows,
            }
        )
        return
    counts = counted(len(collection.questions), "question"), counted(len(collection.documents), "document")
    print(f"{', '.join(counts)}, {model}")
    names = [name for name in rows[0] if name not in ("retriever", "intervals")]
    print_table(
        ["retriever", *names], [[row["retriever"], *(f"{row[name]:.4f}" for name in names)] for row in rows]
    )


def evaluated(collection: BeirSet, encoder: Encoder, pooling: str) -> list[dict[str, Any]]:
    """Return the metrics of each retriever, with their intervals, for the JSON output."""
    documents, questions = ([each.text for each in collection.documents], list(collection.questions))
    if pooling == "idf":
        encoder = encoder.with_idf(documents)
    label = f"Embedding {counted(len(questions), 'question')} and {counted(len(documents), 'document')}"
    with progress(label) as show:
        chunk_vectors = encoder.encode_document(documents, pooling=pooling, on_progress=show)
    vectors = encoder.encode_query(questions, pooling=pooling)
    texts = SearchTexts(tuple(questions), tuple(documents))
    inputs = SearchInputs(texts, vectors, chunk_vectors)
    relevant = collection.relevance([document.name for document in collection.documents])
    rows = []
    for retriever in EVALUATED:
        say(f"Searching by {RETRIEVERS[retriever].label}")
        scores = retriever_scores(retriever, inputs)
        retrieved = Retrieved.of(scores, relevant, EVALUATED_K)
        found = {
            at_depth(name, EVALUATED_K): level_interval(METRICS[name].function(retrieved))
            for name in EVALUATED_METRICS
        }
        figures = {name: each.estimate for name, each in found.items()}
        intervals = {name: [each.low, each.high] for name, each in found.items()}
        rows.append({"retriever": retriever, **figures, "intervals": intervals})
    return rows


@app.command(rich_help_panel=MEASURE)
@grouped
def answers(
    corpus: CorpusOptions,
    answering: AnsweringOptions,
    sampling: Sampling = GREEDY,
    questions: Annotated[
        Path,
        typer.Option(
            help="CSV with question, answer (& divides parts, | alternatives; empty: there is none) "
            "and optionally document, start, end, kind, half.",
            show_default="bundled questions",
        ),
    ] = BUNDLED_ANSWERS,
    sample: SampleOption = MOST_QUESTIONS,
    half: Annotated[
        str, typer.Option(help="Only the questions with this in their column half.", show_default="all")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Answer questions with known short answers, and score what is shown without a judge."""
    asked = [each for each in load_answer_questions(questions) if half in ("", each.half)]
    if not asked:
        raise InputError(f"no question of {questions} has {half!r} in its column half: give another one")
    settings = answer_settings(answering, sampling)
    check_second_models([answering.retriever], corpus)
    writer = load_writer(answering, settings)
    documents = read_documents(corpus.corpus)
    asked = present(with_matched_names(asked, documents), documents)
    if len(some := some_questions(asked, sample or len(asked))) < len(asked):
        say(f"answering a sample of {len(some):,} of {len(asked):,} questions; --sample 0 answers all")
    asked = some
    warn_of_problems(list(check_answers(asked, documents)))
    encoder = load_search_model(corpus, second_models([answering.retriever], corpus))
    index = index_documents(documents, encoder, corpus, corpus.parent_tokens)
    null_scores, reader = null_scores_in(index, encoder), load_reader(encoder)

    def answer(question: str) -> Answer:
        return ask(question, index, encoder, writer, settings, null_scores, reader=reader)

    with progress(f"Answering {counted(len(asked), 'question')}") as show:
        rows = measure_answers(asked, answer, show)
    if as_json:
        print_json(
            {
                "n_questions": len(rows),
                "metrics": {name: asdict(value) for name, value in answer_metrics(rows).items()},
                "rows": [row_json(row) for row in rows],
            }
        )
        return
    print_table(
        ["metric", "value", "95 % interval", "of"],
        [
            [
                ANSWER_METRICS[name].label,
                f"{value.estimate:.3f}",
                f"{value.low:.3f} to {value.high:.3f}",
                ANSWER_METRICS[name].of,
            ]
            for name, value in answer_metrics(rows).items()
        ],
    )


def row_json(row: AnswerRow) -> dict[str, Any]:
    """Return a scored answer for the JSON output."""
    return {
        "question": row.question.text,
        "answerable": row.question.is_answerable,
        "kind": row.question.kind,
        "status": row.status,
        "confidence": round(row.confidence, 4),
        "found": row.found,
        "right": row.right,
        "answer": row.reading,
        "exact": row.exact,
        "f1": round(row.f1, 4),
        "wrong_confident": row.wrong_confident,
        "quotes": list(row.quotes),
        "text": row.text,
        "seconds": round(row.seconds, 3),
    }
