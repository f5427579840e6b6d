"""The geometry of vectors: maps of chunks, transforms, quantisation."""
