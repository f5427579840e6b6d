import ast
from graphlib import TopologicalSorter
from importlib.util import resolve_name

from tests.command_line import ROOT, run_python

HEAVY = {"streamlit", "plotly", "torch", "transformers", "sentence_transformers", "pymilvus", "ray"}
SHARED = "atomic_write cores errors installed progress trace wording"
# What each part of the engine may import of the others, in functions, too; a part of a part has its own row.
ARROWS = {
    "errors": "wording",
    "installed": "",
    "wording": "",
    "progress": "wording",
    "cores": "",
    "atomic_write": "",
    "memory": "weights",
    "layers": "",
    "trace": "errors layers",
    "limited_program": "",
    "limited_process": "errors limited_program",
    "weights": "atomic_write cores errors installed layers wording",
    "limited_reader": "errors limited_process wording",
    "reading_program": "documents errors limited_process memory wording",
    "library_process": "errors layers limited_process weights",
    "official_program": "layers library_process",
    "kernels": f"layers weights {SHARED}",
    "tokenizers": f"weights {SHARED}",
    "models": f"kernels layers tokenizers weights {SHARED}",
    "verify": f"generation kernels layers library_process models weights {SHARED}",
    "documents": f"limited_process limited_reader tokenizers {SHARED}",
    "retrieval": f"documents layers limited_process limited_reader models tokenizers weights {SHARED}",
    "retrieval/stored": f"documents kernels layers models weights {SHARED}",
    "generation": f"documents layers limited_process models retrieval tokenizers weights {SHARED}",
    "settings": "documents errors generation installed layers models retrieval weights wording",
    "evaluation": "documents generation kernels layers library_process limited_reader models "
    f"retrieval settings tokenizers weights {SHARED}",
    "training": f"documents evaluation layers models retrieval tokenizers weights {SHARED}",
    "training/language": f"documents kernels layers models tokenizers weights {SHARED}",
    "training/reading": f"documents evaluation kernels layers models retrieval tokenizers weights {SHARED}",
    "export": f"documents evaluation layers models retrieval settings weights {SHARED}",
    "serving": f"generation kernels layers memory models retrieval {SHARED}",
    "inspection": "documents evaluation generation layers models retrieval "
    f"settings tokenizers weights {SHARED}",
    "storage": f"documents retrieval {SHARED}",
    "cli": "documents evaluation export generation inspection kernels layers models retrieval "
    f"serving settings storage training verify weights {SHARED}",
    "api": f"cli documents generation layers models retrieval settings weights {SHARED}",
    "__init__": "api documents errors generation models retrieval",
    "__main__": "cli installed",
}
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for part in ("engine", "ui", "pages")
    for path in sorted((ROOT / part).rglob("*.py"))
}


def imports(path, in_functions=False, root=ROOT):
    """Names of the modules that a file imports, for types, too, and in its functions if they are wanted."""
    package = ".".join(path.parent.relative_to(root).parts)
    return imported(ast.parse(path.read_text(encoding="utf-8")).body, package, in_functions)


def imported(nodes, package, in_functions):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            # `from . import layers` names a part as much as `from .layers import linear` does
            every = [f"{module}.{alias.name}" for alias in node.names]
            yield from (each if each in PATHS else module for each in every)
        elif in_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported(ast.iter_child_nodes(node), package, in_functions)


def row_of(path):
    """Name of the row of `ARROWS` that a file belongs to: the longest that its path begins with."""
    place = path.relative_to(ROOT / "engine").with_suffix("")
    return next(name for each in (place, *place.parents) if (name := each.as_posix()) in ARROWS)


def page_of(module):
    """The folder of a page that a module belongs to, empty for what pages share."""
    place = PATHS[module].parent
    return next((each for each in (place, *place.parents) if (each / "page.py").exists()), "")


def test_dependencies_point_one_way():
    paths = (ROOT / "engine").rglob("*.py")
    assert [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths
        for name in imports(path, in_functions=True)
        if name.startswith("engine.")
        and name.split(".")[1] not in {*ARROWS[row := row_of(path)].split(), row.split("/")[0]}
    ] == []


def test_every_row_is_of_a_part_and_no_two_parts_import_each_other():
    folders = {path.name for path in (ROOT / "engine").iterdir() if (path / "__init__.py").exists()}
    assert folders | {path.stem for path in (ROOT / "engine").glob("*.py")} == {
        row for row in ARROWS if "/" not in row
    }
    parts = dict.fromkeys(ARROWS, frozenset())
    for row, others in ARROWS.items():
        parts[row.split("/")[0]] |= {*others.split()}
    TopologicalSorter(parts).prepare()


def test_modules_do_not_import_each_other_in_circles():
    graph = {
        module: {name for name in imports(path) if name in PATHS and name != module}
        for module, path in PATHS.items()
    }
    TopologicalSorter(graph).prepare()


def test_the_engine_knows_neither_the_app_nor_the_official_models():
    for path in (ROOT / "engine").rglob("*.py"):
        is_child = path.stem.endswith("_program")  # which run in child processes
        for name in () if is_child else imports(path):
            assert name.split(".")[0] not in HEAVY | {"pages", "ui", "benchmarks"}, f"{path} imports {name}"


def test_what_pages_share_imports_no_page_and_a_page_imports_no_other():
    assert [
        f"{module} imports {name}"
        for module, path in PATHS.items()
        for name in imports(path, in_functions=True)
        if name.startswith("pages") and module.split(".")[0] != "engine" and page_of(name) != page_of(module)
    ] == []


def test_importing_the_engine_loads_nothing_heavy():
    heavy = HEAVY | {
        "numba",
        "fastapi",
        "scipy",
        "faiss",
        "pypdfium2",
        "docx",
        "lxml",
        "jinja2",
        "http.client",
    }
    code = f"import sys, engine, engine.documents.loaders; print(sorted({heavy!r} & set(sys.modules)))"
    assert run_python(code) == ["[]"]


def test_kernels_are_loaded_without_scipys_linear_algebra_and_others_still_find_it():
    code = (
        "import sys, engine.kernels.op_tape; assert 'scipy.linalg' not in sys.modules;"
        "import numba, numpy as np; x = np.eye(2);"
        "print(numba.njit(lambda a: np.dot(a, a))(x).tolist(), 'scipy.linalg' in sys.modules)"
    )
    assert run_python(code) == ["[[1.0, 0.0], [0.0, 1.0]] True"]
