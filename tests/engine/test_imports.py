import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAVY = {"streamlit", "plotly", "torch", "transformers", "sentence_transformers"}
SHARED = {"errors", "trace"}
# What each part of the engine may import of the others.
ARROWS = {
    "layers": set(),
    "weights": {"layers", *SHARED},
    "tokenizers": {"weights", *SHARED},
    "models": {"layers", "tokenizers", "weights", *SHARED},
    "documents": {"tokenizers", *SHARED},
    "retrieval": {"documents", "layers", "models", "weights", *SHARED},
    "generation": {"layers", "tokenizers", "weights", "models", "documents", "retrieval", *SHARED},
}


def imports(path):
    """Names of the modules imported at the top level of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


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
    for path in (ROOT / "ui").glob("*.py"):
        assert not any(name.startswith("pages") for name in imports(path))


def test_importing_the_engine_loads_nothing_heavy():
    code = f"import sys, engine; print(sorted({HEAVY!r} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
