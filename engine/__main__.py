"""Entry point of ``python -m engine``, and of the command `glassbox` of the installed package."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .cli.main import app
from .cli.settings_file import SETTINGS_FILE
from .installed import PROGRAM

# The commands of each module. All modules take twice as long to load as the one that is needed.
COMMANDS = {
    "main": ("search", "ask", "embed", "verify"),
    "decoders": ("models", "download"),
    "diagnosis": ("diagnose",),
    "drafts": ("draft-questions",),
    "evaluation": ("sweep", "evaluate", "answers"),
    "export": ("export", "export-reader"),
    "index": ("index",),
    "reader": ("train-reader",),
    "serve": ("serve", "mcp"),
    "web": ("app",),
}


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Add the command that arguments name to the app; or all, for help, completion, and files of settings."""
    has_settings = Path(SETTINGS_FILE).exists() or any(each.startswith("--settings") for each in arguments)
    named = [] if has_settings else arguments[:1]
    own = [module for module, commands in COMMANDS.items() if {*named} & {*commands}]
    for module in own or COMMANDS:
        import_module(f".cli.{module}", __package__)


def main() -> None:
    """Run the command that the arguments name."""
    load_commands(sys.argv[1:])
    app(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
