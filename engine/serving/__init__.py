"""The engine behind HTTP: ``python -m engine serve``."""
