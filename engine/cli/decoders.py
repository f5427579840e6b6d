"""The commands about decoders that the engine knows by name: list them, and download one."""

from typing import Annotated

import typer

from ..generation.listed_decoders import ListedDecoder, listed_decoders, read_rate
from ..progress import say
from ..weights.catalog import DEFAULT_DECODER
from ..weights.fetch import is_cached, model_path
from .loading import load_decoder, require_accepted
from .main import app
from .options import MODELS, JsonOption, grouped
from .printing import download_progress, print_json, print_table


@app.command(rich_help_panel=MODELS)
@grouped
def models(as_json: JsonOption = False) -> None:
    """List the decoders that are known by name: size, licence, memory and speed on this machine.

    Speeds are estimated by that of the default decoder, where it is on this machine.
    """
    rate = read_rate(load_decoder(DEFAULT_DECODER)) if is_cached(DEFAULT_DECODER) else None
    decoders = listed_decoders(rate)
    if as_json:
        print_json({"models": [decoder_json(decoder) for decoder in decoders]})
        return
    rows = []
    for each in decoders:
        speed = "" if each.tokens_per_s is None else f"~{each.tokens_per_s:.1f}"
        fits = {True: "yes", False: "no", None: "?"}[each.fits]
        terms = ", to be accepted" if each.model.licence.terms else ""
        size, memory = f"{each.model.size / 1e6:.0f} MB", f"{each.memory_bytes / 1e9:.1f} GB"
        here = "yes" if each.is_cached else ""
        rows.append([each.model.name, size, memory, fits, speed, here, each.model.licence.name + terms])
    print_table(["name", "file", "memory", "fits", "tokens/s", "here", "licence"], rows)
    print("\nMemory and tokens/s are estimated; `download NAME` downloads one.")


def decoder_json(decoder: ListedDecoder) -> dict[str, object]:
    """Return a decoder of the list for the JSON output."""
    model, speed = decoder.model, decoder.tokens_per_s
    return {
        "name": model.name,
        "bytes": model.size,
        "memory_bytes": decoder.memory_bytes,
        "fits": decoder.fits,
        "estimated_tokens_per_s": None if speed is None else round(speed, 2),
        "downloaded": decoder.is_cached,
        "licence": model.licence.name,
        "licence_url": model.licence.url,
        "licence_to_be_accepted": model.licence.terms,
        "hub_id": model.hub_id,
        "revision": model.hub_revision,
        "sha256": model.files[0].sha256,
    }


@app.command(rich_help_panel=MODELS)
@grouped
def download(
    name: Annotated[str, typer.Argument(help="A name of `models`, or a Hugging Face id like owner/name.")],
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="You accept the model's terms, where it has some.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Download a model into the cache, or the rest of it where an earlier download ended."""
    require_accepted(name, accept_licence)
    for decoder in listed_decoders():
        if decoder.model.name == name and decoder.fits is False:
            say(f"warning: {name} needs about {decoder.memory_bytes / 1e9:.1f} GB of memory; fewer are free")
    with download_progress(name) as show:
        path = model_path(name, show)
    if as_json:
        print_json({"name": name, "path": str(path)})
    else:
        print(path)
