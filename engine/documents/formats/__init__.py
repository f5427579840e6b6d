"""Readers of file formats, one per module: from bytes to documents, without running or fetching anything."""
