"""Write docs/licences.md, the licences of all packages that the app installs: ``python -m docs.licences``."""

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / ".ci" / "requirements.lock"
INTRODUCTION = """\
# Licences

The packages that the app installs, with those that these need, as `.ci/requirements.lock` lists them, and the
licences that their own metadata state. `python -m docs.licences` writes this page. Glassbox itself is under
the Apache License 2.0; licences of the bundled texts and models stand in [data/README.md](../data/README.md).
"""
LICENCE = "License :: "
WORDS = 80  # characters of a licence; some packages state its whole text


def locked(lock: str) -> list[tuple[str, str]]:
    """Return name and version of every package of a lock file."""
    return re.findall(r"^([\w.-]+)==([\w.+-]+)", lock, re.MULTILINE)


def licence(name: str) -> str:
    """Return the licence that an installed package states: an SPDX expression, or in its own words."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "not installed"
    if expression := about.get("License-Expression"):
        return str(expression)
    stated = [text.split(" :: ")[-1] for text in about.get_all("Classifier", []) if text.startswith(LICENCE)]
    lines = (about.get("License") or "").strip().splitlines()
    stated = [text for text in stated if text != "OSI Approved"]  # which names no licence
    return ", ".join(stated) or (lines[0][:WORDS] if lines else "not stated")


def page() -> str:
    """Return the page."""
    rows = [f"| {name} | {version} | {licence(name)} |" for name, version in locked(LOCK.read_text("utf-8"))]
    return "\n".join([INTRODUCTION, "| package | version | licence |", "|---|---|---|", *sorted(rows), ""])


if __name__ == "__main__":
    (ROOT / "docs" / "licences.md").write_text(page(), "utf-8")
