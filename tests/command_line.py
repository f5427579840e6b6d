"""Commands of `python -m engine`, run in the process of the tests, and code in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from engine.__main__ import app, load_commands

load_commands()
ROOT = Path(__file__).parent.parent
LIGHTHOUSE = (
    "The lighthouse of Vardholm was painted green in 1931.\n\nIts keeper kept bees and sold the honey."
)


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(app, [str(argument) for argument in arguments])


def printed(*arguments):
    """What a command prints as JSON, and nothing else."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refusal(*arguments):
    """The line in which a command that prints nothing else says why it cannot be done."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    line = result.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    return line


def run_python(code, *arguments, **environment):
    """Lines that a new process prints, which ends well."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
