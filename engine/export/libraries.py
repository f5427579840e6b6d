"""The libraries that scripts are written in: where their names come from, and what they have themselves."""

import ast
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ..errors import check_choice

# Modules by their names in scripts, and names by the modules that scripts take them from, in the order of
# isort. Each library adds its own.
MODULES = {"re": "re", "sys": "sys", "torch": "torch", "bm25s": "bm25s", "np": "numpy as np"}
NAMES = {
    "bisect": ("bisect_left", "bisect_right"),
    "collections": ("Counter",),
    "dataclasses": ("replace",),
    "functools": ("lru_cache",),
    "itertools": ("pairwise",),
    "math": ("log",),
    "pathlib": ("Path",),
    "typing": ("Any",),
    "unicodedata": ("normalize",),
    "sentence_transformers": ("MultiVectorEncoder", "SentenceTransformer", "SparseEncoder"),
    "sentence_transformers.sentence_transformer.modules": ("Pooling",),
    "Stemmer": ("Stemmer",),
    "transformers": ("AutoModel", "AutoTokenizer"),
}
# Packages by the modules that they hold, where the names differ.
PACKAGES = {
    "Stemmer": "PyStemmer",
    "haystack": "haystack-ai",
    "llama_index": "llama-index-core",
    "langchain_core": "langchain-core",
    "sentence_transformers": "sentence-transformers",
}


@dataclass(frozen=True)
class Library:
    """A library that scripts are written in."""

    label: str
    package: str
    tested: str  # the version that the scripts are tested with
    names: dict[str, tuple[str, ...]]  # that scripts take from it, by its modules
    native: tuple[str, ...] = ()  # retrievers that the library has itself, with the settings of ours


# To add a library, add an entry and its template: the app and the command line take names from here.
LIBRARIES = {
    "sentence-transformers": Library("sentence-transformers", "sentence-transformers", "6.2.0", {}),
    "langchain": Library(
        "LangChain",
        "langchain-core",
        "1.7.2",
        {
            "langchain_core.documents": ("BaseDocumentTransformer", "Document"),
            "langchain_core.embeddings": ("Embeddings",),
            "langchain_core.retrievers": ("BaseRetriever",),
            "langchain_core.vectorstores": ("InMemoryVectorStore",),
        },
        native=("dense", "mmr"),
    ),
    "llamaindex": Library(
        "LlamaIndex",
        "llama-index-core",
        "0.14.25",
        {
            "llama_index.core": ("Document", "VectorStoreIndex"),
            "llama_index.core.embeddings": ("BaseEmbedding",),
            "llama_index.core.retrievers": ("BaseRetriever",),
            "llama_index.core.schema": (
                "NodeRelationship",
                "NodeWithScore",
                "TextNode",
                "TransformComponent",
            ),
        },
        native=("dense",),
    ),
    "haystack": Library(
        "Haystack",
        "haystack-ai",
        "3.4.0",
        {
            "haystack": ("Document", "Pipeline", "component"),
            "haystack.components.retrievers.in_memory": ("InMemoryEmbeddingRetriever",),
            "haystack.components.writers": ("DocumentWriter",),
            "haystack.document_stores.in_memory": ("InMemoryDocumentStore",),
        },
        native=("dense",),
    ),
}


def check_library(to: str) -> None:
    """Raise `InputError` for a name that is not one of `LIBRARIES`."""
    check_choice("library", to, LIBRARIES)


def import_lines(body: str, library: Library) -> str:
    """Return the imports of the names that a script uses, in the order of isort."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    every = sorted(f"import {module}" for name, module in MODULES.items() if name in used)
    origins = NAMES | library.names
    for module in sorted(origins, key=str.lower):
        if names := [name for name in origins[module] if name in used]:
            every.append(f"from {module} import {', '.join(names)}")
    is_standard = {each: each.split()[1].partition(".")[0] in sys.stdlib_module_names for each in every}
    own, others = ([each for each in every if is_standard[each] is wanted] for wanted in (True, False))
    return "\n".join([*own, "", *others])


def packages(imports: str, library: Library) -> list[str]:
    """Return the packages that a script needs, with the versions of those that are here."""
    modules = {line.split()[1].partition(".")[0] for line in imports.splitlines() if line}
    others = modules - sys.stdlib_module_names - {"numpy", "torch"}  # which others bring along
    names = {PACKAGES.get(module, module) for module in others}
    versions = {name: library.tested if name == library.package else version_here(name) for name in names}
    return [f"{name}=={versions[name]}" if versions[name] else name for name in sorted(names)]


def version_here(name: str) -> str:
    """Return the version of a package, empty if it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
