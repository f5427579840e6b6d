import ast

import pytest

from tests.command_line import ROOT, run_python

HEAVY = {"streamlit", "plotly", "torch", "transformers", "sentence_transformers", "pymilvus", "ray"}
SHARED = {"atomic_write", "cores", "errors", "library_process", "limited_process", "trace", "wording"}
# What each part of the engine may import of the others.
ARROWS = {
    "layers": set(),
    "weights": {"layers", *SHARED},
    "tokenizers": {"weights", *SHARED},
    "models": {"kernels", "layers", "tokenizers", "weights", *SHARED},
    "documents": {"tokenizers", *SHARED},
    "retrieval": {"documents", "layers", "models", "weights", *SHARED},
    "generation": {"layers", "tokenizers", "weights", "models", "documents", "retrieval", *SHARED},
    "evaluation": {
        "documents",
        "generation",
        "kernels",
        "layers",
        "models",
        "retrieval",
        "tokenizers",
        "weights",
        *SHARED,
    },
    "training": {
        "documents",
        "evaluation",
        "layers",
        "models",
        "retrieval",
        "tokenizers",
        "weights",
        *SHARED,
    },
    "export": {"documents", "evaluation", "layers", "models", "retrieval", "weights", *SHARED},
    "serving": {
        "generation",
        "kernels",
        "layers",
        "models",
        "retrieval",
        "tokenizers",
        *SHARED,
    },
    "inspection": {
        "evaluation",
        "layers",
        "tokenizers",
        "weights",
        "models",
        "documents",
        "retrieval",
        "generation",
        *SHARED,
    },
}


def imports(path):
    """Names of the modules that are imported when a file is: functions and types aside."""
    return imported(ast.parse(path.read_text(encoding="utf-8")).body)


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from engine import layers` names a part as much as `import engine.layers` does
            yield from (f"engine.{a.name}" for a in node.names) if node.module == "engine" else [node.module]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imported(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported(ast.iter_child_nodes(node))


@pytest.mark.parametrize("part", ARROWS)
def test_dependencies_point_one_way(part):
    for path in (ROOT / "engine" / part).glob("*.py"):
        for name in imports(path):
            if name.startswith("engine."):
                assert name.split(".")[1] in ARROWS[part] | {part}, f"{path.name} imports {name}"


def test_the_engine_knows_neither_the_app_nor_the_official_models():
    for path in (ROOT / "engine").rglob("*.py"):
        for name in imports(path):
            assert name.split(".")[0] not in HEAVY | {"pages", "ui", "benchmarks"}, f"{path} imports {name}"


def test_what_pages_share_does_not_import_pages():
    for path in (ROOT / "ui").rglob("*.py"):
        assert not any(name.startswith("pages") for name in imports(path))


def test_importing_the_engine_loads_nothing_heavy():
    heavy = HEAVY | {"numba", "fastapi", "scipy", "faiss", "pypdf", "docx", "lxml", "jinja2", "http.client"}
    code = f"import sys, engine, engine.documents.loaders; print(sorted({heavy!r} & set(sys.modules)))"
    assert run_python(code) == ["[]"]


def test_kernels_are_loaded_without_scipys_linear_algebra_and_others_still_find_it():
    code = (
        "import sys, engine.kernels.op_tape; assert 'scipy.linalg' not in sys.modules;"
        "import numba, numpy as np; x = np.eye(2);"
        "print(numba.njit(lambda a: np.dot(a, a))(x).tolist(), 'scipy.linalg' in sys.modules)"
    )
    assert run_python(code) == ["[[1.0, 0.0], [0.0, 1.0]] True"]


def test_imports_are_found_in_blocks_and_not_in_functions(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "try:\n    import torch\nexcept ImportError:\n    import numpy\n"
        "if TYPE_CHECKING:\n    import faiss\nelse:\n    from engine import layers\n"
        "def f():\n    import plotly\n"
    )
    assert list(imports(path)) == ["torch", "numpy", "engine.layers"]
