"""Figures of a server for Prometheus: `GET /metrics`."""

from collections.abc import Callable

import prometheus_client as prometheus
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SIZES = tuple(2**power for power in range(14))


class Metrics:
    """Counters and histograms of one server; their names begin with ``glassbox_``."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self._registry)
        prometheus.PlatformCollector(registry=self._registry)
        self._requests = prometheus.Counter(
            "glassbox_requests", "Requests answered.", ("path", "status"), registry=self._registry
        )
        self._seconds = prometheus.Histogram(
            "glassbox_request_seconds",
            "From a request's head to the end of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._tokens = prometheus.Counter(
            "glassbox_tokens", "Tokens read by the encoder and reranker.", registry=self._registry
        )
        self._batch_texts = prometheus.Histogram(
            "glassbox_batch_texts", "Texts of a batch.", buckets=SIZES, registry=self._registry
        )
        self._batch_tokens = prometheus.Histogram(
            "glassbox_batch_tokens", "Tokens of a batch.", buckets=SIZES, registry=self._registry
        )

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, n_texts: int, n_tokens: int) -> None:
        """Count a batch."""
        self._tokens.inc(n_tokens)
        self._batch_texts.observe(n_texts)
        self._batch_tokens.observe(n_tokens)

    def watch(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a gauge, whose value is computed each time the metrics are read."""
        prometheus.Gauge(f"glassbox_{name}", description, registry=self._registry).set_function(value)

    @property
    def text(self) -> bytes:
        """All figures, in Prometheus's text format."""
        return prometheus.generate_latest(self._registry)
