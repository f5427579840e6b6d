"""Compiled twins (numba) of the hot functions in `engine.layers`, and the machinery they run on."""
