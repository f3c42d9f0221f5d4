"""The changes of the source that may mend what a rule has found, as far as they can be written by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...report import Edit, Finding, Report
from .changes import keyword_changes, other_call, without_call
from .two_steps import through_both

Edits = tuple[Edit, ...]

MOST = 4
"""Different changes for one finding."""

REDUCTIONS = ("psum", "pmean", "pmax", "pmin")
SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
CONSTRAINTS = ("with_sharding_constraint", "reshard", "device_put")
TAKES = (" = dynamic_slice", " = gather")
WITHOUT_SLICE = ", without the slice"
"""How a fix goes on that is an expression, and makes slices unnecessary."""


def changes(report: Report, found: Finding) -> tuple[Edits, ...]:
    """Alternatives, each complete, the likeliest first; none where it takes a person to write it."""
    make = _CHANGES.get(found.rule)
    return () if make is None else tuple(dict.fromkeys(filter(None, make(report, found))))[:MOST]


def _without_slices(report: Report, found: Finding, functions: tuple[str, ...]) -> Iterator[Edits]:
    """The call that the fix gives in place of the one that is there, and values instead of slices of them."""
    text, sign, _ = (found.fix or "").partition(WITHOUT_SLICE)
    slices = [place for place in found.related if place.what.endswith(TAKES)]
    call = other_call(report.capture, found.place.source, functions, text) if sign else ()
    if not slices or not call:
        return
    cuts = [without_call(report.capture, place.source, SLICES) for place in slices]
    if all(cuts):
        yield (*call, *dict.fromkeys(edit for cut in cuts for edit in cut))


def _reduce_scatter(report: Report, found: Finding) -> Iterator[Edits]:
    return _without_slices(report, found, ("psum",))


def _no_gather(report: Report, found: Finding) -> Iterator[Edits]:
    yield from _without_slices(report, found, ("all_gather",))
    yield from _without_constraint(report, found)


def _checked(report: Report, found: Finding) -> Iterator[Edits]:
    """The check on instead of off, in one shard_map after the other: the program does not say which one is meant."""
    files = [frame.file for place in (found.place, *found.related) for frame in place.source.stack]
    for edit in keyword_changes(report.capture, files, ("check_vma", "check_rep"), "True"):
        yield (edit,)


def _unreduced(report: Report, found: Finding) -> Iterator[Edits]:
    """The operand of a reduction in its place, where it is reduced over nothing else."""
    outputs, _, _ = found.place.what.partition(" = ")
    if len(outputs.split()) == 1 and (found.fix or "").startswith("use "):
        yield without_call(report.capture, found.place.source, REDUCTIONS)


def _without_constraint(report: Report, found: Finding) -> Iterator[Edits]:
    if (found.fix or "").startswith("leave out "):
        yield without_call(report.capture, found.place.source, CONSTRAINTS)


_CHANGES: dict[str, Callable[[Report, Finding], Iterator[Edits]]] = {
    "SS01": _reduce_scatter,
    "SS02": _no_gather,
    "SS03": _checked,
    "SS04": _unreduced,
    "SS09": through_both,
    "SS14": _without_constraint,
}
