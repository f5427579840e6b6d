"""Calls in a child process with limits on time and memory: hostile input must not end the tests with it."""

import multiprocessing
import resource
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

PRELOADED = [
    "engine",
    "engine.documents.loaders",
    "engine.evaluation.sweep_store",
    "engine.weights.gguf_file",
]
MEGABYTE = 1024**2

context = multiprocessing.get_context("forkserver")  # imports once, and then forks without threads
context.set_forkserver_preload(PRELOADED)


@dataclass(frozen=True)
class Outcome:
    """What a call gave: its result, or the class and the message of its error; its peak of memory."""

    result: Any = None
    error: str = ""
    message: str = ""
    megabytes: float = 0.0


def in_child(function, *arguments, seconds=20, megabytes=1500, **options):
    """Call a function that can be imported; a child that hangs or dies has the error "Killed"."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=call, args=(sender, megabytes, function, arguments, options))
    # Tests of the app leave a script of theirs as the main module, which the child would run.
    with patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):
        process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else Outcome(error="Killed", message="too long")
    except EOFError:
        process.join()
        return Outcome(error="Killed", message=f"exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def call(sender, megabytes, function, arguments, options):
    """Call the function within the limits, and send the outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE,) * 2)
    result, error, message = None, "", ""
    try:
        result = function(*arguments, **options)
    except BaseException as raised:
        error, message = type(raised).__name__, str(raised)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    try:
        sender.send(Outcome(result, error, message, peak))
    except Exception:  # a result that cannot be sent
        sender.send(Outcome(None, error, message, peak))
