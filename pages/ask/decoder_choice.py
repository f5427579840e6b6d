"""The choice of the built-in decoder: those known by name, what they take on this machine, their download."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from engine.errors import GlassboxError
from engine.generation.listed_decoders import ListedDecoder, listed_decoders
from engine.weights.download import DownloadStoppedError, free_disk_space
from engine.weights.fetch import bytes_here, cache_folder, is_here, model_path
from engine.weights.memory import available_memory
from engine.weights.transfer import Transfer
from engine.wording import model_name, readable_bytes
from ui.jobs import Job, current_job, follow_progress, start_job
from ui.models import choose_decoder, compile_decoders, decoder_name, read_rate_here
from ui.server_settings import DECODER, is_public
from ui.tables import show_table
from ui.text import escape_markdown, show_error
from ui.widgets import kept

TO_BE_ACCEPTED = ", to be accepted"
OTHER = "Another file, folder or id…"
LIST_COLUMNS = {
    "File": st.column_config.NumberColumn(format="%.0f MB", help="Downloaded once."),
    "Memory here": st.column_config.NumberColumn(
        format="%.1f GB", help="Of the weights and of the cache of a long prompt, estimated."
    ),
    "Tokens/s": st.column_config.NumberColumn(
        format="about %.1f",
        help="Estimated: for a token all weights are read once, so the rate at which the model in use reads "
        "its own, measured on this machine, is divided by the bytes of the other's.",
    ),
    "Licence": st.column_config.TextColumn(
        help="“To be accepted”: it has terms of use, which you accept before the download."
    ),
}


def decoder_picker() -> None:
    """Draw the choice of the decoder, but for a public server's; download a chosen one, and load it."""
    if is_public():
        st.caption(f"Built-in model: {escape_markdown(model_name(DECODER))}")
        return
    listed = {decoder.model.name: decoder for decoder in listed_decoders()}
    names = [*dict.fromkeys([DECODER, *listed]), OTHER]
    name = st.selectbox(
        "Built-in model",
        names,
        format_func=lambda each: option_words(each, listed),
        **kept("wanted_decoder"),
        help=f"The default is {DECODER}. The last choice takes a model of your own.",
    )
    if name == OTHER:
        name = st.text_input(
            "File, folder or Hugging Face id",
            **kept("own_decoder"),
            placeholder="owner/name",
            help="The path of a .gguf file, of a folder with config.json, model.safetensors and "
            "tokenizer.json, or a Hugging Face id (owner/name), which is downloaded.",
        )
    name = (name or "").strip() or decoder_name()
    if name != decoder_name() and is_here(name):
        use(name)
    if name in listed:
        show_facts(listed[name])
    elif name == decoder_name():
        st.caption("In use.")
    if (download := current_job("download")) is not None and not download.done:
        stop_help = "Ends the download. What is there stays, and the next try goes on with it."
        follow_progress(download, key="download", stop_help=stop_help, is_narrow=True)
    if name != decoder_name() and not is_here(name):
        offer_download(name, listed.get(name))
        st.caption(f"{escape_markdown(decoder_name())} stays in use until then.")
    if st.button("Compare models", icon=":material/table_rows:", type="tertiary", key="compare-decoders"):
        show_list()


def option_words(name: str, listed: Mapping[str, ListedDecoder]) -> str:
    """``"Llama-3.2-1B · 808 MB"``, or that it is here; the ending that all have would not fit."""
    if name not in listed:
        return name
    size = f"{listed[name].model.size / 1e6:,.0f} MB"
    short = name.removesuffix("-Instruct").removesuffix("-it")
    return f"{short} · {'here' if listed[name].is_cached else size}"


def show_facts(decoder: ListedDecoder) -> None:
    """Say what a decoder takes on this machine, and under which licence it is."""
    licence, model = decoder.model.licence, decoder.model
    if model.name == decoder_name():
        parts = ["In use"]
    else:
        compile_decoders()  # which decides how weights are stored
        parts = [f"About {readable_bytes(decoder.memory_bytes)} of memory: {fit_words(decoder)}"]
        [speed] = [each.tokens_per_s or 0.0 for each in timed_decoders() if each.model is model]
        words = f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"  # more digits than it is worth
        parts.append(f"about {words} tokens/s here (estimated)")
    parts.append(f"licence [{licence.name}]({licence.url}){TO_BE_ACCEPTED * licence.terms}")
    st.caption(". ".join(part[0].upper() + part[1:] for part in parts) + ".")


def fit_words(decoder: ListedDecoder) -> str:
    """``"fits in the 12.3 GB free"``."""
    free = available_memory()
    if free is None:
        return "how much is free is unknown"
    return f"{'fits' if decoder.fits else '**does not fit**'} in the {readable_bytes(free)} free"


def timed_decoders() -> list[ListedDecoder]:
    """Return the known decoders with their estimated speed, by that of the decoder in use."""
    return listed_decoders(read_rate_here(decoder_name()))


@st.dialog("Models known by name", width="large")
def show_list() -> None:
    """Draw the known decoders as a table: size, licence, memory and speed on this machine."""
    decoders, free = timed_decoders(), available_memory()
    if free is not None:
        st.caption(
            f"{readable_bytes(free)} of memory and {readable_bytes(free_disk_space(cache_folder()))} of disk "
            "space are free."
        )
    show_table(
        [
            {
                "Model": each.model.name,
                "File": each.model.size / 1e6,
                "Memory here": each.memory_bytes / 1e9,
                "Fits": {True: "yes", False: "no", None: None}[each.fits],
                "Tokens/s": each.tokens_per_s,
                "Licence": f"{each.model.licence.name}{TO_BE_ACCEPTED * each.model.licence.terms}",
                "Here": "in use" if each.model.name == decoder_name() else "yes" if each.is_cached else None,
            }
            for each in decoders
        ],
        alt="Models known by name, with size, memory, speed and licence",
        columns=LIST_COLUMNS,
    )
    licences = {each.model.licence.name: each.model.licence.url for each in decoders}
    st.caption("Licences: " + " · ".join(f"[{name}]({url})" for name, url in licences.items()))


def offer_download(name: str, listed: ListedDecoder | None) -> None:
    """Draw a button that downloads a model, or the reasons why not, and how the last try ended."""
    last = current_job("download")
    is_running = last is not None and not last.done
    if last is not None and last.request == name:
        if is_running:
            return
        try:
            last.result()
        except DownloadStoppedError:
            st.caption("Stopped. What is there stays, and the next try goes on with it.")
        except GlassboxError as error:
            show_error(f"{error}.")
    label, hindrance, accepted = "Download from the Hugging Face Hub", "", True
    if listed is not None:
        model, n_here = listed.model, bytes_here(name)
        left = f"{(model.size - n_here) / 1e6:,.0f} MB"
        label = f"Go on ({left} left)" if n_here else f"Download {left}"
        free = free_disk_space(cache_folder())
        if listed.fits is False:
            hindrance = "It does not fit in the memory that is free: choose a smaller one, or close programs."
        elif model.size - n_here > free:
            hindrance = f"The disk has {readable_bytes(free)} free: free some space, or set GLASSBOX_CACHE."
        elif model.licence.terms:
            accepted = st.checkbox(
                f"I accept the terms: [{model.licence.name}]({model.licence.url})", key=f"terms-{name}"
            )
    if last is not None and is_running:
        hindrance = f"{escape_markdown(last.request)} is being downloaded: stop that first."
    if hindrance:
        st.warning(hindrance, icon=":material/block:")
    st.button(
        label,
        key="start-download",
        icon=":material/download:",
        type="primary",
        width="stretch",
        disabled=bool(hindrance) or not accepted,
        on_click=start_download,
        args=(name,),
    )


def start_download(name: str) -> None:
    """Start to download a model in the background; other pages show that it goes on."""
    transfer = Transfer()

    def work(job: Job[Path]) -> Path:
        def report(done: int, total: int) -> None:
            transfer(done, total)
            job.share, job.words = transfer.share, f"Downloading {escape_markdown(name)}: {transfer.words}"

        return model_path(name, report, lambda: job.stopped)

    start_job("download", work, request=name, page="ask", computes=False)


def use(name: str) -> None:
    """Change to a decoder that is on this machine; say why if that fails, and offer to try again."""
    state = st.session_state
    if name != state.get("refused_decoder", ("", ""))[0]:
        try:
            choose_decoder(name)
            return
        except GlassboxError as error:
            state["refused_decoder"] = (name, str(error))
    show_error(f"{state['refused_decoder'][1]}. {decoder_name()} stays in use.")
    st.button("Try again", key="retry_decoder", on_click=state.pop, args=("refused_decoder",))
