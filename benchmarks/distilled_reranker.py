"""A cross-encoder cut from the encoder's layers: ``python -m benchmarks.distilled_reranker [--beir FOLDER]``.

Some layers of MiniLM, with a pooler and a classifier behind them, are trained as a cross-encoder on labelled
questions by the hand-written backward passes. It reorders the best passages of the weighted hybrid for the
questions of the fold left out: the mean reciprocal rank alone and mixed with the hybrid's own scores, and its
difference from the hybrid with the 95 % interval.

Questions are drawn by a seed, and dealt to folds; a model is trained for each fold on the questions of the
others. Each update reads a few questions with one answer and some hard negatives each, from the best passages
of the hybrid; the loss is the cross-entropy of the answer among them. Embeddings stay as they are. Intervals
are of the paired bootstrap over questions.
"""

import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Benchmark, Result
from benchmarks.processes import say
from benchmarks.reranking import FIRST, SEED, Collection, Reranked, bundled, figures, of_beir, tables
from engine import Encoder
from engine.errors import InputError
from engine.layers.linear import Linear
from engine.layers.tracing import Array
from engine.models import bert
from engine.models.bert import EncoderWeights
from engine.models.reranker import Head, Reranker
from engine.retrieval.rerank import first_stage
from engine.training.backward.cross_encoder import of_layers, pairs_backward, pairs_forward
from engine.training.backward.encoder import layer_parameters, with_parameters
from engine.training.losses import cross_entropy
from engine.training.optimizers import Parameters, adamw, clip_gradients, no_moments
from engine.training.schedules import warmup_linear
from engine.training.search.fine_tune import MAX_NORM
from engine.wording import counted

NAME = "cross-encoder"
WEIGHTS = (0.1, 0.25, 0.5, 1.0)
CLASSIFIER_STD = 0.02  # of the classifier's first weights, as in BERT


@dataclass(frozen=True)
class Distillation:
    """How a cross-encoder is cut and trained; ``layers`` are numbers of the encoder's, from 0."""

    layers: tuple[int, ...]
    n_folds: int
    n_epochs: int
    depth: int
    max_tokens: int
    n_negatives: int = 4
    batch_size: int = 4
    learning_rate: float = 1e-4


def cut(encoder: Encoder, settings: Distillation) -> tuple[Reranker, Parameters]:
    """Return a cross-encoder of some layers of an encoder, and its parameters before training."""
    layers = tuple(encoder.weights.layers[number] for number in settings.layers)
    weights = replace(encoder.weights, layers=layers)
    d_model = encoder.config.d_model
    rng = np.random.default_rng(SEED)
    assert weights.pooler is not None, "MiniLM has BERT's pooler"
    params = layer_parameters(weights, len(layers)) | {
        "pooler.weight": np.array(weights.pooler.weight, order="C"),
        "pooler.bias": np.array(weights.pooler.bias),
        "classifier.weight": (CLASSIFIER_STD * rng.normal(size=(1, d_model))).astype(np.float32),
        "classifier.bias": np.zeros(1, np.float32),
    }
    config = replace(encoder.config, n_layers=len(layers))
    limit = settings.max_tokens
    model = Reranker(NAME, config, weights, head_of(params), bert, encoder.tokenizer, limit, compiled=True)
    return model, params


def head_of(params: Parameters) -> Head:
    """Return the head that has these parameters."""
    dense, score = (
        Linear(params[f"{name}.weight"], params[f"{name}.bias"]) for name in ("pooler", "classifier")
    )
    return Head(dense, np.tanh, None, score, "Identity")


def trained(encoder: Encoder, collection: Collection, near: list[Array], settings: Distillation) -> Reranker:
    """Train a cross-encoder on all questions of a collection; ``near`` are the best passages of each."""
    model, params = cut(encoder, settings)
    moments, rng = no_moments(params), np.random.default_rng(SEED)
    n_batches = -(-len(collection.questions) // settings.batch_size)
    n_steps = settings.n_epochs * n_batches
    for epoch in range(1, settings.n_epochs + 1):
        losses = []
        for rows in np.array_split(rng.permutation(len(collection.questions)), n_batches):
            loss, grads = step(model, params, drawn_pairs(collection, near, rows, settings, rng), len(rows))
            clip_gradients(grads, MAX_NORM)
            factor = warmup_linear(moments.n_updates + 1, n_steps // 10 + 1, n_steps + 1)
            adamw(params, grads, moments, settings.learning_rate * factor)
            losses.append(loss)
        say(f"epoch {epoch} of {settings.n_epochs}: loss {np.mean(losses):.3f}")
    weights: EncoderWeights = with_parameters(model.weights, of_layers(params))
    return replace(model, weights=weights, head=head_of(params))


def drawn_pairs(
    collection: Collection, near: list[Array], rows: Array, settings: Distillation, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Draw an answer and hard negatives of some questions: pairs, those of a question together, answer first.

    Where too few of the best passages are wrong, some are drawn twice.
    """
    pairs = []
    for row in rows:
        relevant = collection.relevant[row]
        wrong = near[row][~relevant[near[row]]]
        few = len(wrong) < settings.n_negatives
        drawn = [
            int(rng.choice(np.flatnonzero(relevant))),
            *rng.choice(wrong, settings.n_negatives, replace=few).tolist(),
        ]
        pairs += [(collection.questions[row], collection.passages[passage]) for passage in drawn]
    return pairs


def step(
    model: Reranker, params: Parameters, pairs: list[tuple[str, str]], n_questions: int
) -> tuple[float, Parameters]:
    """Return the loss of some pairs and its gradients."""
    run = pairs_forward([model.read(*pair) for pair in pairs], model.weights, params, model.config)
    logits = run.logits.reshape(n_questions, -1)  # (n_questions, 1 + n_negatives), answers first
    loss, d_logits = cross_entropy(logits, np.zeros(n_questions, int))
    return loss, pairs_backward(d_logits.ravel(), run, params, model.config)


def measured(collection: Collection, encoder: Encoder, settings: Distillation) -> dict[str, Any]:
    """Train a model for each fold, and reorder the best passages of its questions."""
    began = time.process_time()
    first = collection.scores(encoder, (FIRST,))[FIRST]
    _, near = first_stage(first, settings.depth)
    n_questions = len(near)
    folds = np.array_split(np.random.default_rng(SEED).permutation(n_questions), settings.n_folds)
    found: list[Array] = [np.empty(0)] * n_questions
    for number, fold in enumerate(folds, 1):
        others = np.setdiff1d(np.arange(n_questions), fold)
        say(f"fold {number} of {len(folds)}: {len(others)} questions")
        model = trained(encoder, collection.rows(others), [near[row] for row in others], settings)
        for row in fold:
            found[row] = model.score(collection.questions[row], [collection.passages[p] for p in near[row]])
    scores = {FIRST: first} | Reranked(first, near, found).mixtures(NAME, WEIGHTS)
    return {
        "n_questions": n_questions,
        "rows": figures(scores, collection.relevant),
        "cost": f"Training and scoring took {time.process_time() - began:.0f} s of a core.",
    }


def run(arguments: Namespace) -> Result:
    """Cross-validate on the bundled questions, and on a collection where one is given."""
    encoder = Encoder.load()
    layers = tuple(arguments.layers)
    if not layers or not set(layers) <= set(range(encoder.config.n_layers)):
        raise InputError(f"layers are {layers}: give some of 0 to {encoder.config.n_layers - 1}")
    settings = Distillation(layers, arguments.folds, arguments.epochs, arguments.depth, arguments.max_tokens)
    collections = {"bundled": bundled(encoder)}
    if arguments.beir:
        collections[arguments.beir.name] = of_beir(arguments.beir)
    found = {
        name: measured(each.drawn(arguments.questions), encoder, settings)
        for name, each in collections.items()
    }
    workload = (
        f"layers {', '.join(map(str, layers))} of {encoder.name} as a cross-encoder, "
        f"{counted(settings.n_folds, 'fold')} by question, {counted(settings.n_epochs, 'epoch')}; the best "
        f"{settings.depth} passages of {FIRST} reordered"
    )
    return {"workload": workload, "ours": found}


def add_options(parser: ArgumentParser) -> None:
    """Add the collection, the model, and how much is trained."""
    parser.add_argument("--beir", type=Path, help="a BEIR folder, such as benchmarks.cranfield makes")
    parser.add_argument(
        "--layers", type=int, nargs="+", default=[0, 5], help="numbers of the encoder's layers, from 0"
    )
    parser.add_argument("--folds", type=int, default=2, help="how many folds the questions are dealt to")
    parser.add_argument("--epochs", type=int, default=3, help="how often each question is trained on")
    parser.add_argument("--questions", type=int, default=200, help="how many of each collection are drawn")
    parser.add_argument("--depth", type=int, default=20, help="how many passages are reordered")
    parser.add_argument("--max-tokens", type=int, default=160, help="tokens of question and passage")


EXPLANATION = """\
There is no gain: alone it ranks far worse than the hybrid, and every mixture is level with it or worse. A
hundred questions are too few for a model that has to learn what relevance is; rerankers in use saw hundreds
of thousands of pairs."""
BENCHMARK = Benchmark(__doc__, run, tables, add_options=add_options, explanation=EXPLANATION)


if __name__ == "__main__":
    BENCHMARK.main()
