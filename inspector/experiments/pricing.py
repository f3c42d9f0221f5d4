"""Changes of requests, priced by Shardy in a process of its own: no JAX, and no compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import msgspec

from ...parsers.record import Record
from ...parsers.source import Frame
from ..capture.children import run
from ..capture.model import has_mesh
from ..capture.protocol import bootstrap
from ..capture.scratch import Scratch
from ..catalog.spellings import of_all_layers
from ..ir.program import Program
from ..report.findings import FLOPS_PER_BYTE, MEMORY_PER_BYTE

LESS_FLOPS = 0.9
"""Share of the operations up to which work counts as shared."""

LEAST_SHARE = 0.002
"""Share of what the program costs from which a change is worth trying: a transposed spec whose price was 0.5 % less
saved 6 %."""

DOUBTFUL = 0.5
"""Share of what a doubtful candidate may spare that is expected of it."""

START_S = 10.0
"""Seconds in which the process starts and reads the module, besides those for prices."""


class PricedChange(Record, frozen=True):
    """A request and its new spec, as JAX spells it; None where a constraint is left out.

    `name` is the path of an argument or a result, else an operation; `frames` are where an operation is written. A
    result that is an optimizer's leaf has a `parameter`, the path of which is that of a result, too; it is `tied` if it
    becomes an argument of the next step.
    """

    kind: Literal["argument", "result", "constraint", "new", "use"]
    name: str
    spec: str | None
    now: str | None
    spelled: bool
    frames: tuple[tuple[str, str, int, int, int, int], ...] = ()
    parameter: str = ""
    tied: bool = False

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The frames, innermost first."""
        return tuple(
            Frame(file, function, line=line, column=column, end_line=end_line, end_column=end_column)
            for function, file, line, column, end_line, end_column in self.frames
        )


class PricedCandidate(Record, frozen=True):
    """Changes that are made together, the bytes that a device then sends, and its FLOPs: for an order of candidates.

    `spared` are bytes of memory, where a device holds more of arguments than it uses.
    """

    kind: Literal["a", "b", "c", "d", "e", "f"]
    changes: tuple[PricedChange, ...]
    price: float
    flops: float
    spared: float = 0.0


class Prices(Record, frozen=True):
    """The candidates that cost less than the program, the cheapest first, and what the program costs.

    Where the compiled program has `sent` far more than its price, as XLA does where operands conflict, other specs of
    constraints are `doubtful`: they cost more than the price, and less than what is sent.
    """

    today: float = 0.0
    flops: float = 0.0
    candidates: tuple[PricedCandidate, ...] = ()
    doubtful: tuple[PricedCandidate, ...] = ()
    sent: float = 0.0

    def shares_work(self, candidate: PricedCandidate) -> bool:
        """True if devices compute parts of what they now compute in copies."""
        return candidate.flops < LESS_FLOPS * self.flops

    def spared(self, candidate: PricedCandidate) -> float:
        """Bytes that are not sent; operations that are not repeated count as the bytes that take as long."""
        more = self.flops - candidate.flops if self.shares_work(candidate) else 0.0
        if candidate.price > self.today and not more:
            return (self.sent - candidate.price) * DOUBTFUL
        held = candidate.spared / MEMORY_PER_BYTE
        return (self.today - candidate.price) * self.scale + more / FLOPS_PER_BYTE + held

    @property
    def scale(self) -> float:
        """Bytes that are sent for each of the price, where that is too low."""
        return max(1.0, self.sent / self.today) if self.today else 1.0


class PricedRow(Record, frozen=True):
    """An assignment: what is requested otherwise, its price, and the bytes of arguments and results."""

    changes: tuple[PricedChange, ...]
    price: float
    held: float

    @property
    def shardings(self) -> tuple[tuple[str, str], ...] | None:
        """The paths of arguments and results, each with its new spec; None where constraints change as well."""
        if any(each.kind == "constraint" for each in self.changes):
            return None
        return tuple((each.name, each.spec) for each in self.changes if each.spec is not None)

    @property
    def groups(self) -> tuple[PricedCandidate, ...]:
        """The changes that are made together: of all layers, and of one constraint, from one spec to one."""
        found: dict[tuple[object, ...], list[PricedChange]] = {}
        for each in self.changes:
            place = each.stack if each.kind == "constraint" else of_all_layers(each.name)
            found.setdefault((each.kind, place, each.now, each.spec), []).append(each)
        return tuple(PricedCandidate("d", tuple(changes), self.price, 0.0) for changes in found.values())


class Searched(Record, frozen=True):
    """The first rows of a search, today's first; how many assignments there are, and how many are better."""

    size: int = 0
    better: int = 0
    rows: tuple[PricedRow, ...] = ()


def prices(program: Program, python: str | None, seconds: float, sent: int | None = None) -> Prices:
    """Return the priced candidates of a lowered program; none where Shardy fails, or there is nothing to change.

    The compiled program has `sent` so many bytes, if that is known.
    """
    found = _asked(program, python, "main", seconds, str(sent or 0))
    try:
        today, flops = float(found["today"]["bytes"]), float(found["today"]["flops"])
        candidates = msgspec.convert(found["candidates"], tuple[PricedCandidate, ...])
        priced = Prices(today, flops, sent=sent or 0)
        least = LEAST_SHARE * (today * priced.scale + flops / FLOPS_PER_BYTE)
        worth = [each for each in candidates if priced.spared(each) > least]
        doubtful = tuple(each for each in worth if each.price > today and not priced.shares_work(each))
        certain = sorted((each for each in worth if each not in doubtful), key=priced.spared, reverse=True)
        return replace(priced, candidates=tuple(certain), doubtful=doubtful)
    except (TypeError, KeyError, msgspec.ValidationError):
        return Prices()


def searched(program: Program, python: str | None, seconds: float, kept: Iterable[str] = ()) -> Searched:
    """Return the cheapest assignments of specs to arguments, except those that are `kept`."""
    found = _asked(program, python, "suggest", seconds, *kept)
    try:
        return msgspec.convert(found, Searched)
    except msgspec.ValidationError:
        return Searched()


def _asked(program: Program, python: str | None, function: str, seconds: float, *more: str) -> Any:
    """Return what the process that runs Shardy answers; None where it fails, or nothing is sharded."""
    stage = program.stage("stablehlo")
    if stage is None or not has_mesh(stage.text.data):
        return None
    with Scratch() as folder:
        source, destination = folder / "lowered.mlir", folder / "answer.json"
        source.write_bytes(stage.text.data)
        job = "\n".join((str(source), str(destination), str(seconds), *more))
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            command = bootstrap.command(python or sys.executable, f"requests.main:{function}")
            run(command, job.encode(), seconds + START_S, {**os.environ, "JAX_PLATFORMS": "cpu"})
            return json.loads(destination.read_bytes())
    return None
