"""The servers that ``benchmarks.serve`` compares, each run in a process of its own.

``python -m benchmarks.servers NAME MODEL_FOLDER``: loads a model, serves ``POST /v1/embeddings`` on a free
port, and prints that port as a JSON object once it listens; it ends when its standard input is closed.
"""

import asyncio
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from benchmarks.processes import CORES

OURS_PREFIX = "glassbox "
PLAIN = "sentence-transformers, plain endpoint"
BATCHED = "sentence-transformers, batched"
MAX_TOKENS = 256
BATCH_TEXTS, WAIT_S = 32, 0.005  # of the batched one


def say_ready(port: int) -> None:
    """Print the port."""
    print(json.dumps({"port": port}), flush=True)


def serve_ours(folder: str, precision: str) -> None:
    """Serve Glassbox, as ``python -m engine serve`` does."""
    from engine.kernels.primitives import prepare_compiled
    from engine.models.encoder import Encoder
    from engine.serving.served import Served
    from engine.serving.server import listening, run

    encoder = replace(Encoder.load(folder, precision=precision), name="model")
    prepare_compiled().join()
    encoder.encode(["The first text.", "Two texts, for whatever loads lazily."])
    with listening("127.0.0.1", 0) as listener:
        say_ready(listener.getsockname()[1])
        run(Served(encoder), listener)


def serve_theirs(folder: str, batched: bool) -> None:
    """Serve sentence-transformers behind FastAPI: an endpoint that encodes, or one that collects a batch."""
    import torch
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    class Request(BaseModel):
        model: str
        input: list[str]
        encoding_format: str = "float"

    class Item(BaseModel):
        object: str = "embedding"
        index: int
        embedding: list[float]

    class Response(BaseModel):
        object: str = "list"
        model: str
        data: list[Item]

    torch.set_num_threads(CORES)
    transformer = modules.Transformer(folder, max_seq_length=MAX_TOKENS)
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu")
    model.encode(["The first text.", "Two texts, for whatever loads lazily."])
    app = FastAPI()

    def answered(request: Request, vectors: Any) -> Response:
        items = [Item(index=place, embedding=vector.tolist()) for place, vector in enumerate(vectors)]
        return Response(model=request.model, data=items)

    if batched:
        waiting: queue.SimpleQueue[tuple[Sequence[str], Future[Any]]] = queue.SimpleQueue()
        threading.Thread(target=encode_batches, args=(model, waiting), daemon=True).start()

        @app.post("/v1/embeddings")
        async def embeddings(request: Request) -> Response:
            future: Future[Any] = Future()
            waiting.put((request.input, future))
            return answered(request, await asyncio.wrap_future(future))
    else:

        @app.post("/v1/embeddings")
        def embeddings_plain(request: Request) -> Response:
            return answered(request, model.encode(request.input, show_progress_bar=False))

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    say_ready(listener.getsockname()[1])
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


def encode_batches(model: Any, waiting: "queue.SimpleQueue[tuple[Sequence[str], Future[Any]]]") -> None:
    """Encode the texts of requests that come within `WAIT_S` of the first, up to `BATCH_TEXTS`."""
    while True:
        batch = [waiting.get()]
        while sum(len(texts) for texts, _ in batch) < BATCH_TEXTS:
            try:
                batch.append(waiting.get(timeout=WAIT_S))
            except queue.Empty:
                break
        vectors = model.encode([text for texts, _ in batch for text in texts], show_progress_bar=False)
        start = 0
        for texts, future in batch:
            future.set_result(vectors[start : start + len(texts)])
            start += len(texts)


def end_with_input() -> None:
    """End this process once its standard input is closed."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve one contestant."""
    name, folder = sys.argv[1:]
    threading.Thread(target=end_with_input, daemon=True).start()
    if name.startswith(OURS_PREFIX):
        serve_ours(folder, name.removeprefix(OURS_PREFIX))
    else:
        serve_theirs(folder, name == BATCHED)


if __name__ == "__main__":
    main()
