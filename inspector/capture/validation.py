"""Validation of a capture: the compiled program evaluated in a process of its own, and compared with the source."""

from __future__ import annotations

import json
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ..units import format_bytes, plural
from .children import Children
from .events import fold
from .here import capture_here
from .model import Capture
from .passes import place_of
from .process import EVALUATOR, evaluated
from .protocol.case import INPUTS, OPTIMIZED, PASSES, PROGRAM, SMALLER, SOURCE
from .protocol.events import Progress
from .protocol.request import Request
from .protocol.values import Probe, Validation
from .scratch import Scratch
from .spawn import Cancellation, CaptureHandle, capture

SECONDS = 60.0
"""Seconds for which a program is evaluated, where nothing else is said."""


def begin_validated(request: Request, seconds: float = SECONDS, kept: Path | None = None) -> CaptureHandle:
    """Begin a capture that is validated at its end.

    Where the compiled program differs, the files that show it are written to the folder `kept`.
    """
    cancellation = Cancellation()
    captures = _validated(request, seconds, kept, cancellation)
    return CaptureHandle(request, chain([next(captures)], captures), cancellation)


def _validated(request: Request, seconds: float, kept: Path | None, cancellation: Cancellation) -> Iterator[Capture]:
    with Scratch() as folder:
        latest = Capture()
        for latest in capture(replace(request, case=str(folder)), cancellation):
            if not latest.complete:
                yield latest
        if not latest.complete or cancellation.cancelled:
            return
        running = replace(latest, complete=False, progress=Progress("evaluate", sum(latest.timings.values())))
        yield running
        begun = time.monotonic()
        validation, probes = _evaluated(folder, seconds, cancellation)
        if validation.status == "differs" and not cancellation.cancelled:
            again = replace(request, case=str(folder), case_passes=True, live=False, probe="none", passes="")
            if kept is not None and validation.outputs:
                errors = [output.error for output in validation.outputs]
                worst = errors.index(max(errors))
                again = replace(again, case_evaluator=EVALUATOR, case_seconds=seconds, case_result=worst)
            deque(capture(again, cancellation), maxlen=0)
            validation, probes = _evaluated(folder, seconds, cancellation)
            if kept is not None and validation.status == "differs":
                validation = _kept(folder, kept, latest, validation, seconds, cancellation)
        timings = {**latest.timings, "evaluate": time.monotonic() - begun}
        yield replace(_with_values(latest, validation, probes), timings=timings)


def _evaluated(folder: Path, seconds: float, cancellation: Cancellation) -> tuple[Validation, tuple[Probe, ...]]:
    with Children() as children:
        cancellation.attach(children)
        return evaluated(folder, seconds, children)


def _kept(
    folder: Path, kept: Path, captured: Capture, validation: Validation, seconds: float, cancellation: Cancellation
) -> Validation:
    """The validation with its reproduction: of the smaller program, if there is one that differs."""
    smaller = folder / SMALLER
    shown = validation
    if (smaller / PASSES).exists():
        shown, _ = _evaluated(smaller, seconds, cancellation)
    if shown is validation or shown.status != "differs":
        return replace(validation, reproduction=keep(folder, kept, captured, validation))
    reduced = f"{_figures(smaller)}; the program has {_figures(folder)}"
    return replace(validation, reproduction=keep(smaller, kept, captured, shown, reduced), reduced=reduced)


def _figures(folder: Path) -> str:
    described = json.loads((folder / PROGRAM).read_text())
    instructions = (folder / SOURCE).read_text("utf-8", "replace").count(" = ")
    size = format_bytes((folder / INPUTS).stat().st_size)
    return f"{instructions:,} instructions, {size} of arguments, {plural(len(described['outputs']), 'output')}"


def validated_here(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], seconds: float = SECONDS) -> Capture:
    """The capture of a call in this process, validated."""
    with Scratch() as folder:
        captured = capture_here(function, args, kwargs, str(folder))
        return _with_values(captured, *evaluated(folder, seconds))


def _with_values(captured: Capture, validation: Validation, probes: Sequence[Probe]) -> Capture:
    """The capture with its validation; values are those of a run, or where there was none, the evaluated ones."""
    for each in () if captured.probes else probes:
        captured = fold(captured, each)
    return fold(captured, validation)


def keep(folder: Path, kept: Path, captured: Capture, validation: Validation, reduced: str = "") -> str:
    """Copy the files of a case that show a difference, and how to see it; the folder as text.

    `reduced` says how much smaller the case is than the captured program, if it is.
    """
    kept.mkdir(parents=True, exist_ok=True)
    for name in (SOURCE, OPTIMIZED, PROGRAM, INPUTS):
        shutil.copy(folder / name, kept / name)
    stablehlo = captured.stage("stablehlo")
    if stablehlo is not None and not reduced:
        (kept / "source.stablehlo.mlir").write_bytes(stablehlo.source.data)
    found = validation.differing_pass
    if found is not None:
        (kept / PASSES).mkdir(exist_ok=True)
        paths = [path for path in sorted((folder / PASSES).glob("*.txt")) if place_of(path.name) is not None]
        names = (found.file_before, found.file_after)
        for path in paths:
            if path.name in names:
                shutil.copy(path, kept / PASSES / path.name)
    (kept / "validation.json").write_text(json.dumps(msgspec.to_builtins(validation), indent=1) + "\n")
    (kept / "README.md").write_text(_readme(captured, validation, reduced))
    return str(kept)


def _readme(captured: Capture, validation: Validation, reduced: str) -> str:
    subject = captured.subject
    assert subject is not None
    lines = [
        f"# {subject.function} on {subject.target} is compiled to a program that computes something else",
        "",
        f"JAX {subject.jax}, jaxlib {subject.jaxlib}, {validation.compiler or 'compiler version unknown'}",
        "",
        *([f"Reduced: {reduced}", ""] if reduced else []),
        f"Evaluated in exact arithmetic, {SOURCE} and {OPTIMIZED} differ by {validation.error:.2g} of an output's"
        " largest element:",
        "",
        *(
            f"- {each.path}: {each.elements} elements on {len(each.devices)} devices"
            for each in validation.outputs
            if each.devices
        ),
    ]
    if validation.differing_pass is not None:
        found = validation.differing_pass
        lines += ["", f"First pass after which they differ: {found.name} ({found.pipeline})"]
    if validation.first is not None:
        lines += [f"First instruction that differs: {validation.first.name} {validation.first.place}"]
    files = (
        f"{SOURCE}: the HLO given to the compiler. {OPTIMIZED}: the HLO that it returned. inputs.npz: the arguments."
    )
    return "\n".join([*lines, "", files, "", "To see it again: shardscope validate FOLDER", ""])
