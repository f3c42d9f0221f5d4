"""The door to standard output and standard error for all that neither the screen nor a report draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from shardscope.inspector.capture.output_file import OutputError
from shardscope.inspector.render.printable import printable, without_commands

Tell = Callable[[str], None]


@contextmanager
def progress(what: str = "", *, quiet: bool = False) -> Iterator[Tell]:
    """Show `what` is being done, and whatever the function that is given says later; nothing without a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda text: None
        return
    # A capture begins before this is imported.
    from rich.text import Text

    from shardscope.inspector.render.safe_console import SafeConsole

    with SafeConsole(stderr=True).status(Text(f"{what} …" if what else "")) as status:
        yield lambda text: status.update(Text(f"{text} …"))


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
