"""The command that writes an index to a folder: ``python -m engine index``."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..documents.splitters import check_splitting
from ..documents.truncation import limit_warning
from ..errors import InputError
from ..models.precision import chosen_precision
from ..progress import progress, say
from ..retrieval.index_kinds import INDEX_KINDS
from ..retrieval.stored.index_folder import IndexSettings, StoredIndex, kept_settings
from ..retrieval.stored.index_update import check_outside, save_given, update_index
from ..retrieval.stored.milvus_store import IN_FOLDER, PREFIX, TOKEN, milvus_uri
from ..retrieval.stored.ray_shards import LOCAL, Cluster
from ..retrieval.vector_cache import VectorCache
from ..retrieval.vector_files import read_index
from ..retrieval.vector_rows import READERS
from ..settings import default
from ..weights.catalog import DEFAULT_SPARSE
from ..wording import beginning, counted
from .loading import load_search_model, reading_json, warn_of
from .main import SHOWN, app
from .options import EmbeddingOptions, JsonOption, grouped
from .printing import page_progress, place, print_json

SHOWN_LOST = 5


@app.command(name="index")
@grouped
def index_command(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="A file or a folder, as for a corpus; or chunks with vectors, .npz as `embed` writes it or "
            ".parquet."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the index, outside of the corpus.")],
    embedding: EmbeddingOptions,
    parent_tokens: int = default("parent_tokens"),
    index_kind: str = default("index_kind"),
    store: Annotated[
        str | None,
        typer.Option(
            help=f"Where the vectors are: {IN_FOLDER}, {PREFIX}FILE.db (milvus-lite), or "
            f"{PREFIX}http://host:19530, a server or cluster of Milvus, whose token is in {TOKEN}.",
            show_default="where they are; in the folder at first",
        ),
    ] = None,
    sparse: Annotated[
        str,
        typer.Option(
            help="A learned sparse model whose inverted index is kept too, such as "
            f"{DEFAULT_SPARSE}: a known name, a folder or a Hugging Face id.",
            show_default="the one of the folder, none at first",
        ),
    ] = "",
    ray: Annotated[
        str | None,
        typer.Option(
            help="Have workers of Ray read and embed: the address of a cluster, or "
            f"{LOCAL} for this machine.",
            show_default="this process does",
        ),
    ] = None,
    ray_workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of Ray, each with one core.", show_default="one a core")
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
    if ray is None and ray_workers is not None:
        raise InputError(f"--ray-workers {ray_workers} is given without --ray: add --ray {LOCAL}")
    if ray is not None and embedding.cache is not None:
        raise InputError("workers of Ray do not use a cache: leave out --cache, or --ray")
    check_splitting(embedding.splitting, 0, parent_tokens)
    check_outside(corpus, out)
    if store not in (None, IN_FOLDER):
        milvus_uri(store)  # which raises for one that is none
    sparse = sparse or ((kept := kept_settings(out)) and kept.sparse) or ""
    settings = IndexSettings(
        embedding.model,
        embedding.splitting,
        parent_tokens,
        embedding.pooling,
        embedding.prompts,
        chosen_precision(embedding.precision),
        embedding.max_tokens,
        index_kind,
        store,
        sparse,
    )
    model = load_search_model(embedding, {"sparse": sparse} if sparse else {})
    if corpus.suffix.lower() in READERS:
        say(f"Reading {corpus}")
        given = read_index(corpus, model, embedding.pooling)
        stored = save_given(out, given, str(corpus.resolve()), model, settings, say)
        if as_json:
            print_json({"out": str(out), "chunks": len(given.chunks), "index": choice_json(stored)})
        else:
            print(f"{counted(len(given.chunks), 'chunk')} in {out}, with the vectors of {corpus}")
            print_choice(stored)
        return
    cache = None if embedding.cache is None else VectorCache(embedding.cache)
    cluster = None if ray is None else Cluster(ray, partial(load_search_model, embedding), ray_workers)
    try:
        label = "Embedding chunks" if cluster is None else "Embedding files"
        with page_progress() as on_page, progress(label) as show:
            update = update_index(corpus, out, model, settings, cluster or cache, rebuild, show, say, on_page)
    except KeyboardInterrupt:
        say("stopped: what is embedded is kept, and the same command goes on from there")
        raise
    chunks = update.stored.index.chunks
    warn_of(update.stored.documents, update.failures)
    if warning := limit_warning(chunks, model.text_limit(embedding.max_tokens)):
        say(f"warning: {warning}")
    if cache is not None and cache.notice:
        say(f"warning: {cache.notice}")
    if as_json:
        counts = {name: getattr(update, name) for name in ("new", "changed", "deleted", "unchanged")}
        content = {
            "out": str(out),
            "files": counts,
            "chunks": len(chunks),
            "embedded": update.embedded_chunks,
            **reading_json(update.stored.documents, update.failures),
            "index": choice_json(update.stored),
        }
        print_json(content)
        return
    print(f"{counted(len(chunks), 'chunk')} in {out}, {update.embedded_chunks:,} embedded now")
    print(f"files: {update.words}")
    print_choice(update.stored)


def print_choice(stored: StoredIndex) -> None:
    """Print the kind of an index, why it is used, and what it loses."""
    choice, chunks = stored.choice, stored.index.chunks
    print(f"index: {choice.reason}")
    for each in choice.measured:
        print(f"  {each.words}")
    for each in choice.measured[-1:]:
        if each.lost:
            print(f"What {INDEX_KINDS[each.kind].label} lost, {len(each.lost):,} in all:")
        for one in each.lost[:SHOWN_LOST]:
            print(f"  {place(chunks[one.row])}, number {one.rank} for {place(chunks[one.query])}")
            print(f"     {beginning(chunks[one.row].text, SHOWN)}")


def choice_json(stored: StoredIndex) -> dict[str, Any]:
    """Return what `print_choice` says for the JSON output."""
    chunks, found = stored.index.chunks, asdict(stored.choice)
    for measured in found["measured"]:
        measured["lost"] = [
            {"searched": place(chunks[one["query"]]), "lost": place(chunks[one["row"]]), "rank": one["rank"]}
            for one in measured["lost"]
        ]
    return found
