"""Entry point of ``python -m engine``."""

import engine.cli.decoders
import engine.cli.evaluation
import engine.cli.export
import engine.cli.index
import engine.cli.reader
import engine.cli.serve  # noqa: F401 (all six add their commands to the app)
from engine.cli.main import app

app(prog_name="python -m engine")
