"""Very many texts in bounded memory: ``python -m benchmarks.stream [--chunks 100000] [--json]``.

Chunks are made as they are asked for, one in ten of them again later, and every block of vectors is
let go of as soon as it came. Reported are the rate, and how far resident memory rose after the first
tenth.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Iterator

from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.layers.primitives import prepare_compiled

CHUNK_WORDS = 16


def chunks(n_chunks: int) -> Iterator[str]:
    """Yield pieces of the bundled corpus; every tenth is one that came before."""
    rng = random.Random(0)
    words = " ".join(document.text for document in load_corpus(BUNDLED_CORPUS)).split()
    earlier: list[str] = []
    for number in range(n_chunks):
        if number % 10 == 9:
            yield rng.choice(earlier)
            continue
        start = rng.randrange(len(words) - CHUNK_WORDS)
        text = f"{number} " + " ".join(words[start : start + CHUNK_WORDS])
        if len(earlier) < 1000:
            earlier.append(text)
        yield text


def peak_mb() -> float:
    """Most memory this process held so far, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=100_000, help="how many texts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    encoder = Encoder.load()
    prepare_compiled().join()
    n_done, early_mb, start = 0, 0.0, time.perf_counter()
    for vectors in encoder.encode_stream(chunks(arguments.chunks)):
        n_done += len(vectors)
        if not early_mb and n_done >= arguments.chunks / 10:
            early_mb = peak_mb()
        if sys.stderr.isatty():
            print(f"\r{n_done} of {arguments.chunks}", end="", file=sys.stderr)
    seconds = time.perf_counter() - start
    ours = {
        "chunks_per_s": n_done / seconds,
        "seconds": seconds,
        "peak_mb": peak_mb(),
        "rise_after_first_tenth_mb": peak_mb() - early_mb,
    }
    workload = f"{n_done} chunks of {CHUNK_WORDS + 1} words, every tenth a repetition"
    if arguments.json:
        vectors_mb = n_done * encoder.config.d_model * 4 / 1e6
        print(
            json.dumps({"workload": workload, "ours": ours, "peers": {}, "limit": {"vectors_mb": vectors_mb}})
        )
        return
    print(workload)
    for name, value in ours.items():
        print(f"{name:28}{value:10.1f}")


if __name__ == "__main__":
    main()
