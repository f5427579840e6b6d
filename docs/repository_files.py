"""Add Markdown files from outside this folder to the documentation site, with links that lead there."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# The page of each file of the repository that is not in this folder.
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    ".github/SECURITY.md": "security.md",
    "data/README.md": "bundled_data.md",
}
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    sources = {target: source for source, target in PAGES.items()}
    own = page.file.src_uri
    source = sources.get(own, f"docs/{own}")  # within the repository

    def to_page(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        target = PAGES.get(path, path.removeprefix("docs/"))
        return f"]({posixpath.relpath(target, posixpath.dirname(own))}"

    return LINK.sub(to_page, markdown)
