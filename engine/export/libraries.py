"""The libraries that scripts are written in: where their names come from, and what they have themselves."""

import ast
import sys
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby

from engine.errors import InputError

# Where the names come from that scripts use; each library adds its own.
IMPORTS = {
    "re": "import re",
    "sys": "import sys",
    "torch": "import torch",
    "bm25s": "import bm25s",
    "np": "import numpy as np",
    "bisect_left": "from bisect import bisect_left",
    "bisect_right": "from bisect import bisect_right",
    "Counter": "from collections import Counter",
    "replace": "from dataclasses import replace",
    "pairwise": "from itertools import pairwise",
    "log": "from math import log",
    "Path": "from pathlib import Path",
    "normalize": "from unicodedata import normalize",
    "Any": "from typing import Any",
    "SentenceTransformer": "from sentence_transformers import SentenceTransformer",
    "Pooling": "from sentence_transformers.sentence_transformer.modules import Pooling",
    "Stemmer": "from Stemmer import Stemmer",
    "AutoModel": "from transformers import AutoModel",
    "AutoTokenizer": "from transformers import AutoTokenizer",
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
    """A library that scripts are written in.

    Attributes
    ----------
    label
        Its name for people.
    package, tested
        Its package, and the version that the scripts are tested with.
    imports
        Where its names come from.
    native
        Retrievers that the library has itself, with the settings of ours.
    """

    label: str
    package: str
    tested: str
    imports: dict[str, str]
    native: tuple[str, ...] = ()


# To add a library, add an entry and its template: the app and the command line take names from here.
LIBRARIES = {
    "sentence-transformers": Library("sentence-transformers", "sentence-transformers", "6.2.0", {}),
    "langchain": Library(
        "LangChain",
        "langchain-core",
        "1.7.2",
        {
            "BaseDocumentTransformer": "from langchain_core.documents import BaseDocumentTransformer",
            "Document": "from langchain_core.documents import Document",
            "Embeddings": "from langchain_core.embeddings import Embeddings",
            "BaseRetriever": "from langchain_core.retrievers import BaseRetriever",
            "InMemoryVectorStore": "from langchain_core.vectorstores import InMemoryVectorStore",
        },
        native=("dense", "mmr"),
    ),
    "llamaindex": Library(
        "LlamaIndex",
        "llama-index-core",
        "0.14.25",
        {
            "Document": "from llama_index.core import Document",
            "VectorStoreIndex": "from llama_index.core import VectorStoreIndex",
            "BaseEmbedding": "from llama_index.core.embeddings import BaseEmbedding",
            "BaseRetriever": "from llama_index.core.retrievers import BaseRetriever",
            "NodeRelationship": "from llama_index.core.schema import NodeRelationship",
            "NodeWithScore": "from llama_index.core.schema import NodeWithScore",
            "TextNode": "from llama_index.core.schema import TextNode",
            "TransformComponent": "from llama_index.core.schema import TransformComponent",
        },
        native=("dense",),
    ),
    "haystack": Library(
        "Haystack",
        "haystack-ai",
        "3.4.0",
        {
            "Document": "from haystack import Document",
            "Pipeline": "from haystack import Pipeline",
            "component": "from haystack import component",
            "InMemoryEmbeddingRetriever": (
                "from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever"
            ),
            "DocumentWriter": "from haystack.components.writers import DocumentWriter",
            "InMemoryDocumentStore": "from haystack.document_stores.in_memory import InMemoryDocumentStore",
        },
        native=("dense",),
    ),
}


def check_library(to: str) -> None:
    """Raise `InputError` for a name that is not one of `LIBRARIES`."""
    if to not in LIBRARIES:
        raise InputError(f"there is no library {to!r}: choose one of {', '.join(LIBRARIES)}")


def import_lines(body: str, origins: dict[str, str]) -> str:
    """Return the imports of the names that a script uses, in the order of isort."""
    names = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = [origins[name] for name in origins if name in names]
    plain = sorted(line for line in lines if line.startswith("import "))
    by_module = sorted((line for line in lines if line.startswith("from ")), key=module_of)
    merged = [
        f"from {module} import {', '.join(sorted((line.split(' import ')[1] for line in group), key=kind))}"
        for module, group in groupby(by_module, key=lambda line: line.split()[1])
    ]
    every = plain + merged
    own, others = ([each for each in every if is_standard(each) is wanted] for wanted in (True, False))
    return "\n".join([*own, "", *others])


def module_of(line: str) -> str:
    """Return the module of an import for sorting, without regard to capitals."""
    return line.split()[1].lower()


def kind(name: str) -> tuple[bool, str]:
    """Return the place of an imported name for sorting: classes first."""
    return name[0].islower(), name


def is_standard(line: str) -> bool:
    """Whether an import is of the standard library."""
    return line.split()[1].partition(".")[0] in sys.stdlib_module_names


def packages(imports: str, library: Library) -> list[str]:
    """Return the packages that a script needs, with their versions here."""
    modules = {line.split()[1].partition(".")[0] for line in imports.splitlines() if line}
    others = modules - sys.stdlib_module_names - {"numpy", "torch"}  # which others bring along
    names = {PACKAGES.get(module, module) for module in others}
    tested = {library.package: library.tested}
    return [f"{name}=={tested.get(name) or version(name).partition('+')[0]}" for name in sorted(names)]
