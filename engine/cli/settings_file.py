"""Values of options from a file, which the app writes, too."""

import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from ..documents.loaders import check_address
from ..errors import UNREADABLE, InputError
from ..generation.sampling import RULES
from ..progress import say
from ..settings import SETTINGS, check_value
from ..wording import did_you_mean, reason_of

SETTINGS_FILE = "glassbox.toml"
MAX_BYTES = 1 << 20
PERCENT = "% sure"  # of settings whose options are shares


def apply_settings_file(context: typer.Context, path: Path | None) -> None:
    """Make the values of a file, or of `SETTINGS_FILE` in this folder, the defaults of the options.

    As they stand in the file, they are the ``obj`` of the context.
    """
    found = Path(SETTINGS_FILE) if path is None else path
    context.obj = {}
    if path is not None or found.is_file():
        commands: Any = context.find_root().command
        names = {each.name for one in commands.commands.values() for each in one.params if not each.is_eager}
        context.obj = read_settings(found, {*names, *SETTINGS})
        if path is None:
            say(f"Settings of {found}")
    context.default_map = as_options(context.obj)


def read_settings(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Return the values of a TOML file, or a JSON file as the app writes it.

    Raises
    ------
    InputError
        The file cannot be read, or gives something else than values for options of these names.
    """
    check_address(path)
    try:
        if path.stat().st_size > MAX_BYTES or not path.is_file():
            raise ValueError(f"it is no ordinary file of up to {MAX_BYTES >> 20} MB")
        text = path.read_text(encoding="utf-8-sig")
        given = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
        if not isinstance(given, dict):
            raise ValueError("it has no names of options")
        values = {name.replace("-", "_"): value for name, value in given.items()}
    except (OSError, *UNREADABLE) as error:
        raise InputError(
            f"{path} cannot be read as settings ({reason_of(error)}): give a .toml file with lines like "
            'splitter = "sentences", or a JSON file that the app wrote'
        ) from error
    for name, value in values.items():
        if name not in names:
            raise InputError(f"{path} sets {name!r}, and no option has this name{did_you_mean(name, names)}")
        if isinstance(value, dict):
            raise InputError(f"{path} has a table {name}: give a value for each option")
    return values


def as_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as the options have them: shares in place of percent, and nothing that is off."""
    found = {}
    for name, value in values.items():
        if name in SETTINGS and SETTINGS[name].unit == PERCENT:
            check_value(name, value)
            value /= 100
        is_off = name in RULES and value == RULES[name].off  # which the app writes, and options leave out
        if value is not None and not is_off:
            found[name] = value if isinstance(value, list) else str(value)
    return found
