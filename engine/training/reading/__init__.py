"""Training of a span reader: questions with passages, and the loop."""
