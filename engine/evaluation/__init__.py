"""How well a search finds what answers a question, and how sure that is."""
