"""Progress as a line on a terminal's standard error, erased in the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
