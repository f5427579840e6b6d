"""Entry point of ``python -m engine``, and of the command `glassbox` of the installed package."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .cli.main import app
from .cli.settings_file import SETTINGS_FILE
from .installed import PROGRAM

OF_MAIN = ("search", "ask", "embed", "verify")
OTHERS = ("decoders", "diagnosis", "drafts", "evaluation", "export", "index", "reader", "serve", "web")


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Add the commands of all modules to the app, where the arguments may be of others than `main`'s."""
    has_settings = Path(SETTINGS_FILE).exists() or any(each.startswith("--settings") for each in arguments)
    if has_settings or not arguments or arguments[0] not in OF_MAIN:
        for module in OTHERS:
            import_module(f".cli.{module}", __package__)


def main() -> None:
    """Run the command that the arguments name."""
    load_commands(sys.argv[1:])
    app(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
