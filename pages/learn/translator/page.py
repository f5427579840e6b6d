"""An encoder-decoder that learns to translate."""

from pages.learn.translator.training import show_seq2seq

show_seq2seq()
