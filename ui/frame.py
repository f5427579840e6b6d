"""What stands around every page: sections of pages, each under its title, and the errors of all."""

from functools import partial
from pathlib import Path
from urllib.parse import quote

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import GlassboxError
from engine.memory import give_back_soon
from ui.address import open_address, show_address, show_missing_documents
from ui.colours import BLUE, stylesheet
from ui.documents import NoDocumentError
from ui.embedding import NotEmbeddedError, show_embedding
from ui.jobs import show_page_works
from ui.server_settings import bound_uploads
from ui.session_work import keep_work, open_kept_work
from ui.setting_values import keep_set
from ui.tables import table_style
from ui.text import DIRECTION_STYLE, escape_markdown, show_error
from ui.work_dialog import show_keeping, show_work_dialog

FRONT_PAGE = "ask"  # whose address is empty
FOLDERS: dict[str, str] = {}  # of the pages, by their addresses


def page(folder: str, title: str, icon: str, intro: str, default: bool = False) -> partial[st.Page]:
    """Return what makes the page of a folder, anew in each run; its address is the folder's name."""
    address = folder.split("/")[-1]
    FOLDERS[address] = folder
    return partial(
        st.Page,
        f"pages/{folder}/page.py",
        title=title,
        icon=f":material/{icon}:",
        url_path=address,
        help=intro,
        default=default,
    )


ASK = page(
    "ask",
    "Ask your documents",
    "forum",
    "The words of your documents that answer a question, and how sure that is. Every step is open below: "
    "passages, scores and times.",
    default=True,
)
DOCUMENTS = page(
    "documents",
    "Documents and chunks",
    "topic",
    "See how each file is cut before it is indexed: its text, where its chunks begin and end, and the text "
    "that the model would never read.",
)
SETTINGS = page(
    "improve/settings",
    "Best settings",
    "science",
    "Which chunk size, which pooling, which retriever? Measure every combination on questions with known "
    "answers, see which differences are more than chance, and use the best settings with one click.",
)
DIAGNOSE = page(
    "improve/diagnose",
    "Why wasn't it found?",
    "troubleshoot",
    "Give a question and the passage that answers it. See which link between the file and the answer broke, "
    "and a cure that was tried: the answers before and after, and what it does to other questions.",
)
POOLINGS = page(
    "improve/poolings",
    "Pooling compared",
    "merge",
    "A model computes a vector for every token; a search needs one for the whole text. See what each way to "
    "combine them does to sentences, to a question and to what is found, and what a similarity is made of.",
)
TUNING = page(
    "improve/tuning",
    "Tune the search",
    "model_training",
    "Train the search on your labelled questions. The original is kept unless the gain is more than noise.",
)
QUESTIONS = page(
    "improve/questions",
    "Questions",
    "quiz",
    "Questions with known answers decide between settings. Label your own here, or keep drafts made from "
    "your documents.",
)
ANSWER = page(
    "inside/answer",
    "Inside the answer",
    "account_tree",
    "Take an answer apart: how the reader scored its words, and what they rest on; of a text by a language "
    "model, every token and its alternatives and the passages behind each "
    "sentence.",
)
CHUNK = page(
    "inside/chunk",
    "Inside the model",
    "visibility",
    "Follow a text through the real model: every tensor of every layer, the attention between tokens, and "
    "the way a word's vector changes from layer to layer.",
)
RERANKER = page(
    "inside/reranker",
    "Inside the reranker",
    "compare_arrows",
    "The reader or a cross-encoder reads question and passage together and gives one score. See how that "
    "reorders a search, and which words the score rests on.",
)
MATCHES = page(
    "inside/matches",
    "Words and tokens matched",
    "join_inner",
    "A learned sparse model adds words to question and passage; late interaction finds the best match of "
    "each token. See which words and tokens carry a match.",
)
VERIFY = page(
    "inside/verify",
    "Verify",
    "fact_check",
    "Check on any text that every stage of the hand-written model equals the official one.",
)
BROKEN = page(
    "inside/broken",
    "Break it",
    "build",
    "Take a part out of the model, or put one in wrongly. See where the damage begins and how much of the "
    "search survives. Several faults can be combined.",
)
LATE = page(
    "inside/late",
    "Late chunking",
    "segment",
    "Ordinarily each chunk is read by itself, and in “it was finished in 1891” the model cannot tell what "
    "“it” is. Late chunking reads a long stretch of text first, and then pools each chunk from its tokens.",
)
POSITIONS = page(
    "inside/positions",
    "Positions",
    "format_list_numbered",
    "Attention by itself ignores the order of tokens. Each scheme changes the score between two equal "
    "tokens by their positions: 0 is the score of a token with itself, and a change of −0.69 halves the "
    "weight.",
)
CACHE = page(
    "inside/cache",
    "KV cache",
    "memory",
    "The attention of a new token needs the keys and values of all tokens before it. With the cache they "
    "are kept; without it the model reads the whole text again for every token it writes.",
)
WORKED = page(
    "learn/worked",
    "A transformer by hand",
    "calculate",
    "Take the transformer of 2017 apart by hand: a worked example in which every number can be changed.",
)
DECODER = page(
    "learn/decoder",
    "A decoder from scratch",
    "school",
    "Train a small decoder on the chosen documents and watch it learn, with gradients written out in NumPy.",
)
SECTIONS = {
    "": [ASK, DOCUMENTS],
    "Improve": [SETTINGS, DIAGNOSE, POOLINGS, TUNING, QUESTIONS],
    "Inside": [ANSWER, CHUNK, RERANKER, MATCHES, VERIFY, BROKEN, LATE, POSITIONS, CACHE],
    "Learn": [WORKED, DECODER],
}
# The page, by its address, that each former address opens, and the widgets that are set on it.
FORMER: dict[str, tuple[str, dict[str, str]]] = {
    "experiments": ("settings", {}),
    "pooling": ("poolings", {}),
    "generate": ("answer", {}),
    "attention": ("chunk", {}),
    "verification": ("verify", {}),
    "lab": ("worked", {}),
    "truncation": ("documents", {"documents-tab": "Never read"}),
}
# A line for the address of each page that was removed.
REMOVED = {
    "translator": "“Learn to translate” is no longer part of Glassbox. The encoder-decoder of 2017 is shown "
    "in “A transformer by hand”."
}


STYLE = f"<style>{stylesheet(Path(__file__).with_name('frame.css'))}{DIRECTION_STYLE}{table_style()}</style>"


def mark_section(title: str) -> str:
    """Return the style that marks the section of a page in the menu, by the title of the page."""
    first, *sections = SECTIONS.values()
    for number, pages in enumerate(sections, start=len(first) + 1):
        if title in [each.keywords["title"] for each in pages]:
            entry = f"[data-testid=stTopNav] > :nth-child({number}) [data-testid=stTopNavSection]"
            # the focus, which has a shadow of its own, stays seen
            line = f"{entry}:not(:focus-visible) {{ border-radius: 0; box-shadow: 0 2px {BLUE}; }}"
            return f"<style>{entry} {{ font-weight: 600; }} {line}</style>"
    return ""


def redirect(target: st.Page, widgets: dict[str, str]) -> None:
    """Open the page that a former address leads to, and set widgets on it."""
    st.session_state.update(widgets)
    st.switch_page(target)


def open_address_again() -> None:
    """Open the address of a server's first visitor a second time, unless it is that of the first page.

    Because of the folder pages/, Streamlit looks for the page of that address among the files there, and
    reports that there is none. From the first `st.navigation` on, it looks among the pages given there.
    """
    context = get_script_run_ctx()
    if PagesManager.uses_pages_directory and context and (name := context.pages_manager.intended_page_name):
        PagesManager.uses_pages_directory = False
        script = f"<script>location.replace('{quote(name)}' + location.search)</script>"
        st.html(script, unsafe_allow_javascript=True)
        st.stop()


def main() -> None:
    """Draw the chosen page under its title, and below it the error that ended it, if any."""
    bound_uploads()
    keep_set()
    open_address_again()
    sections = {name: [made() for made in pages] for name, pages in SECTIONS.items()}
    by_address = {each.url_path: each for pages in sections.values() for each in pages}
    former = []
    for address, (name, widgets) in FORMER.items():
        target = by_address[name]
        leads = partial(redirect, target, widgets)
        former.append(st.Page(leads, title=target.title, url_path=address, visibility="hidden"))
    former += [
        st.Page(lambda: None, title="Page removed", url_path=address, visibility="hidden", help=line)
        for address, line in REMOVED.items()
    ]
    chosen = st.navigation(sections | {"": [*sections[""], *former]}, position="top")
    st.set_page_config(
        page_title=f"{chosen.title} · Glassbox", page_icon=":material/deployed_code:", layout="wide"
    )
    st.html(STYLE + mark_section(chosen.title))
    open_kept_work()
    open_address(chosen.url_path)
    keep_work()  # also what a run that was interrupted has changed
    with st.sidebar:
        st.markdown("### :material/deployed_code: Glassbox")
        buttons = show_keeping()
        show_page_works(chosen.url_path or FRONT_PAGE)
    st.title(chosen.title)
    st.write(chosen.help)
    show_missing_documents()
    try:
        chosen.run()
    except NoDocumentError as error:
        st.info(escape_markdown(str(error)))
    except NotEmbeddedError as error:
        show_embedding(error.wanted, FOLDERS[chosen.url_path or FRONT_PAGE])
    except GlassboxError as error:
        show_error(error)
    keep_work()
    show_address(chosen.url_path, buttons)  # at the end, as the run may have changed what is seen
    show_work_dialog()
    give_back_soon()
