"""The command that starts the app: ``python -m engine app``."""

import os
import subprocess
import sys
from importlib.util import find_spec

import typer

from ..errors import InputError
from ..installed import ROOT, install_command
from .main import app

SCRIPT = ROOT / "streamlit_app.py"


@app.command(name="app", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def app_command(context: typer.Context) -> None:
    """Start the app in the browser; options are those of `streamlit run`, such as --server.port 8600."""
    if find_spec("streamlit") is None:
        raise InputError(f"the app needs streamlit, which is not installed: {install_command('app')}")
    command = [sys.executable, "-m", "streamlit", "run", str(SCRIPT), *context.args]
    if os.name == "nt":  # where a program cannot take the place of another one
        raise typer.Exit(subprocess.call(command))
    os.execv(sys.executable, command)
