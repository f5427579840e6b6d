"""The commands that write for other libraries: ``python -m engine export`` and ``export-reader``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..export.libraries import LIBRARIES, check_library
from ..export.reader_folder import export_reader
from ..export.script import export
from ..models.precision import chosen_precision
from ..models.reader import Reader
from ..progress import say
from ..settings import SWEPT, Configuration, default
from .loading import check_second_models, load_encoder, load_second_model, second_models
from .main import app
from .options import ELSEWHERE, JsonOption, SearchOptions, check_folder_of, grouped, write_errors
from .printing import print_json


@app.command(name="export", rich_help_panel=ELSEWHERE)
@grouped
def export_command(
    search: SearchOptions,
    to: Annotated[str, typer.Option(help=f"The library: {', '.join(LIBRARIES)}.")],
    retriever: str = default("retriever"),
    k: int = Configuration.k,
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
    values = {key: getattr(search, key) for key in SWEPT if hasattr(search, key)}
    values |= {"retriever": retriever, "k": k, "precision": chosen_precision(search.precision)}
    configuration = Configuration(**values)
    check_second_models([retriever], search)
    named = second_models([retriever], search)
    loaded: dict[str, Any] = {kind: load_second_model(kind, source) for kind, source in named.items()}
    encoder = replace(load_encoder(search.model), **loaded)
    exported = export(configuration, encoder, to, search.parent_tokens)
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


@app.command(name="export-reader", rich_help_panel=ELSEWHERE)
@grouped
def export_reader_command(
    folder: Annotated[Path, typer.Argument(help="The folder to write, made if it is missing.")],
    as_json: JsonOption = False,
) -> None:
    """Write the reader as a folder of transformers, with a script that finds the same words.

    The folder loads in AutoModelForQuestionAnswering and AutoTokenizer.
    """
    with write_errors(folder):
        export_reader(Reader.load(), folder)
    if as_json:
        print_json({"out": str(folder)})
    else:
        print(f"Reader in {folder}: python {folder / 'answer.py'} PASSAGE.txt QUESTION")
