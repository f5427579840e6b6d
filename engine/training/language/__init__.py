"""Training of the small decoder."""
