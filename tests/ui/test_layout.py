"""The folder ui holds what at least two pages use."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts): file
    for folder in ("pages", "ui")
    for file in (ROOT / folder).rglob("*.py")
    if file.name != "__init__.py"
}


@cache
def imports(file):
    lines = re.findall(r"^ *(?:from|import) (\S+)", file.read_text("utf-8"), re.MULTILINE)
    return set(lines) & MODULES.keys()


def all_imports(file):
    found, ahead = set(), imports(file)
    while ahead:
        found |= ahead
        ahead = set().union(*(imports(MODULES[each]) for each in ahead)) - found
    return found


def page_of(module):
    return module.rpartition(".")[0]


def test_at_least_two_pages_use_every_shared_module():
    users = {module: set() for module in MODULES}
    for module, file in MODULES.items():
        if module.startswith("pages."):
            for each in all_imports(file):
                users[each].add(page_of(module))
    for each in all_imports(ROOT / "streamlit_app.py"):
        users[each] |= {page_of(module) for module in MODULES if module.startswith("pages.")}
    assert [module for module in MODULES if module.startswith("ui.") and len(users[module]) < 2] == []
