"""Files to documents, and documents to chunks, which are spans of the text."""
