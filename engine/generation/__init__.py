"""From logits to tokens, from passages to a prompt, from a question to an answer with sources."""
