"""A capture that is recorded once and replayed: importing JAX is what takes long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shardscope.inspector.capture.propagation import Propagation
from shardscope.inspector.capture.protocol import bootstrap, wire
from shardscope.inspector.capture.spawn import Request, capture

REPLAY = """
import os, sys, time
folder, *arguments = sys.argv[1:]
if arguments:
    data = open(folder + "/frames", "rb").read()
    for start in range(0, len(data), len(data) // 10 + 1):
        time.sleep(0.03)
        os.write(int(arguments[1]), data[start:start + len(data) // 10 + 1])
else:
    source, destination, _ = sys.stdin.read().split("\\n")
    open(destination, "wb").write(open(folder + "/propagated", "rb").read())
"""


def record(folder: Path) -> None:
    """Capture the script once, and have all captures replay that: importing JAX is what takes long."""
    frames: list[bytes] = []
    read, ask, command = wire.read, Propagation._ask, bootstrap.command

    def reading(*arguments: Any) -> Iterator[wire.Frame]:
        for frame in read(*arguments):
            frames.append(wire.encode(frame))
            yield frame

    def asking(own: Propagation, process: Any, source: Path, destination: Path, *more: Any) -> Any:
        found = ask(own, process, source, destination, *more)
        (folder.parent / "propagated").write_bytes(destination.read_bytes())
        return found

    wire.read, Propagation._ask = reading, asking  # type: ignore[assignment, method-assign]
    *_, last = capture(Request(str(folder / "script.py:fn")))
    wire.read, Propagation._ask = read, ask  # type: ignore[method-assign]
    assert last.complete, last.failure
    (folder.parent / "frames").write_bytes(b"".join(frames))

    def replayed(python: str, entry: str, *arguments: str, hello: str = "") -> list[str]:
        if entry not in ("main", "provenance"):
            return command(python, entry, *arguments, hello=hello)
        return [python, "-S", "-E", "-c", REPLAY, str(folder.parent), *arguments]

    bootstrap.command = replayed
