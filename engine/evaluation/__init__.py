"""Metrics of a search on labelled questions, with intervals and significance tests."""
