"""The command that keeps an index on the disk: ``python -m engine index``."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.main import app, print_json
from engine.cli.models import load_embedding_model
from engine.cli.options import EmbeddingOptions, JsonOption, ParentOption, exit_on_error, grouped
from engine.cli.progress import progress, say
from engine.documents.unread_text import limit_warning
from engine.models.precision import chosen_precision
from engine.retrieval.embedding_model import as_searched, text_limit
from engine.retrieval.vector_cache import VectorCache
from engine.storage.index_folder import IndexSettings
from engine.storage.index_update import update_index
from engine.wording import counted


@app.command(name="index")
@exit_on_error
@grouped
def index_command(
    corpus: Annotated[Path, typer.Argument(help="A file or a folder, as for a corpus.")],
    out: Annotated[Path, typer.Option(help="The folder of the index, outside of the corpus.")],
    embedding: EmbeddingOptions,
    parent_tokens: ParentOption = 0,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Tokens of a chunk that the model reads.", show_default="the model's own limit"),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Read and embed everything anew, whatever the folder holds.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Index documents in a folder, which `search` and `ask` read with --index.

    If it holds an index already, only new and changed files are read and embedded, and what is gone from the
    corpus leaves it. The folder holds a whole index at any time, also where this command is stopped.
    """
    settings = IndexSettings(
        embedding.model,
        embedding.splitting,
        parent_tokens,
        embedding.pooling,
        embedding.prompts,
        chosen_precision(embedding.precision),
        max_tokens,
    )
    model = as_searched(load_embedding_model(embedding.model), embedding.prompts, embedding.precision)
    cache = None if embedding.cache is None else VectorCache(embedding.cache)
    update = update_index(corpus, out, model, settings, rebuild, cache, progress("Embedding chunks"), say)
    chunks = update.stored.index.chunks
    if warning := limit_warning(chunks, text_limit(model, max_tokens)):
        say(f"warning: {warning}")
    if cache is not None and cache.notice:
        say(f"warning: {cache.notice}")
    if as_json:
        counts = {name: getattr(update, name) for name in ("new", "changed", "deleted", "unchanged")}
        print_json(
            {"out": str(out), "files": counts, "chunks": len(chunks), "embedded": update.embedded_chunks}
        )
        return
    print(f"{counted(len(chunks), 'chunk')} in {out}, {update.embedded_chunks:,} embedded now")
    print(f"files: {update.words}")
