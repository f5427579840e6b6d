"""The image, the locked packages, their licences and the development container agree with the repository."""

import json
import re
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.licences import LOCK, locked, page
from tests.test_docs import ROOT, rows

DOCKERFILE = (ROOT / ".ci" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
IGNORED = (ROOT / ".ci" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
# Copied by the last stage of the image, from the repository.
COPIED = {
    name
    for line in re.findall(r"^COPY (?!--from)(.+)", DOCKERFILE.rsplit("\nFROM", 1)[1], re.MULTILINE)
    for name in line.split()[:-1]
}


def direct():
    """Version by name of the packages in requirements.txt."""
    return dict(locked((ROOT / "requirements.txt").read_text(encoding="utf-8")))


def needed(names):
    """The packages that some packages need, and those that these need, by their metadata."""
    found, open_ = set(), [Requirement(name) for name in names]
    while open_:
        one = open_.pop()
        key = canonicalize_name(one.name), frozenset(one.extras)
        if key in found:
            continue
        found.add(key)
        for text in requires(one.name) or ():
            other = Requirement(text)
            if not other.marker or any(other.marker.evaluate({"extra": e}) for e in ("", *one.extras)):
                open_.append(other)
    return {name for name, _ in found}


def test_the_lock_file_has_the_versions_of_the_requirements_and_every_package_that_they_need():
    lock = {
        canonicalize_name(name): version.split("+")[0] for name, version in locked(LOCK.read_text("utf-8"))
    }
    assert {name: lock.get(canonicalize_name(name)) for name in direct()} == direct()
    assert needed(direct()) <= set(lock)


def test_every_locked_package_has_hashes_and_comes_from_no_named_place():
    text = LOCK.read_text("utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked(text))
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|--(?:extra-)?index|--find-links|--trusted-host|@ |(?<![\w.])/\w", text)


def test_the_page_of_licences_lists_every_locked_package_as_it_is_installed():
    table = rows(ROOT / "docs" / "licences.md", "# Licences")
    assert [tuple(row[:2]) for row in table] == sorted(locked(LOCK.read_text("utf-8")))
    own = {row[0]: row[2] for row in table}
    assert not {"", "not installed", "not stated"} & set(own.values())
    lines = re.findall(r"^\| ([\w.-]+) \| [\w.+-]+ \| (.*) \|$", page(), re.MULTILINE)
    now = {name: licence for name, licence in lines if name in direct()}
    assert now == {name: own[name] for name in now}


def test_the_image_holds_the_files_of_the_app():
    assert {"streamlit_app.py", "pages", "engine", "ui", "data", ".streamlit", "LICENSE"} == COPIED
    assert all((ROOT / name).exists() for name in COPIED)
    sent = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    assert IGNORED[0] == "**"
    assert sent == COPIED | {".ci/requirements.lock"}


@pytest.mark.parametrize(
    "line",
    [
        "COPY .ci/requirements.lock ./",
        r"pip install --no-cache-dir --require-hashes .* -r requirements\.lock",
        r"ENV .*GLASSBOX_PUBLIC=1 .*GLASSBOX_CACHE=/models ",
        r"USER 10001\n",
        r"HEALTHCHECK .*http://127\.0\.0\.1:8501/_stcore/health",
        r'CMD \["streamlit", "run", "streamlit_app\.py"\]$',
    ],
)
def test_the_image_installs_the_lock_file_and_runs_without_rights(line):
    assert re.search(line, DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.index("\nUSER ") > DOCKERFILE.rindex("\nRUN ")


def test_the_environment_for_development_installs_the_requirements():
    about = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    command = about["updateContentCommand"]
    assert f"torch=={direct()['torch']} " in command
    assert command.endswith("-r requirements-dev.txt")
