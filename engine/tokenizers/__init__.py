"""Tokenizers: from text to token ids, with the span of every token in the text."""
