"""Inspection of a model and a corpus: unread text, causes of failed searches, faults, maps of vectors."""
