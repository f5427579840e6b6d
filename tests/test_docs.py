"""README, documentation and help name every page, command, option and strategy, and none that does not exist.

Python in the documentation is run, and prints what is shown below it.
"""

import ast
import contextlib
import io
import re
import shlex
import sys
from functools import partial

import pytest
import typer

import engine.evaluation.sweep
import engine.retrieval.index
from engine.documents.loaders import FORMATS
from engine.documents.splitters import SPLITTERS
from engine.evaluation.metrics import METRICS
from engine.generation.sampling import RULES
from engine.generation.settings import READINGS
from engine.layers.pooling import POOLINGS
from engine.models.precision import PRECISIONS
from engine.retrieval.index_kinds import INDEX_KINDS
from engine.retrieval.retrievers import RETRIEVERS
from engine.settings import SETTINGS
from tests.command_line import ROOT, app, run
from ui.corpus import shared_vectors

DOCS = [
    *ROOT.glob("*.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "data" / "README.md",
    ROOT / ".github" / "SECURITY.md",
]
COMMAND_LINE = ROOT / "docs" / "command_line.md"
FORMAT_GUIDE = ROOT / "docs" / "documents_and_models.md"
BEGIN, END = "<!-- written by python -m tests.test_docs -->", "<!-- end -->"
PICTURES = ROOT / "docs" / "screenshots"
MOST_BYTES, MOST_BYTES_IN_ALL = 200_000, 3_000_000  # of pictures
PYTHON = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
APP = "http://localhost:8501/"
CONTRACT = "The office is closed on Mondays. The notice period is three months, to the end of a quarter."
COMMANDS = {
    name: {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    for name, command in typer.main.get_command(app).commands.items()
}


TABLES = {
    "Splitters": ("How documents are cut into chunks.", SPLITTERS),
    "Poolings": ("How the vectors of a chunk's tokens become one.", POOLINGS),
    "Precisions": ("How the encoder's layers compute.", PRECISIONS),
    "Retrievers": ("What finds the passages, and puts them in order.", RETRIEVERS),
    "Index kinds": ("What finds the nearest vectors.", INDEX_KINDS),
    "Metrics": ("What experiments report, each the mean over questions.", METRICS),
    "Sampling": ("How the next token of an answer is chosen.", RULES),
}


def table_lines(*rows):
    """A table in Markdown, whose first row is the head."""
    head, *others = [[str(configuration).replace("|", "\\|") for configuration in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others)]


def settings_guide():
    """The text of docs/settings.md, from the engine's tables."""
    parts = [
        "# Settings\n\nThe names are those of the command line, links, saved files and the engine; the app "
        "shows the labels.\nThis page is written by `python -m tests.test_docs` from the engine's tables.\n"
    ]
    rows = [
        (f"`{key}`", one.title, one.stage, one.help, values_of(one), one.words(one.default))
        for key, one in SETTINGS.items()
    ]
    head = ("name", "label", "applies to", "meaning", "values", "default")
    parts.append("\n".join(["## All settings\n", *table_lines(head, *rows), ""]))
    for title, (intro, table) in TABLES.items():
        rows = [(f"`{name}`", entry.label, entry.help) for name, entry in table.items()]
        lines = table_lines(("name", "label", "meaning"), *rows)
        parts.append("\n".join([f"## {title}\n\n{intro}\n", *lines, ""]))
    rows = [(one.label, ", ".join(one.suffixes)) for one in FORMATS.values()]
    parts.append("\n".join(["## File formats\n", *table_lines(("format", "suffixes"), *rows), ""]))
    return "\n".join(parts)


def values_of(setting):
    """The values of a setting in words: its choices, its range, or on and off."""
    if setting.choices:
        return ", ".join(f"`{name}`" for name in [*setting.choices, *filter(None, [setting.own])])
    if isinstance(setting.default, bool):
        return "on, off"
    return "" if setting.high is None else f"{setting.low:g} to {setting.high:g}"


def command_tables():
    """The tables of docs/command_line.md: all commands and all options, from their help."""
    commands, options = [("command", "does")], {}
    for name, command in typer.main.get_command(app).commands.items():
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in arguments]
        commands.append((f"`{' '.join([name, *words])}`", " ".join(command.help.split())))
        for each in command.params:
            if each not in arguments and not each.hidden:
                shown = each.show_default if isinstance(each.show_default, str) else each.default
                fixed = "" if shown is None or shown is False or shown == "" else f"`{shown}`"
                options.setdefault((f"`{each.opts[-1]}`", each.help, fixed), []).append(name)
    rows = [(option, ", ".join(names), text, value) for (option, text, value), names in options.items()]
    head = ("option", "commands", "meaning", "default")
    return "\n".join([*table_lines(*commands), "", *table_lines(head, *rows)])


def command_guide():
    """The text of docs/command_line.md, with its tables from the help of the commands."""
    text = COMMAND_LINE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{command_tables()}\n{END}{rest.split(END, 1)[1]}"


def format_table():
    """What is read of each format and what is not, from the marks of the tests that show it."""
    found = {}
    for path in sorted((ROOT / "tests" / "engine" / "documents").glob("test_*.py")):
        for _, kind, names in re.findall(
            r"^(@pytest\.mark\.(reads|leaves_out)\((.*?)\))$", path.read_text("utf-8"), re.M | re.S
        ):
            name, *what = ast.literal_eval(f"[{names}]")
            found.setdefault(name, {}).setdefault(kind, []).extend(what)
    kinds = ("reads", "leaves_out")
    rows = ((name, *("; ".join(one.get(kind, ())) for kind in kinds)) for name, one in found.items())
    head = ("format", "read", "left out (a note says so, but for what stands in brackets)")
    return "\n".join(table_lines(head, *sorted(rows, key=lambda row: row[0].lower())))


def format_guide():
    """The text of docs/documents_and_models.md, with its table of formats."""
    before, rest = FORMAT_GUIDE.read_text(encoding="utf-8").split(BEGIN, 1)
    return f"{before}{BEGIN}\n{format_table()}\n{END}{rest.split(END, 1)[1]}"


def lines_of(path, start):
    return re.findall(rf"{re.escape(start)} (\w[\w-]*)(.*)", path.read_text(encoding="utf-8"))


def rows(path, heading):
    """The configurations of the first table below a heading."""
    text = path.read_text(encoding="utf-8").split(heading, 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE).group()
    return [
        [configuration.strip() for configuration in line.strip("|\n").split("|")]
        for line in table.splitlines()[2:]
    ]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_commands_and_options_in_examples_exist(path):
    for command, rest in lines_of(path, "python -m engine"):
        assert command in COMMANDS, f"{path.name} names the command {command}"
        unknown = set(re.findall(r"(?<!\S)--[\w-]+", rest.split("`")[0])) - COMMANDS[command] - {"--help"}
        assert not unknown, f"{path.name} gives {command} the options {unknown}"
    for name in re.findall(r"python -m benchmarks\.(\w+)", path.read_text(encoding="utf-8")):
        assert (ROOT / "benchmarks" / f"{name}.py").is_file() or name == "NAME", f"{path.name}: {name}"


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_and_pictures_lead_to_files(path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_command_and_option_is_documented():
    assert COMMAND_LINE.read_text(encoding="utf-8") == command_guide()
    assert FORMAT_GUIDE.read_text(encoding="utf-8") == format_guide()
    shown = {command for command, _ in lines_of(ROOT / "README.md", "python -m engine")}
    assert shown == set(COMMANDS)


def pages_of_the_app():
    """The title of every page, by its folder."""
    calls = [
        node
        for node in ast.walk(ast.parse((ROOT / "ui" / "frame.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "page"
    ]
    return {call.args[0].value: call.args[1].value for call in calls}


def test_every_page_is_in_the_readme():
    pages = pages_of_the_app()
    assert [row[0] for row in rows(ROOT / "README.md", "## Pages")] == list(pages.values())
    found = {str(path.parent.relative_to(ROOT / "pages")) for path in (ROOT / "pages").rglob("page.py")}
    assert found == set(pages)


def test_pages_of_the_app_are_linked_by_title_and_address():
    first, *others = pages_of_the_app().items()
    addresses = {first[1]: "", **{title: folder.split("/")[-1] for folder, title in others}}
    table = rows(ROOT / "docs" / "pages.md", "# Pages of the app")
    assert [row[:2] for row in table] == [
        [f"[{title}]({APP}{address})", f"`/{address}`"] for title, address in addresses.items()
    ]
    for path in DOCS:
        for title, address in re.findall(
            rf"\[([^]]+)\]\({re.escape(APP)}([^)]*)\)", path.read_text(encoding="utf-8")
        ):
            assert addresses.get(title) == address, f"{path.name}: {title} at {address}"


def test_the_map_names_every_folder():
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("\n`pages → ui → engine`")[0]
    folders = {
        path.parent.name
        for part in ("engine", "ui", "pages")
        for path in (ROOT / part).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert {folder for folder in folders if not re.search(rf"\b{folder}\b", tree)} == set()


def test_paths_of_the_guides_for_contributors_exist():
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        paths = re.findall(r"`((?:engine|ui|pages|tests|docs|benchmarks)/[\w/.]+)`", text)
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_picture_is_used_and_taken_by_the_script():
    sizes = {path.name: path.stat().st_size for path in PICTURES.iterdir()}
    used = {
        name
        for path in DOCS
        for name in re.findall(r"screenshots/([\w.]+)\)", path.read_text(encoding="utf-8"))
    }
    script = (ROOT / "docs" / "screenshots.py").read_text(encoding="utf-8")
    taken = {f"{name}.png" for name in re.findall(r"@scene\ndef (\w+)", script)}
    assert set(sizes) == used == taken
    assert max(sizes.values()) < MOST_BYTES
    assert sum(sizes.values()) < MOST_BYTES_IN_ALL


@pytest.mark.parametrize(
    "path",
    [path for path in DOCS if PYTHON.search(path.read_text(encoding="utf-8"))],
    ids=lambda path: path.stem,
)
def test_python_prints_what_is_shown(path, tmp_path, monkeypatch):
    """The vectors of the bundled documents come from their index, not anew for each page."""
    for module, name in ((engine.retrieval.index, "build_index"), (engine.evaluation.sweep, "sweep")):
        monkeypatch.setattr(module, name, partial(getattr(module, name), cache=shared_vectors()))
    monkeypatch.setitem(sys.modules, "glassbox", engine)
    (tmp_path / "my documents").mkdir()
    (tmp_path / "my documents" / "contract.txt").write_text(CONTRACT, encoding="utf-8")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    monkeypatch.chdir(tmp_path)
    for code, shown in PYTHON.findall(path.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, path.name, "exec"), {})
        assert printed.getvalue() == shown


def test_commands_on_a_folder_of_notes_run(tmp_path, monkeypatch):
    """The examples that take a second each: without a language model, a cluster and a server."""
    (tmp_path / "my_notes").mkdir()
    (tmp_path / "my_notes" / "trip.md").write_text("# Trip\n\nThe museum is closed on Mondays.\n")
    monkeypatch.chdir(tmp_path)
    lines = [
        line
        for path in DOCS
        for line in re.findall(
            r"^(?:python -m engine|glassbox) (.*my_(?:notes|index).*)$", path.read_text("utf-8"), re.M
        )
        if re.match("search|ask|index|embed|diagnose", line)
        and not re.search("--(write|store|ray|tag)", line)
    ]
    assert len(lines) > 8
    for line in sorted(set(lines), key=lambda each: "--index" in each):  # an index is made before it is read
        done = run(*shlex.split(line), "--quiet")
        assert done.exit_code == 0, f"{line}: {done.stderr}"


def test_every_setting_is_in_the_guide():
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == settings_guide()


@pytest.mark.parametrize(
    ("command", "option", "table"),
    [
        *(
            (name, "--pooling", POOLINGS)
            for name in ("ask", "search", "embed", "answers", "sweep", "evaluate")
        ),
        *((name, "--splitter", SPLITTERS) for name in ("ask", "search", "embed", "answers", "sweep")),
        *((name, "--retriever", RETRIEVERS) for name in ("ask", "search", "answers", "sweep")),
        *((name, "--reads", READINGS) for name in ("ask", "answers")),
        ("serve", "--retriever", RETRIEVERS),
        ("serve", "--pooling", POOLINGS),
        ("index", "--index-kind", INDEX_KINDS),
        ("index", "--pooling", POOLINGS),
    ],
)
def test_help_lists_every_choice(command, option, table):
    parameters = typer.main.get_command(app).commands[command].params
    text = next(parameter.help for parameter in parameters if option in parameter.opts)
    assert set(table) <= set(re.findall(r"[\w-]+", text))


if __name__ == "__main__":
    (ROOT / "docs" / "settings.md").write_text(settings_guide(), encoding="utf-8")
    COMMAND_LINE.write_text(command_guide(), encoding="utf-8")
    FORMAT_GUIDE.write_text(format_guide(), encoding="utf-8")
