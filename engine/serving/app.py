"""The routes of a server: embeddings in OpenAI's format, reranking, its models, health and metrics.

To add a route, write a function in `routes` (or in `asking`, where it needs a corpus) and its body in
`bodies`; `Guard` enforces the limits, and `Metrics` counts the requests.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from ..cores import n_cores
from ..errors import GlassboxError
from ..models.encoder import BATCH_TOKENS
from ..models.parallel import single_threaded_blas
from .asking import Threads, asking_routes
from .batching import Batcher, Compute, QueueFullError
from .bodies import (
    FORMS,
    EmbeddingBody,
    OllamaBody,
    RequestError,
    RerankBody,
    error_content,
    failure_content,
    json_response,
    model_warnings,
    overloaded,
    warned,
)
from .chat import chat_routes
from .guard import FAILED, OPEN_PATHS, Guard
from .metrics import Metrics
from .reading import Reading, check_texts, in_thread, read_ids, read_texts
from .reranking import reranked
from .served import QUEUED_REQUESTS, Served

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def create_app(served: Served, hosts: Collection[str] = LOCAL_HOSTS, api_key: str = "") -> Guard:
    """Return the ASGI application of a server; ``hosts`` and ``api_key`` are those of `Guard`."""
    metrics, limits = Metrics(), served.limits
    most_tokens = QUEUED_REQUESTS * limits.tokens
    batcher = Batcher(served.work, BATCH_TOKENS * n_cores(), most_tokens, metrics.count_batch)

    tools = None
    if served.tools and served.searched is not None:
        from .tools import tool_app  # which needs a package of its own

        tools = tool_app(served, served.searched)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with single_threaded_blas():
            async with nullcontext() if tools is None else tools.router.lifespan_context(tools):
                yield
        batcher.close()

    app = FastAPI(title="Glassbox", lifespan=lifespan, docs_url=None, redoc_url=None)
    threads = Threads()
    routers = [routes(served, batcher, metrics), chat_routes(served, threads)]
    if served.searched is not None:
        routers.append(asking_routes(served, served.searched, threads))
    for router in routers:
        app.include_router(router)
    if tools is not None:
        app.router.routes.extend(tools.routes)
    add_error_handlers(app, has_corpus=served.searched is not None)
    every = [route for router in routers for route in router.routes] + ([] if tools is None else tools.routes)
    paths = {route.path for route in every if isinstance(route, Route)}
    guard = Guard(app, limits, metrics, hosts, api_key, paths)
    metrics.watch("requests_in_flight", "Requests at work or waiting.", lambda: guard.n_requests)
    metrics.watch("queued_requests", "Requests with texts in no batch yet.", lambda: batcher.waiting_requests)
    metrics.watch("queued_tokens", "Tokens in no batch yet.", lambda: batcher.waiting_tokens)
    return guard


def routes(served: Served, batcher: Batcher, metrics: Metrics) -> APIRouter:
    """Return the routes that need no corpus."""
    router, models, started = APIRouter(), served.models, int(time.time())

    async def compute(key: Any, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        try:
            return await batcher.compute(key, items, sizes)
        except QueueFullError as error:
            raise overloaded("many texts wait", error.retry_s) from error

    @router.post("/v1/embeddings")
    async def embeddings(body: EmbeddingBody) -> Response:
        """Embed texts."""
        return json_response(await embedded(body, served, compute))

    @router.post("/api/embed")
    async def embed(body: OllamaBody) -> Response:
        """Embed texts as Ollama does."""
        start = time.perf_counter_ns()
        own = EmbeddingBody(
            input=body.input, model=body.model, dimensions=body.dimensions, truncate=body.truncate
        )
        found = await embedded(own, served, compute)
        return json_response(
            {
                "model": found["model"],
                "embeddings": [each["embedding"] for each in found["data"]],
                "total_duration": time.perf_counter_ns() - start,
                "load_duration": 0,
                "prompt_eval_count": found["usage"]["prompt_tokens"],
                **({"truncated": found["truncated"]} if "truncated" in found else {}),
                **warned([*body.warnings, *found.get("warnings", ())]),
            }
        )

    @router.post("/rerank")
    @router.post("/v1/rerank")
    @router.post("/v2/rerank")
    async def rerank(body: RerankBody, request: Request) -> Response:
        """Score documents for a query, as Cohere, Jina and TEI do: by the cross-encoder, or by the reader."""
        version = request.url.path.removesuffix("/rerank").removeprefix("/v")
        return json_response(await reranked(body, served, compute, version))

    @router.get("/v1/models")
    async def list_models() -> Response:
        """List the models."""
        return json_response({"object": "list", "data": [model_card(name) for name in models]})

    @router.get("/v1/models/{name:path}")
    async def one_model(name: str) -> Response:
        """Return one model."""
        if name not in models:
            raise RequestError(404, f"there is no model {name!r:.80}", "model", "model_not_found")
        return json_response(model_card(name))

    def model_card(name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": started, "owned_by": "glassbox", **models[name]}

    async def health() -> Response:
        """Report that the server is ready: models are loaded before it listens to requests."""
        return json_response({"status": "ready"})

    for path in OPEN_PATHS:
        router.get(path)(health)
        router.head(path, include_in_schema=False)(health)

    @router.get("/metrics")
    async def figures() -> Response:
        """Return the figures for Prometheus."""
        return Response(metrics.text, media_type=metrics.content_type)

    return router


async def embedded(body: EmbeddingBody, served: Served, compute: Compute) -> dict[str, Any]:
    """Return the vectors of a request's texts."""
    encoder = served.encoder
    warnings = [*body.warnings, *model_warnings(body.model, [encoder.name])]
    check_dimensions(body.dimensions, served)
    reading, n_prompt = await read_input(body, served)
    vectors = await compute(("embed", n_prompt, body.dimensions), reading.items, reading.sizes)
    in_base64 = body.encoding_format == "base64"
    n_tokens = sum(reading.sizes)
    return {
        "object": "list",
        "data": [
            {
                "object": "embedding",
                "index": place,
                # Of base64, OpenAI's clients read the bytes as little-endian float32.
                "embedding": b64encode(vector.astype("<f4", copy=False).tobytes()).decode()
                if in_base64
                else vector.tolist(),
            }
            for place, vector in enumerate(vectors)
        ],
        "model": encoder.name,
        "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        **reading.truncation(),
        **warned(warnings),
    }


async def read_input(body: EmbeddingBody, served: Served) -> tuple[Reading, int]:
    """Return the token ids of a request's texts, and how many tokens of a prompt are not pooled."""
    encoder, given = served.encoder, body.input
    several: list[Any] = given if isinstance(given, list) else [given]
    if several and type(several[0]) is int:
        several = [several]
    check_texts(len(several), served.limits, "input")
    if not isinstance(several[0], str):
        if body.prompt_name:
            raise RequestError(400, "prompt_name: token ids are read as they are: send texts", "prompt_name")
        return await asyncio.to_thread(read_ids, several, served, body.truncate, "input"), 0
    if not all(isinstance(text, str) for text in several):
        raise RequestError(400, f"input: {FORMS['input']}", "input")
    prompt = encoder.prompts.text(body.prompt_name)
    n_prompt = encoder.prompt_length(prompt, encoder.max_tokens)
    n_characters = sum(map(len, several))
    reading = await in_thread(n_characters, read_texts, several, served, body.truncate, "input", prompt)
    return reading, n_prompt


def check_dimensions(dimensions: int | None, served: Served) -> None:
    """Raise `RequestError` for a length that vectors are not cut to."""
    width, name = served.encoder.width(served.pooling), served.encoder.name
    if dimensions is None or dimensions == width:
        return
    if not served.matryoshka:
        why = (
            f"dimensions is {dimensions}, and the vectors of {name} have {width}: leave it out, or start the "
            "server with --matryoshka if the model was trained to have them cut"
        )
        raise RequestError(400, why, "dimensions")
    if not 1 <= dimensions <= width:
        raise RequestError(400, f"dimensions is {dimensions}: give 1 to {width}", "dimensions")


def add_error_handlers(app: FastAPI, has_corpus: bool) -> None:
    """Answer every error with one line, in OpenAI's format or Ollama's."""

    def answer(request: Request, content: dict[str, Any], status: int) -> Response:
        if request.url.path.startswith("/api/"):  # as Ollama's client reads it
            content = {"error": content["error"]["message"]}
        return json_response(content, status)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if isinstance(error, RequestError):
            content = error.content
        elif error.status_code == 404 and request.url.path in ("/search", "/ask") and not has_corpus:
            path = request.url.path
            content = error_content(404, f"{path} needs documents: start the server with CORPUS or --index")
        else:
            content = error_content(error.status_code, f"{error.detail}: see /openapi.json for what there is")
        response = answer(request, content, error.status_code)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(GlassboxError)
    async def bad_input(request: Request, error: GlassboxError) -> Response:
        return answer(request, *failure_content(error))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return answer(request, error_content(500, FAILED), 500)  # Starlette raises it again: `Guard` logs it

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            why = f"the body is {kind or 'of no type'!r:.80}: send it as Content-Type: application/json"
            return answer(request, error_content(415, why), 415)
        first = error.errors()[0]
        places = [str(place) for place in first["loc"][1:]]
        name = places[0] if places else None
        if first["type"] == "json_invalid":
            return answer(request, error_content(400, "the body is not JSON: send an object"), 400)
        if name in FORMS and first["type"] != "missing":
            why = f"{name}: {FORMS[name]}"
        else:
            said = first["msg"].removeprefix("Value error, ")
            why = f"{'.'.join(places) or 'the body'}: {said[:1].lower()}{said[1:]}"
        return answer(request, error_content(400, why, name), 400)
