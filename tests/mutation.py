"""Mutation score of the tests: `python -m tests.mutation --number 200 --jobs 2`.

Seeded random changes (an operator, a constant, a returned value) are made one at a time to modules of the
engine, in a copy of the tree. Each runs the tests that import its module, in a forked process that has the
heavy libraries loaded. A mutant is killed when a test fails, or when the tests take far longer than before.
"""

import argparse
import ast
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

FOLDERS = ("engine/layers", "engine/retrieval", "engine/evaluation")
HEAVY = (
    "scipy.stats",
    "numba",
    "faiss",
    "hypothesis",
    "pytest",
    "transformers",
    "sentence_transformers",
    "bm25s",
)
MEMORY = 6 * 1024**3  # bytes of data that one run of tests may hold
SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """One change to a module: `old` becomes `new` at a span of bytes."""

    path: str  # relative to the root of the tree
    line: int
    start: int
    end: int
    old: str
    new: str

    def source(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.old.split())}  ->  {self.new}"


# ---------------------------------------------------------------- what may be changed


def changed(node: ast.AST) -> str | None:
    """The node with one thing changed, as source; None where nothing of it is."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return f"({ast.unparse(ast.BinOp(left, SWAPPED[type(op)](), right))})"
        case ast.Compare(left, [op, *rest], comparators):
            return f"({ast.unparse(ast.Compare(left, [SWAPPED[type(op)](), *rest], comparators))})"
        case ast.BoolOp(op, values):
            return f"({ast.unparse(ast.BoolOp(SWAPPED[type(op)](), values))})"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            return repr(not value)
        case ast.Constant(int(value)):
            return repr(value + 1)
        case ast.Constant(float(value)):
            return repr(2 * value or 1.0)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None"
    return None


def nodes_that_run(node: ast.AST):
    """All nodes below one but those of annotations, decorators and formatted strings."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from nodes_that_run(child)


def imported(tree: ast.AST) -> set[str]:
    """The modules that a file imports, and what may be one: `engine.a.b` of `from engine.a import b`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def mutants_of(root: Path, path: Path) -> list[Mutant]:
    """All mutants of a module; none of a compiled one, which is a definition's twin."""
    source = path.read_bytes()
    tree = ast.parse(source)
    if any(name.split(".")[0] in ("numba", "llvmlite") or name.endswith(".jit") for name in imported(tree)):
        return []
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in nodes_that_run(tree):
        if (new := changed(node)) is not None:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            old = source[start:end].decode()
            found.append(Mutant(str(path.relative_to(root)), node.lineno, start, end, old, new))
    return found


# ---------------------------------------------------------------- which tests look at a module


def module_name(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def tests_of(root: Path, folders: tuple[str, ...]) -> dict[str, list[str]]:
    """By module: the test files that import it, or else those that import its importers, and so on."""
    engine = {module_name(root, path): path for path in root.glob("engine/**/*.py")}
    importers = {name: imported(ast.parse(path.read_bytes())) for name, path in engine.items()}
    test_files = {
        str(path.relative_to(root)): imported(ast.parse(path.read_bytes()))
        for path in root.glob("tests/engine/**/test_*.py")
        if path.name != "test_imports.py"
    }
    chosen = {}
    for name, path in engine.items():
        if str(path.relative_to(root)).startswith(tuple(f"{folder}/" for folder in folders)):
            targets, seen = {name}, set()
            while targets and name not in chosen:
                if files := sorted(file for file, names in test_files.items() if names & targets):
                    chosen[name] = files
                seen |= targets
                targets = {other for other, names in importers.items() if names & targets} - seen
    return chosen


# ---------------------------------------------------------------- running


def start(copy: Path, files: list[str], seed: int) -> int:
    """Run test files in a forked process; return its id."""
    if process := os.fork():
        return process
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    sys.dont_write_bytecode = True
    os.chdir(copy)
    sys.path[:] = [
        str(copy),
        *(place for place in sys.path if place not in ("", os.environ["MUTATION_HOME"])),
    ]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "engine")]:
        del sys.modules[name]
    with (copy / "tests.log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    import pytest

    code = 99
    try:
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", *files]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def copy_tree(root: Path, to: Path) -> Path:
    """A copy with the times of its files, by which compiled kernels are known."""
    ignored = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "*.npz")
    return Path(shutil.copytree(root, to, ignore=ignored, symlinks=True))


@dataclass(frozen=True)
class Trial:
    """Test files to run on the tree with one change, or unchanged."""

    mutant: Mutant | None
    files: list[str]
    limit: float  # seconds, after which it is ended


def outcomes(copies: list[Path], trials: list[Trial], seed: int) -> Iterator[tuple[int, int | None, float]]:
    """Place, exit code (None: too slow) and seconds of each trial; one runs in each copy at a time."""
    waiting, free = list(enumerate(trials)), list(copies)
    running: dict[int, tuple[int, Path, float]] = {}  # by process
    while waiting or running:
        while waiting and free:
            (place, trial), copy = waiting.pop(0), free.pop()
            if trial.mutant:
                path = copy / trial.mutant.path
                kept, times = path.read_bytes(), path.stat()
                path.rename(path.with_suffix(".kept"))
                path.write_bytes(trial.mutant.source(kept))
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 10**9 * (place + 1)))
            running[start(copy, trial.files, seed)] = (place, copy, time.monotonic())
        time.sleep(0.05)
        for process, (place, copy, begun) in list(running.items()):
            trial, seconds = trials[place], time.monotonic() - begun
            done, status = os.waitpid(process, os.WNOHANG)
            if not done and seconds < trial.limit:
                continue
            if not done:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
            if trial.mutant:
                path = copy / trial.mutant.path
                path.with_suffix(".kept").replace(path)
            del running[process]
            free.append(copy)
            yield place, os.waitstatus_to_exitcode(status) if done else None, seconds


def unchanged(copies: list[Path], files: list[str], seed: int) -> dict[str, float]:
    """How many seconds each test file takes with nothing changed; one that fails is named and left out."""
    taken = {}
    for place, code, seconds in outcomes(copies, [Trial(None, [file], 3600) for file in files], seed):
        if code == 0:
            taken[files[place]] = seconds
        state = f"{seconds:.1f} s" if code == 0 else f"fails unchanged (exit code {code}): left out"
        print(f"{files[place]}: {state}", file=sys.stderr, flush=True)
    return taken


def killed(copies: list[Path], trials: list[Trial], seed: int) -> list[bool]:
    """Whether the tests of each mutant fail, or take too long."""
    results = [False] * len(trials)
    for done, (place, code, seconds) in enumerate(outcomes(copies, trials, seed), 1):
        results[place] = code != 0
        mark = "too slow" if code is None else "killed" if code else "SURVIVED"
        print(
            f"[{done}/{len(trials)}] {mark} in {seconds:.0f} s: {trials[place].mutant}",
            file=sys.stderr,
            flush=True,
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the tree to test (it is copied)")
    parser.add_argument(
        "--folders", nargs="+", default=FOLDERS, help=f"folders to change: {' '.join(FOLDERS)}"
    )
    parser.add_argument("--skip", nargs="*", default=(), help="names of modules to leave as they are")
    parser.add_argument("--number", type=int, default=200, help="mutants to try (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants, and of hypothesis")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests, run nothing")
    options = parser.parse_args()
    root, folders = options.root.resolve(), tuple(folder.rstrip("/") for folder in options.folders)

    tests = tests_of(root, folders)
    points = [
        mutant
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
        if path.stem not in options.skip and module_name(root, path) in tests
        for mutant in mutants_of(root, path)
    ]
    chosen = sorted(
        random.Random(options.seed).sample(points, min(options.number, len(points))),
        key=lambda mutant: (mutant.path, mutant.start),
    )
    files = {mutant: tests[module_name(root, root / mutant.path)] for mutant in chosen}
    if options.list:
        for mutant in chosen:
            print(mutant, *files[mutant], sep="\n    ")
        print(f"{len(chosen)} of {len(points)} mutants")
        return

    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    os.environ.update(HF_HUB_OFFLINE="1", MUTATION_HOME=str(Path.cwd()))
    for name in HEAVY:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_tree(root, Path(folder) / "0")]
        every_file = sorted({file for names in files.values() for file in names})
        seconds = unchanged(copies, every_file[:1], options.seed)  # compiles the kernels, for all copies
        copies += [copy_tree(copies[0], Path(folder) / str(n)) for n in range(1, options.jobs)]
        seconds |= unchanged(copies, every_file[1:], options.seed)
        trials = []
        for mutant, names in files.items():
            if passing := sorted((name for name in names if name in seconds), key=seconds.__getitem__):
                trials.append(Trial(mutant, passing, 60 + 4 * sum(seconds[name] for name in passing)))
        results = killed(copies, trials, options.seed)

    chosen = [trial.mutant for trial in trials]
    total = Counter(mutant.path for mutant in chosen)
    dead = Counter(mutant.path for mutant, is_dead in zip(chosen, results, strict=True) if is_dead)
    print("\nSurvivors:")
    for mutant, is_dead in zip(chosen, results, strict=True):
        if not is_dead:
            print(f"  {mutant}")
    print("\nkilled  of  file")
    for path, n in sorted(total.items()):
        print(f"{dead[path]:6} {n:3}  {path}")
    print(f"{sum(results):6} {len(results):3}  all: {sum(results) / max(len(results), 1):.1%}")


if __name__ == "__main__":
    main()
