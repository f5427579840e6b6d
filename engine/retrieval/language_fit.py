"""Whether an embedding model was trained on the language of documents and questions."""

import re
from collections.abc import Collection

from ..documents.language import ENGLISH, LANGUAGES, detected
from ..wording import model_name, some_of
from .embedding_model import Model

# Of the models that read many languages, small ones that the engine runs, by their ids on the Hub.
MANY_LANGUAGES = (
    "intfloat/multilingual-e5-small",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "BAAI/bge-m3",
)
LARGE_VOCABULARY = 100_000  # tokens: vocabularies of many languages have more, of English up to 50,368
OTHER_LANGUAGE = re.compile(
    "multilingual|xlm|labse|[-_](zh|de|fr|es|it|ja|ko|ru|nl|pl|ar)\\b|"
    + "|".join(name for name in LANGUAGES if name != ENGLISH)
)


def is_for_english(model: Model) -> bool:
    """Whether a model was trained only on English, as far as its vocabulary and its name tell."""
    encoder = model.as_encoder
    is_small = encoder is not None and encoder.config.vocab_size < LARGE_VOCABULARY
    return is_small and OTHER_LANGUAGE.search(model.name.lower()) is None


def language_note(
    of_documents: Collection[str], model: Model, question: str = "", with_reader: bool = False
) -> str:
    """Say which of the languages a model, or the reader too, was not trained on; empty where it was."""
    found = dict.fromkeys((*of_documents, detected(question)))
    languages = [LANGUAGES[each].label for each in found if each not in ("", ENGLISH)]
    if not languages or not is_for_english(model):
        return ""
    *others, last = (name.partition("/")[2] for name in MANY_LANGUAGES)
    trained = "and the reader were" if with_reader else "was"
    what = "documents or the question are" if question else "documents are"
    read = "compared badly and only quoted" if with_reader else "compared badly"
    return (
        f"{model_name(model.name)} {trained} trained on English, and {what} in {some_of(languages, 3)}: "
        f"they are {read}, and shared words find more. {', '.join(others)} and {last} read many languages."
    )
