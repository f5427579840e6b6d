"""The command that writes settings as a script in another library: ``python -m engine export``."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.loading import load_encoder
from engine.cli.main import app, print_json
from engine.cli.options import (
    EmbeddingOptions,
    JsonOption,
    ParentOption,
    RetrievalOptions,
    check_folder_of,
    grouped,
    write_errors,
)
from engine.cli.progress import say
from engine.evaluation.grid import Cell
from engine.export.libraries import LIBRARIES, check_library
from engine.export.script import export
from engine.models.precision import chosen_precision


@app.command(name="export")
@grouped
def export_command(
    embedding: EmbeddingOptions,
    retrieval: RetrievalOptions,
    to: Annotated[str, typer.Option(help=f"The library: {', '.join(LIBRARIES)}.")],
    parent_tokens: ParentOption = 0,
    k: Annotated[int, typer.Option(help="How many passages.")] = 5,
    out: Annotated[
        Path | None, typer.Option(help="The file to write.", show_default="standard output")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a Python script that finds the same passages with another library.

    It cuts documents into the same chunks; settings that it does not carry over are named on standard error.
    """
    check_library(to)
    if out is not None:
        check_folder_of(out, "--out")
    splitting = embedding.splitting
    cell = Cell(
        splitting.method,
        splitting.chunk_tokens,
        splitting.overlap,
        embedding.model,
        None,
        embedding.pooling,
        retrieval.retriever,
        k,
        embedding.prompts,
        chosen_precision(embedding.precision),
    )
    exported = export(cell, load_encoder(embedding.model), to, parent_tokens)
    if out is not None:
        with write_errors(out):
            out.write_text(exported.script, encoding="utf-8")
    if as_json:
        place = {"script": exported.script} if out is None else {"out": str(out)}
        print_json({"to": to, **place, "left_out": list(exported.left_out)})
        return
    for words in exported.left_out:
        say(f"not carried over: {words}")
    if out is None:
        print(exported.script, end="")
    else:
        print(f"{LIBRARIES[to].label} script in {out}")
