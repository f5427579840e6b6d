"""The command that starts the app: ``python -m engine app``."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import typer

from ..errors import InputError
from ..installed import ROOT, install_command
from ..models.second_models import SECOND_MODELS
from ..progress import say
from ..settings import SETTINGS
from .main import app
from .options import grouped

SCRIPT = ROOT / "streamlit_app.py"


# The settings of the server that take the place of options; `docs/deployment.md` lists them.
VARIABLES = {"model": "GLASSBOX_ENCODER", "decoder": "GLASSBOX_DECODER"} | {
    kind: f"GLASSBOX_{kind.upper()}" for kind in SECOND_MODELS
}


@app.command(name="app", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@grouped
def app_command(context: typer.Context) -> None:
    """Start the app in the browser; other options are those of `streamlit run`, as --server.port 8600."""
    if find_spec("streamlit") is None:
        raise InputError(f"the app needs streamlit, which is not installed: {install_command('app')}")
    environment = {**variables(context.obj), **os.environ}
    command = [sys.executable, "-m", "streamlit", "run", str(SCRIPT), *context.args]
    if os.name == "nt":  # where a program cannot take the place of another one
        raise typer.Exit(subprocess.call(command, env=environment))
    os.execve(sys.executable, command, environment)


def variables(values: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as environment variables of the app; warn of those that it does not take."""
    taken = {key: each for key, each in values.items() if key in SETTINGS and SETTINGS[key].allows(each)}
    own = {VARIABLES[key]: each for key, each in values.items() if key in VARIABLES and each}
    known = {*taken, *VARIABLES}
    if left := [key for key, each in values.items() if each is not None and key not in known]:
        say(f"warning: the app does not take {', '.join(left)} of the settings")
    return {"GLASSBOX_SETTINGS": json.dumps(taken), **own}
