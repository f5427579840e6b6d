"""PyTorch and its libraries, imported where a test first uses them: without them, it is skipped."""

import pytest


class Library:
    """A module, by its dotted name, that may be missing."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        if name.startswith("_"):  # pytest looks for some in all that a file holds
            raise AttributeError(name)
        return getattr(pytest.importorskip(self.__name__), name)


torch = Library("torch")
transformers = Library("transformers")
sentence_transformers = Library("sentence_transformers")
modules = Library("sentence_transformers.sentence_transformer.modules")
