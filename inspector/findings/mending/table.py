"""The changes of the source that may mend what a rule has found, as far as they can be written by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ...collectives.table import TABLE
from ...report import Edit, Finding, Report
from .changes import keyword_changes, other_call, without_call, wrapped_operand
from .two_steps import through_both

Edits = tuple[Edit, ...]

MOST = 4
"""Different changes for one finding."""

REDUCTIONS = ("psum", "pmean", "pmax", "pmin")
SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
CONSTRAINTS = ("with_sharding_constraint", "reshard", "device_put")
TAKES = (" = dynamic_slice", " = gather")
_CAST = re.compile(r"\.astype\(jnp\.\w+\)")

WITHOUT_SLICE = ", without the slice"
"""How a fix goes on that is an expression, and makes slices unnecessary."""


def changes(report: Report, found: Finding) -> tuple[Edits, ...]:
    """Alternatives, each complete, the likeliest first; none where it takes a person to write it."""
    make = _CHANGES.get(found.rule)
    return () if make is None else tuple(dict.fromkeys(filter(None, make(report, found))))[:MOST]


def _without_slices(report: Report, found: Finding, functions: tuple[str, ...]) -> Iterator[Edits]:
    """The call that the fix gives in place of the one that is there, and values instead of slices of them."""
    text, sign, _ = (found.fix or "").partition(WITHOUT_SLICE)
    call = other_call(report.capture, found.place.source, functions, text) if sign else ()
    cuts = _slices(report, found)
    yield (*call, *cuts) if call and cuts else ()


def _slices(report: Report, found: Finding) -> Edits:
    """All slices that a finding is about left out; nothing where one of them cannot be."""
    slices = [place for place in found.related if place.what.endswith(TAKES)]
    cuts = [without_call(report.capture, place.source, SLICES) for place in slices]
    return tuple(dict.fromkeys(edit for cut in cuts for edit in cut)) if all(cuts) else ()


def _reduce_scatter(report: Report, found: Finding) -> Iterator[Edits]:
    return _without_slices(report, found, ("psum",))


def _no_gather(report: Report, found: Finding) -> Iterator[Edits]:
    yield from _without_slices(report, found, ("all_gather",))
    yield from _without_constraint(report, found)
    if (found.fix or "").startswith("use "):
        gather = without_call(report.capture, found.place.source, ("all_gather",))
        cuts = _slices(report, found)
        yield (*gather, *cuts) if gather and cuts else ()


def _narrowed(report: Report, found: Finding) -> Iterator[Edits]:
    """The operand cast before it is sent; all that is made of it is cast so anyway."""
    cast = _CAST.search(found.fix or "")
    functions = [function for rule in TABLE for function in rule.functions]
    if cast is not None:
        yield wrapped_operand(report.capture, found.place.source, functions, "(", f"){cast[0]}")


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
    "SS10": _narrowed,
    "SS14": _without_constraint,
}
