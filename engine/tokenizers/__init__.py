"""From text to token ids, with the place of every token in the text."""
