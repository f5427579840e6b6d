"""The retrievers in words for people."""

LABELS = {
    "dense": "dense (cosine)",
    "bm25": "BM25 (words)",
    "hybrid": "hybrid (ranks fused)",
    "weighted": "hybrid (scores weighted)",
    "mmr": "dense, less repeated (MMR)",
    "maxsim": "dense, reordered by tokens (MaxSim)",
}
WHAT = {
    "dense": "The cosine of the vectors of question and chunk.",
    "bm25": "Words that question and chunk share, the rarer the better. Reads no vectors, and finds no chunk "
    "that shares none.",
    "hybrid": "Dense and BM25, by reciprocal rank fusion.",
    "weighted": "Dense and BM25, by a weighted mean of their scores.",
    "mmr": "Dense, but a chunk that repeats one above it goes down (maximal marginal relevance).",
    "maxsim": "The best 50 of dense, ordered anew by the best match of every single token.",
}
