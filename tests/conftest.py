"""Fixtures of all tests: the models, loaded once for a process."""

import gc
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
# Threads that wait for each other wait very long where another process holds a core, and the tests
# themselves run in several.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Numba, compiling in a thread, would colour messages by colorama, which takes what others print meanwhile.
os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"
# Workers and child processes find modules compiled, also where an environment keeps none.
os.environ["PYTHONDONTWRITEBYTECODE"] = ""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from engine import Decoder, Encoder, progress, wording
from engine.documents.loaders import load_corpus
from engine.evaluation import sweep_cost
from engine.models.reader import Reader
from engine.official_program import load_official
from engine.retrieval import relevance
from engine.retrieval.vector_cache import VectorCache
from engine.weights import transfer
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from tests import pytorch
from tests.command_line import LIGHTHOUSE
from tests.sentence_transformer_folders import save_reranker
from tests.text_files import write_files

sys.dont_write_bytecode = False
ROOT = Path(__file__).parent.parent
# Properties are tried on few examples, the same each time; GLASSBOX_HYPOTHESIS=long pytest tries many, and
# others each time. How long an example takes says more about what else the machine does: it has no limit.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("short", max_examples=20, derandomize=True, **PATIENT)
settings.register_profile("long", max_examples=500, **PATIENT)
settings.load_profile(os.environ.get("GLASSBOX_HYPOTHESIS", "short"))


COMPILED = (
    "from engine.kernels.primitives import prepare_compiled; prepare_compiled().join()",
    "from engine.kernels.primitives import has_op_tape; has_op_tape()",
)


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the clock of progress shows, as the only item of a list."""
    now = [0.0]
    for module in (progress.time, transfer, wording):
        monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def pytest_configure(config):
    """Compile the kernels once, before the workers would each: the first time takes many seconds."""
    is_worker = hasattr(config, "workerinput")
    if not is_worker and not config.option.collectonly and getattr(config.option, "numprocesses", None):
        compiling = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for code in COMPILED]
        for process in compiling:
            process.wait()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave the garbage collector out while modules are loaded, and these out of its later passes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # a pass takes long beside models and pages
        gc.enable()


SELDOM = ("nightly", "models")  # markers of tests that run only where -m names them


def pytest_collection_modifyitems(config, items):
    left_out = {mark for mark in SELDOM if mark not in config.option.markexpr}
    unwanted = {item for item in items if any(mark.name in left_out for mark in item.iter_markers())}
    config.hook.pytest_deselected(items=list(unwanted))
    items[:] = [item for item in items if item not in unwanted]
    for item in items:
        in_browser = "browser" in Path(item.path).parts
        item.add_marker(pytest.mark.browser if in_browser else pytest.mark.unit)
        if in_browser:  # a click can be lost where the page is drawn anew just then
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def encoder():
    return Encoder.load()


@pytest.fixture(scope="session")
def reader(encoder):
    return Reader.load(encoder=encoder)


@pytest.fixture(scope="session", autouse=True)
def _everyday_questions_embedded_once():
    """Have the questions that passages are compared with embedded once for each spec, not for each index."""
    cache = VectorCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relevance, "VectorCache", lambda: cache)
        yield


@pytest.fixture(scope="session", autouse=True)
def _sweeps_estimated_from_few_tokens():
    """Have the page “Settings” embed a short sample once each time it estimates how long a sweep takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_cost, "SAMPLE_TOKENS", 64)
        patch.setattr(sweep_cost, "SAMPLES", 1)
        yield


@pytest.fixture(scope="session")
def decoder():
    return Decoder.load()


@pytest.fixture(scope="session")
def readable_decoder():
    """The same decoder in float32, all by NumPy."""
    return Decoder.load(compiled=False)


@pytest.fixture(scope="session")
def torch():
    """PyTorch; without it, the tests that compare with it are skipped."""
    return pytest.importorskip(pytorch.torch.__name__)


@pytest.fixture(scope="session")
def bundled():
    """The bundled documents."""
    return load_corpus()


@pytest.fixture
def corpus(tmp_path):
    """A folder of two short documents."""
    bread = "Knead the dough for ten minutes."
    return write_files(tmp_path / "notes", {"lighthouse.md": LIGHTHOUSE, "bread.txt": bread})


@pytest.fixture(scope="session")
def reranker_folder(tmp_path_factory):
    """A folder with a small random cross-encoder."""
    return save_reranker(tmp_path_factory.mktemp("models") / "reranker")


@pytest.fixture(scope="session")
def official(encoder):
    """The same weights in sentence-transformers."""
    return load_official(str(model_path(encoder.name)), encoder.max_tokens, encoder.config.d_model, "float32")


@pytest.fixture(scope="session")
def gguf_reader():
    """The file of the default decoder as the official library reads it."""
    import gguf

    with pytest.MonkeyPatch.context() as patch:  # a mapped file takes several times as long to slice
        patch.setattr(np, "memmap", lambda path, mode: np.fromfile(path, np.uint8))
        return gguf.GGUFReader(model_path(DEFAULT_DECODER))


@pytest.fixture
def library_in_this_process(monkeypatch):
    """Have programs of `engine.library_process` answer here, where PyTorch is loaded already."""

    def answer(program, request, limits):
        module = ".".join(program.path.relative_to(ROOT).with_suffix("").parts)
        return import_module(module).answer(request)

    monkeypatch.setattr("engine.library_process.ask", answer)


@pytest.fixture(scope="session")
def official_greedy(torch):
    """A function giving the tokens with which a transformers model goes on, most probable first."""

    def continue_ids(model, ids, n_new, end_ids):
        tokens = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=n_new,
            do_sample=False,
            eos_token_id=end_ids,
            pad_token_id=0,
        )
        return tokens[0, len(ids) :].tolist()

    return continue_ids
