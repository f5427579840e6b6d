"""From files to chunks that never lose their place in the text."""
