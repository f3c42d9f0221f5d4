"""The door to standard output and standard error for all that neither the screen nor rich draws."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from shardscope.inspector.capture.output_file import OutputError
from shardscope.inspector.render.printable import printable, without_commands


def show(text: str) -> None:
    """Write to standard output; a terminal, and the log of a GitHub Action, get nothing that they act on.

    Who reads it may close it when they have had enough: what is left is written nowhere.

    Raises:
        OutputError: it cannot be written.
    """
    write(without_commands(printable(text)).encode())


def write(data: bytes) -> None:
    """Write to standard output as it is, but for what a terminal acts on."""
    if sys.stdout is None:
        raise OutputError("cannot write to standard output: it is closed")
    if sys.stdout.isatty():
        data = printable(data.decode("utf-8", "replace")).encode()
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _let_go()
    except OSError as error:
        _let_go()
        raise OutputError(f"cannot write to standard output: {error.strerror}") from error


def say(text: str) -> None:
    """Print a line to standard error, where there is one."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(without_commands(printable(text)), file=sys.stderr, flush=True)


def _let_go() -> None:
    """Have all that is still in buffers, and comes after it, go nowhere, so that Python does not fail when it ends."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open to the end)
