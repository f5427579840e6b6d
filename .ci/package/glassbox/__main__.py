"""Entry point of ``python -m glassbox``."""

from .engine.__main__ import main

main()
