"""Entry point of ``python -m engine``, and of the command `glassbox` of the installed package."""

# All add their commands to the app.
from .cli import decoders, diagnosis, drafts, evaluation, export, index, reader, serve, web  # noqa: F401
from .cli.main import app
from .installed import PROGRAM


def main() -> None:
    """Run the command that the arguments name."""
    app(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
