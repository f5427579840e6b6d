"""Entry point of ``python -m engine``."""

from .cli import decoders, evaluation, export, index, reader, serve  # noqa: F401 (all add their commands)
from .cli.main import app

app(prog_name="python -m engine")
