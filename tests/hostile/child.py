"""Calls in a child process with limits on time and memory: hostile input must not end the tests with it."""

import multiprocessing
import resource
import sys
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

PRELOADED = [
    "engine",
    "engine.documents.loaders",
    "engine.evaluation.sweep_store",
    "engine.weights.gguf_file",
    "tests.hostile.valid_files",
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
    [outcome] = in_children(partial(function, **options), [arguments], seconds, megabytes)
    return outcome


def in_children(function, cases, seconds=10, megabytes=1500):
    """Call a function with the arguments of each case, and yield the outcomes.

    A child goes on with the next case until one hangs or ends it.
    """
    done = 0
    while done < len(cases):
        for outcome in in_one_child(function, cases[done:], seconds, megabytes):
            done += 1
            yield outcome


def in_one_child(function, cases, seconds, megabytes):
    """Yield the outcomes of cases up to the first that hangs or dies."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=call_each, args=(sender, megabytes, function, cases))
    # Tests of the app leave a script of theirs as the main module, which the child would run.
    with patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):
        process.start()
    sender.close()
    try:
        for _ in cases:
            if not receiver.poll(seconds):
                yield Outcome(error="Killed", message="too long")
                return
            yield receiver.recv()
    except EOFError:
        process.join()
        yield Outcome(error="Killed", message=f"exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def call_each(sender, megabytes, function, cases):
    """Call the function with each case within the limits, and send the outcomes."""
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE,) * 2)
    for arguments in cases:
        result, error, message = None, "", ""
        try:
            result = function(*arguments)
        except BaseException as raised:
            error, message = type(raised).__name__, str(raised)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        try:
            sender.send(Outcome(result, error, message, peak))
        except Exception:  # a result that cannot be sent
            sender.send(Outcome(None, error, message, peak))
