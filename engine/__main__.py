"""Entry point of ``python -m engine``."""

from engine.cli import app

app(prog_name="python -m engine")
