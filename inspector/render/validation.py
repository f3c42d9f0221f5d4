"""A validation in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.model import Validation
from ..report.changes import ValidatedPair
from ..units import format_seconds, listed, plural
from .table import Piece

MAX_OUTPUTS = 5
"""Outputs that are described."""


def validation_lines(found: Validation) -> Iterator[Piece]:
    """One line where the program is the same, or was not evaluated; of a difference all that is known."""
    if found.status == "same":
        yield Piece(same_text(found), "good")
    elif found.status == "differs":
        yield from _difference(found)
    else:
        yield Piece(gap_text(found), "warning")


def same_text(found: Validation) -> str:
    """The program is the same: on how many devices, how many outputs, and to which error."""
    devices = plural(found.devices, "device")
    text = f"optimized program equals the source on {devices} in exact arithmetic: "
    text += (
        f"{plural(len(found.outputs), 'output')}, {found.error:.0e}"
        if found.error
        else plural(len(found.outputs), "output")
    )
    if found.rounding is not None:
        text += f" (constants are rounded to {found.rounding})"
    if found.kernels:
        text += f"; kernels not looked into: {', '.join(found.kernels)}"
    if found.not_finite:
        text += f"; not finite in the source, NaN not compared: {listed(found.not_finite, MAX_OUTPUTS)}"
    return text


def gap_text(found: Validation) -> str:
    """The reason why there is no answer, with the instruction and its line."""
    where = f" at {found.place}" if found.place else ""
    program = f" of the {found.program}" if found.program and found.place else ""
    return f"not validated: {found.reason}{where}{program}"


def _difference(found: Validation) -> Iterator[Piece]:
    wrong = [output for output in found.outputs if output.devices]
    of = f"{len(wrong)} of {plural(len(found.outputs), 'output')}"
    differ = "differs" if len(wrong) == 1 else "differ"
    if found.reason:
        yield Piece(f"optimized program never ends, which its source does: {found.reason} at {found.place}", "error")
    else:
        yield Piece(f"optimized program differs from the source in exact arithmetic: {of} {differ}", "error")
    for output in wrong[:MAX_OUTPUTS]:
        devices = f"{len(output.devices)} of {plural(found.devices, 'device')}"
        alike = ", all alike" if output.is_alike else ""
        largest = f"by up to {output.error:.2g} of the largest element ({output.scale:.3g})"
        yield Piece(f"  {output.path}: {output.elements:,} of {output.block:,} elements on {devices}{alike}, {largest}")
    if len(wrong) > MAX_OUTPUTS:
        yield Piece(f"  and {len(wrong) - MAX_OUTPUTS} more")
    if found.first is not None:
        place = f", {found.first.place}" if found.first.place else ""
        yield Piece(f"  first instruction that differs: {found.first.name}{place}")
    passed = found.differing_pass
    if passed is not None:
        yield Piece(f"  pass: {passed.name} ({passed.pipeline}); still equal after {passed.previous}")
    else:
        yield Piece("  pass: not known")
    if found.compiler:
        yield Piece(f"  compiler: {found.compiler}")
    if found.reproduction is not None:
        yield Piece(f"  reproduction: {found.reproduction}")
        if found.reduced:
            yield Piece(f"    reduced to {found.reduced}")


def time_text(found: Validation) -> str:
    """The time that it took."""
    return f"evaluated in {format_seconds(found.seconds)}"


TOLERANCE = 1e-6
"""Largest difference, relative to the norm of an output, that the order of sums and folded constants explain."""


def compare_validations(before: Validation | None, after: Validation | None) -> ValidatedPair:
    """Compare two evaluated programs by projections of their outputs."""
    if before is None or after is None:
        return ValidatedPair(reason="a side was not captured")
    for side, found in (("A", before), ("B", after)):
        if found.status == "not evaluated":
            return ValidatedPair(reason=f"{side} was not evaluated")
        if found.reason:
            return ValidatedPair(reason=f"{side} never ends")
    if [output.shape for output in before.outputs] != [output.shape for output in after.outputs]:
        return ValidatedPair(reason="the outputs have other shapes")
    error, differing = 0.0, []
    for one, other in zip(before.outputs, after.outputs, strict=True):
        if one.projections is None or other.projections is None:
            continue
        norm = max(one.projections[0], other.projections[0]) or 1.0
        distance = max(abs(x - y) for x, y in zip(one.projections, other.projections, strict=True)) / norm
        error = max(error, distance)
        if not distance <= TOLERANCE:
            differing.append(other.path)
    return ValidatedPair(len(after.outputs), error, tuple(differing))
