"""One validation: both modules evaluated, compared, and of a difference the pass that made it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...parsers.hlo import ArrayShape, HloModule, HloType, TupleShape, parse_module
from ...parsers.source import Source
from ..capture.protocol.memory import available_bytes
from ..capture.protocol.values import ComparedOutput, Validation
from ..units import ranges_text
from .bisect import Search
from .case import Case, read_case
from .compare import compare, folding_error, narrowest_folded, results_of
from .element_types import TYPES
from .errors import DeadlockError, NotEvaluatedError
from .interpreter import Interpreter, place_of
from .observed import Observer


def validate(folder: Path, seconds: float, observer: Observer | None = None) -> Validation:
    """Evaluate the modules of a case and compare them; `observer` keeps values of the compiled one."""
    started = time.monotonic()
    deadline = started + seconds
    source = optimized = 0.0
    outputs: tuple[ComparedOutput, ...] = ()
    program = "source"
    try:
        case = read_case(folder)
        refuse_large(case)
        before = Interpreter(case.source, case.devices, deadline=deadline)
        expected = results_of(before.run(case.whole()), len(case.outputs))
        source = time.monotonic() - started
        program = "optimized program"
        after = Interpreter(case.optimized, case.devices, deadline=deadline, observer=observer, places=case.places)
        after.allowed = before.signatures
        found = results_of(after.run(case.split()), len(case.outputs))
        if observer is not None:
            observer.outputs(case.outputs, found)
        optimized = time.monotonic() - started - source
        outputs = compare(case, expected, found)
    except DeadlockError as wait:
        if program == "source" or before.doubtful or after.doubtful:
            stands = before.stands if program == "source" else after.stands
            gap = NotEvaluatedError(f"{wait.reason}: they wait forever", wait.place)
            return replace(_not_evaluated(gap, program, started), stands=_stands(stands, case.devices))
        passed, _ = Search(folder, case, expected, before, folding_error(narrowest_folded(case)), deadline).run()
        return Validation(
            "differs",
            devices=case.devices,
            error=math.inf,
            differing_pass=passed,
            reason=wait.reason,
            place=wait.place,
            program=program,
            compiler=case.compiler,
            seconds=_since(started),
        )
    except NotEvaluatedError as gap:
        return _not_evaluated(gap, program, started)
    error = max((output.error for output in outputs), default=0.0)
    not_finite = tuple(
        output.path
        for output, (whole, *_) in zip(case.outputs, expected, strict=True)
        if whole.dtype.kind in "fc" and not np.isfinite(whole).all()
    )
    kernels = tuple(sorted({target for target, _, _ in before.signatures}))
    validation = Validation(
        "same",
        devices=case.devices,
        error=error,
        outputs=outputs,
        kernels=kernels,
        not_finite=not_finite,
        compiler=case.compiler,
        source_seconds=round(source, 3),
        optimized_seconds=round(optimized, 3),
    )
    folded = narrowest_folded(case)
    if error <= folding_error(folded):
        rounding = folded if error > folding_error(None) else None
        return replace(validation, rounding=rounding, seconds=_since(started))
    if doubtful := before.doubtful or after.doubtful:
        return replace(
            validation, status="not evaluated", reason=doubtful.reason, place=doubtful.place, seconds=_since(started)
        )
    if expanded := [target for target, *_ in before.signatures.keys() - after.signatures.keys()]:
        reason = f"{expanded[0]} has no known meaning, and the compiler replaces it"
        return replace(validation, status="not evaluated", reason=reason, program="source", seconds=_since(started))
    if before.unequal:
        where = place_of(before.unequal[0].instruction)
        reason = "devices hold unequal copies of a result of a shard_map that its out_specs declare to be one value"
        return replace(
            validation, status="not evaluated", reason=reason, place=where, program="source", seconds=_since(started)
        )
    differing_pass, first = Search(folder, case, expected, before, folding_error(folded), deadline).run()
    return replace(validation, status="differs", differing_pass=differing_pass, first=first, seconds=_since(started))


def _stands(stands: Mapping[int, str], devices: int) -> str:
    """`3 in all-reduce at x.py:8; 0–2, 4–7 have ended`."""
    places: dict[str, list[int]] = {}
    for device, place in stands.items():
        places.setdefault(place, []).append(device)
    parts = [f"{ranges_text(each)} in {place}" for place, each in places.items()]
    if others := [device for device in range(devices) if device not in stands]:
        parts.append(f"{ranges_text(others)} {'has' if len(others) == 1 else 'have'} ended")
    return "; ".join(parts)


def _not_evaluated(gap: NotEvaluatedError, program: str, started: float) -> Validation:
    return Validation("not evaluated", reason=gap.reason, place=gap.place, program=program, seconds=_since(started))


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


PLAIN = ("parameter", "tuple", "get-tuple-element", "bitcast", "broadcast", "reshape", "transpose", "while", "call")
"""Opcodes whose result takes no memory of its own."""


def refuse_large(case: Case) -> None:
    """Refuse a program whose values do not fit into memory.

    Raises:
        NotEvaluatedError: they do not; with the part of the size that would.
    """
    available = available_bytes()
    if available is None:
        return
    source = parse_module(Source("source", case.source.encode()))
    optimized = parse_module(Source("optimized", case.optimized.encode()))
    needed = max(needed_bytes(source), needed_bytes(optimized) * case.devices) + sum(
        each.nbytes for each in case.values
    )
    if needed > available // 2:
        part = available / 2 / needed
        raise NotEvaluatedError(
            f"evaluating it takes about {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are free: "
            f"arrays {1 / part:.1f} times smaller would fit"
        )


def needed_bytes(module: HloModule) -> int:
    """The bytes of all values that are alive at once, at most, in 64 bits each, on one device."""
    known: dict[str, int] = {}
    for computation in module.computations:  # those that are called come first
        last = {
            name: each.name for each in computation.instructions for name in each.operands if each.opcode != "constant"
        }
        ends: dict[str, list[str]] = {}
        for name, user in last.items():
            ends.setdefault(user, []).append(name)
        alive: dict[str, int] = {}
        total = most = 0
        for each in computation.instructions:
            inside = max((known.get(name, 0) for name in each.called), default=0)
            alive[each.name] = 0 if each.opcode in PLAIN else _bytes(each.type)
            total += alive[each.name]
            most = max(most, total + inside)
            for name in ends.get(each.name, ()):
                total -= alive.pop(name, 0)
        known[computation.name] = most
    entry = module.entry
    return 0 if entry is None else known.get(entry.name, 0)


def _bytes(type: HloType) -> int:
    if isinstance(type, TupleShape):
        return sum(map(_bytes, type.elements))
    if not isinstance(type, ArrayShape) or type.dtype not in TYPES:
        return 0
    size = int(TYPES[type.dtype].itemsize)
    for each in type.dims:
        size *= each
    return size
