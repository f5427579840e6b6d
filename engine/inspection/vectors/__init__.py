"""Maps of the chunks' vectors."""
