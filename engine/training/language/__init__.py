"""Training of the small decoder and of the encoder-decoder."""
