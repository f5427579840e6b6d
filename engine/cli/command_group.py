"""How the commands end: with a line and an exit code in place of a traceback."""

import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.exceptions import TyperException

from ..errors import GlassboxError
from ..wording import error_words

CLOSED_PIPE = 141  # exit code of programs that SIGPIPE ends, in a shell
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CommandGroup(TyperGroup):
    """The commands, with their help.

    The engine's errors, and files that cannot be read or written, become a line and exit code 2. Where the
    reader of a pipe has left, the exit code is `CLOSED_PIPE`, without a line.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; the arguments are those of typer."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # the shell closed it; `print` would take stdout for stderr
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does
        try:
            try:
                code = super().main(*args, **{**kwargs, "standalone_mode": False})
            except SystemExit as end:
                if isinstance(end.__context__, BrokenPipeError):  # to which typer and rich give exit code 1
                    raise end.__context__ from None
                raise
            sys.stdout.flush()
            sys.exit(code if isinstance(code, int) else 0)
        except GlassboxError as error:
            print(f"error: {error_words(error)}", file=sys.stderr)
            sys.exit(2)
        except TyperException as error:  # a command or an option that is not as it should be
            context = getattr(error, "ctx", None)
            where = f" (see {context.command_path} -h)" if context else ""
            print(f"error: {error.format_message()}{where}", file=sys.stderr)
            sys.exit(2)
        except BrokenPipeError:
            discard_output()
            sys.exit(CLOSED_PIPE)
        except MemoryError:
            print("error: memory does not suffice: give less, or close other programs", file=sys.stderr)
            sys.exit(2)
        except OSError as error:
            if error.filename is None and error.errno not in FULL:
                raise
            line = f"{error.filename} cannot be used ({error.strerror}): check its path"
            if error.filename is None:
                discard_output()
                line = f"the output cannot be written ({error.strerror}): make room"
            print(f"error: {error_words(line)}", file=sys.stderr)
            sys.exit(2)


def discard_output() -> None:
    """Let standard output go nowhere, so that the rest of it raises nothing when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
