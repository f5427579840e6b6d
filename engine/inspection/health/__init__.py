"""Problems of a corpus: duplicates, crowded vectors, chunks that say little."""
