"""Entry point of ``python -m engine``."""

import engine.cli.decoders
import engine.cli.evaluation
import engine.cli.export  # noqa: F401 (all three add their commands to the app)
from engine.cli.main import app

app(prog_name="python -m engine")
