"""How the commands that capture do it: what a function may be called, and what a terminal shows meanwhile."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from shardscope.configuration import Found, configuration_above
from shardscope.inspector.capture.model import PHASES, Capture
from shardscope.inspector.capture.protocol.request import is_file, split_function
from shardscope.inspector.capture.spawn import Begun
from shardscope.samples.catalogue import samples


def watched(begun: Begun) -> Capture:
    """All that a capture gives, when it is over; a terminal shows meanwhile what is being done."""
    return deque(_with_progress(begun.captures), maxlen=1).pop()


def located(function: str) -> str:
    """A sample's name as the path of its file, anything else as it is; the user's own module of that name wins."""
    name, _, attribute = function.partition(":")
    if os.path.exists(f"{name}.py") or os.path.isdir(name):
        return function
    for sample in samples():
        if sample.name == name:
            return f"{sample.path}:{attribute or sample.functions[0]}"
    return function


def settings_of(function: str) -> Found:
    """The settings that hold for a function: those above its script, or above the folder that one is in."""
    place, _ = split_function(function)
    return configuration_above(Path(place).parent if is_file(place) else Path())


def _with_progress(captures: Iterator[Capture]) -> Iterator[Capture]:
    """The captures, while a terminal shows what is being done."""
    # The capturing process is on its way while this is imported.
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield from captures
        return
    with console.status("") as status:
        for capture in captures:
            if capture.progress is not None:
                status.update(f"{PHASES[capture.progress.phase]} …")
            yield capture
