"""The command line: ``python -m engine``."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import numpy as np
import typer

from engine.documents.budget import limit_warning
from engine.documents.document import Chunk, Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import METHODS, Splitting, split, split_small_to_big
from engine.errors import GlassboxError
from engine.generation.answering import DEFAULT_MIN_RELEVANCE, Answer, Retrieval, ask, retrieve
from engine.generation.decoder import Decoder
from engine.generation.expansion import expanded
from engine.generation.prompt import Source
from engine.models.encoder import Encoder
from engine.retrieval.background import closer_than
from engine.retrieval.index import Hit, Index, build_index
from engine.retrieval.retrievers import RETRIEVERS, check_retriever
from engine.verify import DEFAULT_TEXTS, verify_encoder
from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER
from engine.weights.fetch import Progress

P = ParamSpec("P")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask your documents, with every step open to view. "
    "Progress goes to standard error; exit codes: 0 done, 1 a check failed, 2 bad usage or input.",
)

CorpusOption = Annotated[
    Path,
    typer.Option(
        "--corpus",
        help="A file (text, PDF, Word, HTML, CSV, .zip, …), or a folder.",
        show_default="bundled corpus",
    ),
]
EncoderOption = Annotated[
    str, typer.Option("--model", help="Encoder: a known name, a BERT-family folder or a Hugging Face id.")
]
ChunkOption = Annotated[int, typer.Option(help="Tokens of a chunk, special tokens included.")]
SplitterOption = Annotated[str, typer.Option(help=f"How documents are cut: {', '.join(METHODS)}.")]
ParentOption = Annotated[
    int, typer.Option(help="Tokens of the larger chunk around each that is given in its place; 0: the chunk.")
]
OverlapOption = Annotated[int, typer.Option(help="Tokens a chunk repeats from the one before.")]
PoolingOption = Annotated[str, typer.Option(help="How token vectors become one: mean, cls or pooler.")]
RetrieverOption = Annotated[
    str, typer.Option(help=f"What finds the passages, and orders them: {', '.join(RETRIEVERS)}.")
]
ExpandOption = Annotated[
    bool,
    typer.Option(
        "--expand",
        help="Search for the question with a passage after it that the decoder makes up (HyDE). Where it "
        "was measured, a small decoder made the search worse.",
    ),
]
DecoderOption = Annotated[
    str,
    typer.Option(help="Decoder: a known name, a .gguf file, a Llama-family folder or a Hugging Face id."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
RelevanceOption = Annotated[
    float,
    typer.Option(
        help="Passages count where they are closer than the best that this share (percent) of unrelated "
        "questions finds; 0: all."
    ),
]


def clear_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the engine's errors into one line on standard error and exit code 2."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except GlassboxError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(2) from error

    return wrapped


def progress(label: str) -> Progress:
    """Return a reporter that draws one line on standard error, where that is a terminal."""

    def report(done: int, total: int) -> None:
        if sys.stderr.isatty():
            share = f"{done / total:4.0%}" if total else f"{done / 1e6:.1f} MB"
            print(f"\r{label} {share}", end="\n" if total and done >= total else "", file=sys.stderr)

    return report


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(content, ensure_ascii=False, indent=2))


def load_chunks(corpus: Path, encoder: Encoder, splitting: Splitting, parent_tokens: int) -> list[Chunk]:
    """Load and split a corpus; warn on standard error where chunks pass the model's limit."""

    def cut(document: Document) -> list[Chunk]:
        if parent_tokens:
            return split_small_to_big(
                document, encoder.tokenizer, splitting, parent_tokens, embed=encoder.encode
            )
        return split(document, encoder.tokenizer, splitting, embed=encoder.encode)

    chunks = [chunk for document in load_corpus(corpus) for chunk in cut(document)]
    if warning := limit_warning(chunks, encoder.max_tokens):
        print(f"warning: {warning}", file=sys.stderr)
    return chunks


def load_decoder(name: str) -> Decoder:
    """Load the decoder."""
    return Decoder.load(name, on_progress=progress(f"downloading {name}"))


def searched_json(searched_for: str | None) -> dict[str, str]:
    """Return what was searched for in the question's place, if anything, as the JSON output spells it."""
    return {} if searched_for is None else {"searched_for": searched_for}


def print_searched(searched_for: str | None) -> None:
    """Print what was searched for in the question's place, if anything."""
    if searched_for is not None:
        print(f"searched for: {one_line(searched_for, 1000)}\n")


def load_index(
    corpus: Path, model: str, splitting: Splitting, parent_tokens: int, pooling: str
) -> tuple[Encoder, Index]:
    """Load the encoder, and index a corpus with it."""
    encoder = Encoder.load(model, on_progress=progress(f"downloading {model}"))
    chunks = load_chunks(corpus, encoder, splitting, parent_tokens)
    return encoder, build_index(
        chunks, encoder, pooling, on_progress=progress(f"embedding {len(chunks)} chunks")
    )


def passage(place: Chunk | Source, found: Retrieval | Answer, rank: int) -> dict[str, Any]:
    """Return a passage, which was found as hit number ``rank`` from 0, as the JSON output spells it."""
    score, margin = found.hits[rank].score, found.margins[rank]
    return {
        "document": place.document,
        "start": place.start,
        "end": place.end,
        "score": round(score, 6),
        "percentile": round(found.background.percentile(score), 4),
        "relevance": round(found.background.relevance(score), 4),
        "margin": None if margin is None else round(margin, 6),
        "text": place.text,
    }


@app.command()
@clear_errors
def verify(
    model: EncoderOption = DEFAULT_ENCODER,
    dtype: Annotated[str, typer.Option(help="Precision: float32 or float64.")] = "float32",
    text: Annotated[
        list[str] | None, typer.Option(help="A text to compare on; may be given several times.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every stage of the encoder with the official model; exit 1 where one differs too much."""
    if dtype not in ("float32", "float64"):
        raise typer.BadParameter("give float32 or float64", param_hint="--dtype")
    precision = np.float32 if dtype == "float32" else np.float64
    encoder = Encoder.load(model, precision, on_progress=progress(f"downloading {model}"))
    checks = verify_encoder(encoder, text or DEFAULT_TEXTS)
    passed = all(check.passed for check in checks)
    if as_json:
        stages = [{**asdict(check), "passed": check.passed} for check in checks]
        print_json({"model": model, "dtype": dtype, "passed": passed, "stages": stages})
    else:
        width = max(len(check.stage) for check in checks)
        print(f"{'stage':{width}}  {'end to end':>10}  {'alone':>8}  {'allowed':>8}")
        for check in checks:
            verdict = "" if check.passed else "  FAILED"
            print(
                f"{check.stage:{width}}  {check.end_to_end:10.1e}  {check.alone:8.1e}  "
                f"{check.tolerance:8.1e}{verdict}"
            )
        n_passed = sum(check.passed for check in checks)
        print(f"{n_passed} of {len(checks)} stages of {model} equal the official model in {dtype}")
    if not passed:
        raise typer.Exit(1)


@app.command()
@clear_errors
def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    corpus: CorpusOption = BUNDLED_CORPUS,
    k: Annotated[int, typer.Option(help="How many passages.")] = 5,
    model: EncoderOption = DEFAULT_ENCODER,
    splitter: SplitterOption = "fixed",
    chunk_tokens: ChunkOption = 128,
    overlap: OverlapOption = 16,
    parent_tokens: ParentOption = 0,
    pooling: PoolingOption = "mean",
    retriever: RetrieverOption = "dense",
    expand: ExpandOption = False,
    decoder: DecoderOption = DEFAULT_DECODER,
    as_json: JsonOption = False,
) -> None:
    """Find the best passages of a corpus for a question.

    The retriever decides their order; the score of each is the cosine of its vector and the question's.
    """
    check_retriever(retriever)
    encoder, index = load_index(
        corpus, model, Splitting(splitter, chunk_tokens, overlap), parent_tokens, pooling
    )
    searched_for = expanded(question, load_decoder(decoder)) if expand else None
    found = retrieve(question, index, encoder, k, retriever=retriever, searched_for=searched_for)
    if as_json:
        print_json(
            {
                "question": question,
                **searched_json(searched_for),
                "hits": [passage(hit.chunk, found, rank) for rank, hit in enumerate(found.hits)],
                "timings": asdict(found.timings),
            }
        )
        return
    print_searched(searched_for)
    if not found.hits:
        print("No passage shares a word with the question: ask in other words, or by another retriever.")
    for rank, hit in enumerate(found.hits, start=1):
        percentile = found.background.percentile(hit.score)
        print(f"{rank}. {hit.score:.3f}, {closer_than(percentile)}  {place(hit)}")
        print(f"   {one_line(hit.chunk.text)}")


@app.command(name="ask")
@clear_errors
def ask_command(
    question: Annotated[str, typer.Argument(help="What to answer.")],
    corpus: CorpusOption = BUNDLED_CORPUS,
    k: Annotated[int, typer.Option(help="How many passages to search for.")] = 4,
    min_relevance: RelevanceOption = DEFAULT_MIN_RELEVANCE,
    model: EncoderOption = DEFAULT_ENCODER,
    decoder: DecoderOption = DEFAULT_DECODER,
    splitter: SplitterOption = "fixed",
    chunk_tokens: ChunkOption = 128,
    overlap: OverlapOption = 16,
    parent_tokens: ParentOption = 0,
    pooling: PoolingOption = "mean",
    retriever: RetrieverOption = "dense",
    expand: ExpandOption = False,
    max_prompt_tokens: Annotated[int, typer.Option(help="Token budget of the prompt.")] = 1024,
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens of the answer.")] = 128,
    temperature: Annotated[float, typer.Option(help="0 takes the most probable token each time.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Draw among this many most probable tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw among the most probable tokens that reach this probability.")
    ] = None,
    min_p: Annotated[
        float | None, typer.Option(help="Draw among tokens at least this share as probable as the best.")
    ] = None,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1, words that occurred are less probable, those of passages too.")
    ] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Makes drawing at a temperature repeatable.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the passages of a corpus, and list the passages."""
    check_retriever(retriever)
    encoder, index = load_index(
        corpus, model, Splitting(splitter, chunk_tokens, overlap), parent_tokens, pooling
    )
    answer = ask(
        question,
        index,
        encoder,
        load_decoder(decoder),
        k=k,
        min_relevance=min_relevance,
        max_prompt_tokens=max_prompt_tokens,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
        retriever=retriever,
        expand=expand,
        on_text=None if as_json else lambda text: print(text, end="", flush=True),
    )
    if as_json:
        print_json(answer_json(answer))
        return
    print("\n")
    print_searched(answer.searched_for)
    for source in answer.sources:
        percentile = answer.background.percentile(source.score)
        print(
            f"[{source.number}] {source.score:.3f}, {closer_than(percentile)}  "
            f"{source.document}:{source.start}-{source.end}"
        )


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as the JSON output spells it."""
    return {
        "answer": answer.text,
        **searched_json(answer.searched_for),
        "sources": [
            passage(source, answer, place)
            for source, place in zip(answer.sources, answer.relevant, strict=False)  # the first of them
        ],
        "timings": asdict(answer.timings),
    }


@app.command()
@clear_errors
def embed(
    path: Annotated[Path, typer.Argument(help="A file or a folder, as for a corpus.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    model: EncoderOption = DEFAULT_ENCODER,
    splitter: SplitterOption = "fixed",
    chunk_tokens: ChunkOption = 128,
    overlap: OverlapOption = 16,
    pooling: PoolingOption = "mean",
    as_json: JsonOption = False,
) -> None:
    """Split and embed documents; write ids, spans and vectors to an .npz file.

    Its arrays, one row a chunk: documents (names), starts, ends, vectors (n_chunks, d_model), and the
    token ids of chunk i as ids[id_starts[i]:id_starts[i + 1]].
    """
    if out.suffix != ".npz":
        raise typer.BadParameter(f"{out} does not end in .npz", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist", param_hint="--out")
    encoder, index = load_index(path, model, Splitting(splitter, chunk_tokens, overlap), 0, pooling)
    ids = [
        encoder.truncate(sequence)
        for sequence in encoder.tokenizer.ids_batch([chunk.text for chunk in index.chunks])
    ]
    np.savez(
        out,
        documents=np.array([chunk.document for chunk in index.chunks]),
        starts=np.array([chunk.start for chunk in index.chunks]),
        ends=np.array([chunk.end for chunk in index.chunks]),
        ids=np.concatenate(ids),
        id_starts=np.cumsum([0, *map(len, ids)]),
        vectors=index.vectors,
    )
    if as_json:
        print_json({"out": str(out), "chunks": len(index.chunks), "tokens": sum(map(len, ids))})
    else:
        print(f"{len(index.chunks)} chunks of {sum(map(len, ids))} tokens in {out}")


def place(hit: Hit) -> str:
    """``document:start-end`` of a hit."""
    return f"{hit.chunk.document}:{hit.chunk.start}-{hit.chunk.end}"


def one_line(text: str, width: int = 100) -> str:
    """Return a text's beginning on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
