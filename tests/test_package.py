"""The package: what its wheel holds and needs, and that it works away from the repository."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_editable
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from engine import __version__
from tests.command_line import LIGHTHOUSE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# The extras that each file of exact versions stands for, beside the package itself.
FILES = {
    "requirements.txt": ["app", "servers", "official"],
    "requirements-serve.txt": ["serve"],
    "requirements-cluster.txt": ["cluster"],
    "requirements-ocr.txt": ["ocr"],
}
SCRIPT = """
import sys
import glassbox
from glassbox import Index

index = Index.from_folder(sys.argv[1])
for hit in index.search("What was painted green?", k=1):
    print(hit.document, hit.text)
index.save("kept")
print(Index.load("kept", show_progress=False).ask("When was the lighthouse painted?"))
print(glassbox.__version__, sorted({"torch", "streamlit", "engine"} & set(sys.modules)))
"""


def ranges(names):
    """Requirements by name."""
    found = map(Requirement, names)
    return {canonicalize_name(each.name): each for each in found if each.name != PROJECT["name"]}


@pytest.mark.parametrize(("file", "extras"), FILES.items())
def test_the_exact_versions_are_within_the_ranges(file, extras):
    core = PROJECT["dependencies"] if file == "requirements.txt" else []
    wanted = ranges([*core, *(each for extra in extras for each in EXTRAS[extra])])
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pinned = ranges(line for line in lines if line and not line.startswith(("#", "-r")))
    assert {name: one.extras for name, one in pinned.items()} == {n: one.extras for n, one in wanted.items()}
    for name, one in pinned.items():
        [version] = one.specifier
        assert wanted[name].specifier.contains(version.version), f"{name} {version}"


def test_the_version_is_the_newest_release_of_the_changelog_or_comes_after_it():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+), (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    versions = [Version(version) for version, _ in released]
    assert len(versions) == len(re.findall(r"^## (?!Unreleased$)", text, re.MULTILINE))
    assert versions == sorted(set(versions), reverse=True)
    assert [day for _, day in released] == sorted((day for _, day in released), reverse=True)
    version = Version(__version__)
    assert version == versions[0] or (version.is_devrelease and version > versions[0])


def test_all_is_every_extra():
    [every] = map(Requirement, EXTRAS["all"])
    [servers] = [each for each in map(Requirement, EXTRAS["app"]) if each.name == PROJECT["name"]]
    assert {*every.extras, *servers.extras, "all"} == set(EXTRAS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.iterdir()
    return path


def test_the_wheel_holds_one_package_with_all_that_the_repository_runs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package, about = {"glassbox"}, f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"
    assert {name.partition("/")[0] for name in names} == package | {about}
    parts = [path for part in ("engine", "ui", "pages", "data") for path in (ROOT / part).rglob("*.*")]
    own = ["streamlit_app.py", ".streamlit/config.toml", "__init__.py", "__main__.py", "py.typed"]
    own += [path.relative_to(ROOT).as_posix() for path in parts if "__pycache__" not in path.parts]
    assert {f"glassbox/{name}" for name in own} <= names


def used(python, folder, **environment):
    """The lines that commands and a script print, with an installed package, away from the repository."""
    (folder / "notes").mkdir()
    (folder / "notes" / "lighthouse.txt").write_text(LIGHTHOUSE, encoding="utf-8")
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    corpus = ["--corpus", "notes", "--quiet"]
    lines = []
    for arguments in (
        ["-m", "glassbox", "ask", "When was the lighthouse painted?", *corpus],
        ["script.py", "notes"],
    ):
        done = subprocess.run(
            [python, *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == "" or arguments[0] == "script.py"
        lines += done.stdout.splitlines()
    return lines


def assert_used_well(lines):
    assert lines.count("1931") == 2  # the answer of the command, and of the script
    assert lines[-1] == f"{__version__} []"
    assert any(line.startswith("lighthouse.txt The lighthouse of Vardholm") for line in lines)


def test_the_editable_package_works_away_from_the_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as archive:
        archive.extractall(tmp_path / "site")  # as `pip install -e .` does
    [listed] = (tmp_path / "site").glob("*.pth")
    assert_used_well(used(sys.executable, tmp_path, PYTHONPATH=listed.read_text(encoding="utf-8")))


@pytest.mark.nightly
def test_the_package_works_in_an_environment_of_its_own(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"], check=True)
    python = tmp_path / "own" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", wheel], check=True)
    listed = subprocess.run([*pip, "list"], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "streamlit", "plotly", "sentence-transformers"} & set(listed.split())
    assert Path(python.with_name("glassbox")).exists()
    [site] = (tmp_path / "own").rglob("site-packages")
    (site / "engine.py").write_text("raise ImportError('another package of this name')")
    assert_used_well(used(python, tmp_path))
