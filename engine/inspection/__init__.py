"""Looking into a model: what it never reads, and what breaks when a part of it is missing."""
