"""Experiments as they are kept, whose rows are better and worse than the first."""

from dataclasses import replace

import numpy as np

from engine.evaluation.metrics import METRICS
from engine.evaluation.questions import Question, Reference
from engine.evaluation.sweep_row import SweepRow
from engine.settings import Configuration
from pages.improve.settings.experiments import Experiment

GENERATOR = np.random.default_rng(0)
QUESTIONS = tuple(Question(f"Question {n}?", "tide", (Reference("moon", 4, 8),)) for n in range(60))


def row(configuration, values, n_chunks=10, index_bytes=1000, seconds=1.0):
    values = tuple(float(value) for value in values)
    mean = float(np.mean(values))
    return SweepRow(
        configuration,
        n_chunks,
        len(values),
        dict.fromkeys(METRICS, mean),
        dict.fromkeys(METRICS, (mean - 0.1, mean + 0.1)),
        dict.fromkeys(METRICS, values),
        seconds,
        index_bytes,
    )


def experiment(name="a run", **changed):
    """A baseline, and better, worse and equal configurations, one of which costs less."""
    easy = GENERATOR.choice([0.25, 0.5], 60)
    rows = (
        row(Configuration(), easy),
        row(Configuration(chunk_tokens=64), easy * 2, index_bytes=2000),
        row(Configuration(chunk_tokens=64, retriever="hybrid"), easy / 2, index_bytes=500),
        row(Configuration(pooling="mean_sqrt_len_tokens"), easy),
        row(Configuration(pooling="cls"), np.roll(easy, 1)),
    )
    whole = Experiment(
        name,
        "2026-01-02T03:04:05",
        ("tide.md",),
        "0" * 64,
        QUESTIONS,
        tuple(one.configuration for one in rows),
        rows,
    )
    return replace(whole, **changed)


def results_page(one, current):
    from pages.improve.settings.results import show_experiment

    show_experiment(one, is_growing=False, current=current)
