"""The changes of the source that may mend what a rule has found, as far as they can be written by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...collectives.table import TABLE
from ...report import Edit, Finding, Report
from .changes import fewer_in_keyword, keyword_changes, other_call, with_keyword, without_call, wrapped_operand
from .constraints import through_both
from .hoisting import before_the_loop

Edits = tuple[Edit, ...]

MOST = 4
"""Different changes for one finding."""

REDUCTIONS = ("psum", "pmean", "pmax", "pmin")
SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
CONSTRAINTS = ("with_sharding_constraint", "reshard", "device_put")
TAKES = (" = dynamic_slice", " = gather")
TOTALS = ("sum", "max", "min", "amax", "amin")
FUNCTIONS = tuple(dict.fromkeys(function for rule in TABLE for function in rule.functions))
_CAST = re.compile(r"\.astype\(jnp\.\w+\)")

WITHOUT_SLICE = ", without the slice"
WITHOUT_GATHER = ", without the gather"
"""How a fix goes on that is an expression, and makes slices, or sums, unnecessary."""


def changes(report: Report, found: Finding) -> tuple[Edits, ...]:
    """Alternatives, each complete, the likeliest first; none where it takes a person to write it."""
    change = CHANGES.get(found.rule)
    return () if change is None else tuple(dict.fromkeys(filter(None, change.make(report, found))))[:MOST]


def _with_another_call(
    report: Report, found: Finding, functions: tuple[str, ...], sign: str, needless: Edits
) -> Iterator[Edits]:
    """The call that the fix gives in place of the one that is there, and values instead of what is made of them."""
    text, told, _ = (found.fix or "").partition(sign)
    call = other_call(report.capture, found.place.source, functions, text) if told else ()
    yield (*call, *needless) if call and needless else ()


def _slices(report: Report, found: Finding) -> Edits:
    return _without(report, found, TAKES, SLICES)


def _without(report: Report, found: Finding, made_by: tuple[str, ...], functions: tuple[str, ...]) -> Edits:
    """All calls that a finding is about, by the ends of their equations, left out; nothing where one cannot be."""
    places = [place for place in found.related if place.what.endswith(made_by)]
    cuts = [without_call(report.capture, place.source, functions) for place in places]
    return tuple(dict.fromkeys(edit for cut in cuts for edit in cut)) if all(cuts) else ()


def _reduce_scatter(report: Report, found: Finding) -> Iterator[Edits]:
    return _with_another_call(report, found, ("psum",), WITHOUT_SLICE, _slices(report, found))


def _no_gather(report: Report, found: Finding) -> Iterator[Edits]:
    yield from _with_another_call(report, found, ("all_gather",), WITHOUT_SLICE, _slices(report, found))
    yield from _without_constraint(report, found)
    if (found.fix or "").startswith("use "):
        gather = without_call(report.capture, found.place.source, ("all_gather",))
        cuts = _slices(report, found)
        yield (*gather, *cuts) if gather and cuts else ()


def _narrowed(report: Report, found: Finding) -> Iterator[Edits]:
    """The operand cast before it is sent; all that is made of it is cast so anyway."""
    cast = _CAST.search(found.fix or "")
    if cast is not None:
        yield wrapped_operand(report.capture, found.place.source, FUNCTIONS, "(", f"){cast[0]}")


def _checked(report: Report, found: Finding) -> Iterator[Edits]:
    """The check on instead of off, in one shard_map after the other: the program does not say which one is meant."""
    files = [frame.file for place in (found.place, *found.related) for frame in place.source.stack]
    to_all = with_keyword(report.capture, found.place.source, ("all_gather",), "to", "'invarying'")
    for edit in keyword_changes(report.capture, files, ("check_vma", "check_rep"), "True"):
        yield (edit,)
        yield (edit, *to_all) if to_all else ()


def _unreduced(report: Report, found: Finding) -> Iterator[Edits]:
    """The operand of a reduction in its place, where it is reduced over nothing else."""
    outputs, _, _ = found.place.what.partition(" = ")
    if len(outputs.split()) == 1 and (found.fix or "").startswith("use "):
        yield without_call(report.capture, found.place.source, REDUCTIONS)


def _without_constraint(report: Report, found: Finding) -> Iterator[Edits]:
    if (found.fix or "").startswith("leave out "):
        yield without_call(report.capture, found.place.source, CONSTRAINTS)


def _hoisted(report: Report, found: Finding) -> Iterator[Edits]:
    if (found.fix or "").startswith("do "):
        yield before_the_loop(report.capture, found.place.source, FUNCTIONS)


def _reduced(report: Report, found: Finding) -> Iterator[Edits]:
    totals = _without(report, found, (" = reduce_sum", " = reduce_max", " = reduce_min"), TOTALS)
    return _with_another_call(report, found, ("all_gather",), WITHOUT_GATHER, totals)


def _kept(report: Report, found: Finding) -> Iterator[Edits]:
    script = report.capture.script_text
    for edit in () if script is None else fewer_in_keyword(report.capture, (script.name,), "donate_argnums"):
        yield (edit,)


@dataclass(frozen=True, slots=True)
class Change:
    """How the edits for a rule are made, and what they do, in words."""

    make: Callable[[Report, Finding], Iterator[Edits]]
    words: str


CHANGES: dict[str, Change] = {
    "SS01": Change(_reduce_scatter, "psum_scatter in place of psum, and no slice"),
    "SS02": Change(_no_gather, "no gather and no slice, an all_to_all in place of both, or no constraint in between"),
    "SS03": Change(_checked, "the check on, of one shard_map after the other; all_gather to='invarying'"),
    "SS04": Change(_unreduced, "the operand in place of its reduction"),
    "SS08": Change(_hoisted, "the call before the statement that holds the loop's body"),
    "SS09": Change(through_both, "one more constraint on the way, to the axes of both shardings"),
    "SS10": Change(_narrowed, "the cast before the collective"),
    "SS14": Change(_without_constraint, "no constraint in between"),
    "SS20": Change(_kept, "one donated argument less"),
    "SS22": Change(_reduced, "the reduction of each device's own part, and a psum, pmax or pmin of that"),
}
"""By rule, where a change can be written by rule."""

BY_HAND = {
    "SS00": "it is a comment: the program does not change",
    "SS05": "whether a mean, a sum or one device's value is meant, the program does not say",
    "SS06": "whether to reduce or to name the axis is meant, the program does not say; with the check on, it does not"
    " trace, and `shardscope run` tries these edits",
    "SS07": "where the loop ends, and what is to be cast before it, takes a person to see",
    "SS11": "whether to pad or to cut another dimension is a choice",
    "SS12": "where the array is made is often not in the script; whether there is room is a choice",
    "SS13": "what else depends on the order of the dimensions, takes a person to see",
    "SS15": "the idiom is another algorithm",
    "SS16": "what a kernel computes of a part, is known to who wrote it",
    "SS17": "where the mesh is laid out, other programs may depend on it; `shardscope diff --with mesh=…` tries it",
    "SS18": "to overlap is another algorithm",
    "SS19": "which devices are meant to receive, the program does not say",
    "SS21": "what all devices are to do, the program does not say",
    "SS23": "it is for information: what is meant, is said by a comment",
}
"""Why not, for all others."""
