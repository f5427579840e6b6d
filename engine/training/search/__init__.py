"""Tuning of the search to labelled questions."""
