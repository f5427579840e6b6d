"""How many requests a server answers: ``python -m benchmarks.serve [--rounds 3] [--seconds 5] [--json]``.

32 clients, each with one request after the other, ask for the vector of one text: Glassbox, and
sentence-transformers behind FastAPI.

All clients are tasks of one process, the same for every server, and share the servers' two cores. The servers
take turns, each in a process of its own. Figures are medians over the rounds: requests per second, and the
99th percentile of a request's time.

At last Glassbox is sent 20 texts of 3.9 MB at once, while another client asks on a kept connection whether it
is ready: its memory before, at the peak and 5 s after, and how long that client waits, before and meanwhile.
"""

import asyncio
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result, Table, contestants, median_ratio
from benchmarks.processes import CORES, Lineup, Served, environment, memory, pin, say
from benchmarks.servers import BATCHED, OURS_PREFIX, PLAIN
from benchmarks.texts import corpus_words, passage
from engine.models.precision import PRECISIONS
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path

CLIENTS = 32
N_TEXTS = 512
WORDS = {"short": (4, 16), "mixed": (4, 160)}
WARM_UP_S = 0.5
N_LARGE, LARGE = 20, "The lighthouse was built in 1891, and painted white. " * 74_000  # 3.9 MB
QUIET_S = 5.0  # until memory is given back
OWN = {name: f"{OURS_PREFIX}{name}" for name in PRECISIONS}
HELD = (
    "without work it answers on a kept connection in {ready_ms:.1f} ms; 20 texts of 3.9 MB at once take it "
    "from {before_mb:.0f} to {peak_mb:.0f} MB and back to {after_mb:.0f}, and let another client wait "
    "{longest_ms:.0f} ms at most"
)
CONTESTANTS = (*OWN.values(), PLAIN, BATCHED)


def workloads() -> dict[str, list[str]]:
    """Cut texts at random places of the bundled corpus, with a fixed seed."""
    rng = random.Random(0)
    words = corpus_words()
    return {
        name: [passage(words, rng.randint(*lengths), rng) for _ in range(N_TEXTS)]
        for name, lengths in WORDS.items()
    }


def request_of(text: str, **fields: Any) -> bytes:
    """Return the bytes of a request for the vector of a text."""
    body = json.dumps({"model": "model", "input": [text], "encoding_format": "float", **fields}).encode()
    lines = (
        "POST /v1/embeddings HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """Send a request and return the body of its answer."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise SystemExit(f"a server refused a request: {head[:200]!r}")
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    return await reader.readexactly(int(length))


async def load(port: int, texts: Sequence[str], seconds: float) -> list[float]:
    """Have all clients ask for some seconds; return the seconds of each request that began in them."""
    requests = itertools.cycle(map(request_of, texts))
    until, found = time.perf_counter() + seconds, list[float]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (start := time.perf_counter()) < until:
            await exchange(reader, writer, next(requests))
            found.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return found


async def vectors_of(port: int, texts: Sequence[str]) -> Any:
    """Return the vectors of texts, ``(n_texts, d_model)``."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = [json.loads(await exchange(reader, writer, request_of(text))) for text in texts]
    writer.close()
    return np.array([answer["data"][0]["embedding"] for answer in answers])


async def readiness(port: int, until: asyncio.Event, at_least: int = 0) -> list[float]:
    """Ask on one connection whether a server is ready; return the seconds of each answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = list[float]()
    while len(found) < at_least or not until.is_set():
        start = time.perf_counter()
        await exchange(reader, writer, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        found.append(time.perf_counter() - start)
        await asyncio.sleep(0.001)
    writer.close()
    return found


async def hold(served: Served) -> dict[str, float]:
    """Send a server the large texts; return its memory, and the seconds of another client."""
    port, process, over = served.ready["port"], served.process.pid, asyncio.Event()

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await exchange(reader, writer, request_of(LARGE, truncate=True))
        writer.close()

    over.set()
    quiet, before = await readiness(port, over, at_least=200), memory("VmRSS", process)
    over.clear()
    asking = asyncio.create_task(readiness(port, over))
    await asyncio.gather(*(send() for _ in range(N_LARGE)))
    over.set()
    waits = await asking
    await asyncio.sleep(QUIET_S)
    return {
        "ready_ms": 1000 * statistics.median(quiet),
        "longest_ms": 1000 * max(waits),
        "before_mb": before,
        "peak_mb": memory("VmHWM", process),
        "after_mb": memory("VmRSS", process),
    }


def measure(served: Served, texts: Sequence[str], seconds: float) -> dict[str, float]:
    """Load a server; return its figures."""
    port = served.ready["port"]
    asyncio.run(load(port, texts, WARM_UP_S))
    start = time.perf_counter()
    found = asyncio.run(load(port, texts, seconds))
    passed = time.perf_counter() - start
    return {"requests_per_s": len(found) / passed, "p99_ms": 1000 * float(np.quantile(found, 0.99))}


def run(arguments: Namespace) -> Result:
    """Start each server in turn, and measure all workloads."""
    pin()
    work, folder = workloads(), str(model_path(DEFAULT_ENCODER))
    lineup = Lineup(CONTESTANTS, needed=(OWN["float32"], PLAIN))
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    vectors, held, own = {}, dict[str, float](), OWN["float32"]
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(arguments.rounds):
            for name in lineup:
                say(f"round {turn + 1} of {arguments.rounds}: {name}")
                with lineup.turn(name):
                    served = Served(
                        "benchmarks.servers", [name, folder], environment(), Path(scratch) / "errors.txt"
                    )
                    vectors[name] = asyncio.run(vectors_of(served.ready["port"], work["mixed"][:16]))
                    for workload, texts in work.items():
                        figures = measure(served, texts, arguments.seconds)
                        found.setdefault(name, {}).setdefault(workload, []).append(figures)
                    if name == own and turn == arguments.rounds - 1:
                        held = asyncio.run(hold(served))
                    served.stop()

    def row(name: str) -> dict[str, Any]:
        rows = {
            workload: {figure: statistics.median(each[figure] for each in rounds) for figure in rounds[0]}
            for workload, rounds in found[name].items()
        }
        ratios = {
            workload: median_ratio(
                (each["requests_per_s"] for each in found[own][workload]),
                (each["requests_per_s"] for each in found[name][workload]),
            )
            for workload in work
        }
        difference = float(np.abs(vectors[name] - vectors[PLAIN]).max())
        return {"workloads": rows, "ratios": ratios, "max_difference": difference}

    return {
        "workload": f"{CLIENTS} clients for {arguments.seconds:g} s each, {arguments.rounds} rounds, on "
        f"{CORES} cores, load of the machine at the end {os.getloadavg()[0]:.1f}; glassbox is {own}; "
        + HELD.format(**held),
        "ours": row(own) | {"held": held},
        "peers": {name: row(name) for name in lineup if name != own} | lineup.ended_rows,
    }


def table(result: Result) -> Table:
    """Tabulate the rates of each server by the words of a request."""
    columns = {}
    for name, (least, most) in WORDS.items():
        columns[f"{least} to {most} words, requests/s"] = f"{{workloads[{name}][requests_per_s]:,.0f}}"
        columns[f"{least} to {most} words, ratio"] = f"{{ratios[{name}]:.2f}}"
    return contestants(result, columns)


def add_options(parser: ArgumentParser) -> None:
    """Add the seconds of a workload."""
    parser.add_argument("--seconds", type=float, default=5.0, help="of each workload in each round")


EXPLANATION = """\
Waiting requests are collected while the batch before is computed; nothing is padded."""
BENCHMARK = Benchmark(__doc__, run, table, rounds=3, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
