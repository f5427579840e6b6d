"""How fast several texts are generated at once: ``python -m benchmarks.streams [--json] [--rounds 5]``.

Each of 1, 2, 4 and 8 threads continues a prompt of its own, 120 tokens of the bundled corpus, by 96 tokens.
The tokens of all are counted from the first that all have to the last that any has. Every text must be what
it is alone. Figures are medians over the rounds, in which the numbers of threads take turns: tokens a second
token by token, and with prompt lookup, which reads along what the rest of a step has room for.
"""

import statistics
import threading
import time
from argparse import Namespace

from benchmarks.command import Benchmark, Result, Table
from benchmarks.decode import corpus_ids
from benchmarks.processes import CORES, pin, say
from engine.generation.decoder import Decoder

STREAMS = (1, 2, 4, 8)
PROMPT_TOKENS, NEW_TOKENS = 120, 96


def tokens_per_s(decoder: Decoder, expected: dict[tuple[int, ...], list[int]], n: int, lookup: bool) -> float:
    """Continue ``n`` prompts at once; raise `SystemExit` where a text is not what it is alone."""
    begun, texts = threading.Barrier(n), list[list[int]]()
    starts, ends = list[float](), list[float]()

    def write(ids: tuple[int, ...]) -> None:
        steps = decoder.generate(ids, NEW_TOKENS, prompt_lookup=lookup)
        first = next(steps).token_id
        begun.wait()
        starts.append(time.perf_counter())
        text = [first, *(step.token_id for step in steps)]
        ends.append(time.perf_counter())
        if text != expected[ids]:
            raise SystemExit(f"with {n} texts at once one is not what it is alone")
        texts.append(text)

    threads = [threading.Thread(target=write, args=(ids,)) for ids in list(expected)[:n]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(len(text) - 1 for text in texts) / (max(ends) - min(starts))


def run(arguments: Namespace) -> Result:
    """Measure each number of texts in turn."""
    pin()
    decoder = Decoder.load()
    ids = corpus_ids(decoder)
    prompts = [tuple(ids[600 * n : 600 * n + PROMPT_TOKENS]) for n in range(max(STREAMS))]
    expected = {own: [step.token_id for step in decoder.generate(own, NEW_TOKENS)] for own in prompts}
    found: dict[str, list[dict[int, float]]] = {"plain": [], "lookup": []}
    for turn in range(arguments.rounds):
        say(f"round {turn + 1} of {arguments.rounds}")
        for name, rates in found.items():
            rates.append({n: tokens_per_s(decoder, expected, n, name == "lookup") for n in STREAMS})
    ours = {
        name: {str(n): statistics.median(each[n] for each in rates) for n in STREAMS}
        | {"ratio": statistics.median(each[max(STREAMS)] / each[1] for each in rates)}
        for name, rates in found.items()
    }
    what = f"{PROMPT_TOKENS} prompt tokens and {NEW_TOKENS} new ones for each text, greedy, on {CORES} cores"
    return {"workload": what, "ours": ours}


def table(result: Result) -> Table:
    """Tabulate tokens per second by the number of texts."""
    names = {"plain": "token by token", "lookup": "with prompt lookup"}
    rows = [
        [names[name], *(f"{rates[str(n)]:.0f}" for n in STREAMS), f"{rates['ratio']:.2f}"]
        for name, rates in result["ours"].items()
    ]
    return Table(["tokens/s", *(f"{n} at once" for n in STREAMS), "8 to 1"], rows)


BENCHMARK = Benchmark(__doc__, run, table, rounds=5)


if __name__ == "__main__":
    BENCHMARK.main()
