"""Entry point of ``python -m engine``."""

import engine.cli.evaluation  # noqa: F401 (adds its commands to the app)
from engine.cli.main import app

app(prog_name="python -m engine")
