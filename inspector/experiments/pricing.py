"""Changes of requests, priced by Shardy in a process of its own: no JAX, and no compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from ...parsers.record import Record
from ...parsers.source import Frame
from ..capture.propagation import has_mesh
from ..capture.protocol import bootstrap
from ..capture.scratch import Scratch
from ..ir.program import Program

START_S = 10.0
"""Seconds in which the process starts and reads the module, besides those for prices."""


class PricedChange(Record, frozen=True):
    """A request and its new spec, as JAX spells it; None where a constraint is left out.

    `name` is the path of an argument or a result, else an operation; `frames` are where an operation is written.
    """

    kind: Literal["argument", "result", "constraint", "new"]
    name: str
    spec: str | None
    now: str | None
    spelled: bool
    frames: tuple[tuple[str, str, int, int, int, int], ...] = ()
    tied: str = ""

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The frames, innermost first."""
        return tuple(
            Frame(file, function, line, column, end_line, end_column)
            for function, file, line, column, end_line, end_column in self.frames
        )


class PricedCandidate(Record, frozen=True):
    """Changes that are made together; `price` is in bytes that a device sends, for an order of candidates alone."""

    kind: Literal["a", "b", "c", "d"]
    changes: tuple[PricedChange, ...]
    price: float


class Prices(Record, frozen=True):
    """The candidates that cost less than the program, the cheapest first, and what the program costs."""

    today: float = 0.0
    candidates: tuple[PricedCandidate, ...] = ()


def prices(program: Program, python: str | None, seconds: float) -> Prices:
    """Return the priced candidates of a lowered program; none where Shardy fails, or there is nothing to change."""
    stage = program.stage("stablehlo")
    if stage is None or not has_mesh(stage.text.data):
        return Prices()
    with Scratch() as folder:
        source, destination = folder / "lowered.mlir", folder / "prices.json"
        source.write_bytes(stage.text.data)
        job = f"{source}\n{destination}\n{seconds}".encode()
        command = bootstrap.command(python or sys.executable, "requests.main")
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command,
                input=job,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds + START_S,
                check=False,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )
        return _read(destination)


def _read(path: Path) -> Prices:
    try:
        found = json.loads(path.read_bytes())
        candidates = msgspec.convert(found["candidates"], tuple[PricedCandidate, ...])
    except (OSError, ValueError, KeyError, msgspec.ValidationError):
        return Prices()
    return Prices(float(found["today"]["bytes"]), candidates)
