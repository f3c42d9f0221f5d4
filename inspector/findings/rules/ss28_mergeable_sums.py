"""SS28: several sums over devices of which the program needs only one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...correspondence.collectives import is_combined
from ...dataflow.hlo import HloFlow, HloUse, HloValue, hlo_flow
from ...dataflow.meaning import Does, does
from ...dataflow.walks import forward
from ...ir.types import ArrayType
from ...report import WRITTEN, Collective, Finding, FindingPlace, Fix, Report, SourcePosition
from ...report.spelled import over_text
from ..compiled import SUMS, at_most, in_hlo, on_another_target, place_in_hlo, results_of
from ..equations import equal_along, equations_of
from ..fixes.calls import function_around, imports
from ..fixes.edits import axes_text, wrapped
from ..fixes.specs import targets_of
from ..rule import Rule, advice, finding

UNCHANGED = Does.FORWARD | Does.RESHAPE
"""Operations with which a sum stays a sum of as many bytes."""


class _Sum(NamedTuple):
    """One of the results of an all-reduce, and the only thing that is done with it."""

    collective: Collective
    source: SourcePosition
    type: ArrayType
    use: HloUse

    @property
    def is_scalar(self) -> bool:
        """True if it is a single number."""
        return self.type.elements == 1

    @property
    def travels(self) -> bool:
        """True if other sums are combined with it: they are sent with or without it."""
        return is_combined(self.collective)

    @property
    def place(self) -> FindingPlace:
        """The place that it comes from."""
        return replace(place_in_hlo(self.collective), source=self.source)


def check(report: Report) -> Iterator[Finding]:
    """Pairs of sums that are added to each other, then sums of sums over other axes."""
    sums = (each for each in in_hlo(report, "all-reduce") if each.reduction == "sum")
    equal = _of_equal_values(report)
    alone = (each for each in sums if is_combined(each) or not _is_in(equal, each.source, each))
    starts = {each.span.start: each for each in alone if each.axes}
    added: dict[tuple[object, ...], _Sum] = {}
    summed: dict[tuple[int, int], _Sum] = {}
    for each in _sums(report, starts.values()):
        if _is_in(equal, each.source, each.collective):
            continue
        if each.is_scalar and each.collective.origin not in WRITTEN:
            continue  # norms, as the partitioner sums them: there is no sum in the source that could be another
        user = each.use.instruction
        calls = tuple(call.span.start for call in each.use.value.calls)
        other = added.setdefault((user.span.start, calls, frozenset(map(frozenset, each.collective.groups))), each)
        is_free = other.collective is each.collective and each.is_scalar and each.travels
        is_added = does(user.opcode) is Does.ADD and other.use.position != each.use.position
        if is_added and not is_free:
            yield _of_two(report, other, each)
        again = starts.get(user.span.start)
        if again is None or (each.is_scalar and each.travels and is_combined(again)):
            continue
        if each.collective.origin == again.origin == "partitioner":
            continue  # the partitioner sums over one axis after the other what the source sums at once
        if not {axis.name for axis in each.collective.axes or ()} & {axis.name for axis in again.axes or ()}:
            summed.setdefault((each.collective.span.start, again.span.start), each)
    for (_, second), first in summed.items():
        yield _of_sums(first, starts[second])


_Lines = tuple[tuple[str, int | None], ...]
"""The lines of a call stack, innermost first."""


def _lines(source: SourcePosition) -> _Lines:
    return tuple((frame.file, frame.line) for frame in source.stack)


def _is_in(places: Mapping[object, set[_Lines]], source: SourcePosition, collective: Collective) -> bool:
    """Return whether a collective is at one of these places, as far as its call stack is known."""
    lines = _lines(source)
    known = places.get((lines[:1], collective.direction == "backward"), ())
    return any(all(one == other for one, other in zip(each, lines, strict=False)) for each in known)


def _of_equal_values(report: Report) -> dict[object, set[_Lines]]:
    """The places of sums of what all devices hold already: one is left out, and not merged with another.

    By their line, and whether that is of the backward pass.
    """
    found: dict[object, set[_Lines]] = {}
    for flow, place in equations_of(report, SUMS):
        source = flow.source(place)
        if place.equation.axes in equal_along(flow, place) and source.frame is not None:
            lines = _lines(source)
            found.setdefault((lines[:1], flow.is_backward(place)), set()).add(lines)
    return found


def _sums(report: Report, collectives: Iterable[Collective]) -> Iterator[_Sum]:
    for collective in collectives:
        stage = report.program.stage(collective.stage)
        flow = None if stage is None else hlo_flow(stage)
        results = [] if flow is None else results_of(flow.module, collective)
        parts = collective.parts if len(collective.parts) == len(results) else ()
        sources = [part.source for part in parts] or [collective.source] * len(results)
        for (value, type), source in zip(results, sources, strict=True):
            use = None if flow is None else _only_use(flow, value)
            if use is not None:
                yield _Sum(collective, source, type, use)


def _only_use(flow: HloFlow, value: HloValue) -> HloUse | None:
    """The operation that takes a value, where nothing else does, behind those that leave its elements as they are."""
    through = UNCHANGED | Does.SCALE
    reach = forward(flow, [value], through, keeps=lambda use: flow.does(use) in UNCHANGED or _is_scaled(flow, use))
    return reach.ends[0] if reach.is_all and len(reach.ends) == 1 else None


def _is_scaled(flow: HloFlow, use: HloUse) -> bool:
    """Return whether a value is multiplied by a constant, or divided by one."""
    is_scaled = flow.does(use) is Does.SCALE and len(use.instruction.operands) == 2
    factor = flow.operand(use.result, 1 - use.position) if is_scaled else None
    made = None if factor is None else flow.origin(factor)
    if made is not None and made.instruction.opcode == "broadcast":
        factor = flow.operand(made, 0)
        made = None if factor is None else flow.origin(factor)
    return made is not None and made.instruction.opcode == "constant"


def _of_two(report: Report, first: _Sum, second: _Sum) -> Finding:
    collective = second.collective
    places = dict.fromkeys((first.collective, collective))
    return finding(
        RULE,
        second.place,
        f"two sums over {over_text(collective)} are added to each other: add first, and sum once",
        severity="info" if report.capture.subject is not None and report.capture.subject.platform == "cpu" else None,
        confidence="proved",
        axes=collective.axes or (),
        related=(first.place,),
        evidence=(
            ("sums", ", ".join(each.name for each in places)),
            ("added by", second.use.instruction.name),
            *on_another_target(report),
        ),
        fixes=(*_cast_once(report, first, second), *advice("add the per-device values, then sum over devices")),
        saves=at_most(*places),
    )


def _cast_once(report: Report, first: _Sum, second: _Sum) -> Iterator[Fix]:
    """Variables that the lines of two sums of a backward pass use, cast to vary once where they are assigned.

    The transpose of each cast is a sum; JAX casts a value of a shard_map wherever it meets what varies.
    """
    one, other = first.source.frame, second.source.frame
    axes = axes_text(tuple(axis.name for axis in second.collective.axes or ()))
    function = None if other is None else function_around(report.program, other.file, other.line)
    source = None if other is None else report.program.file(other.file)
    is_cast = second.collective.direction == "backward" and second.collective.origin in ("user", "autodiff")
    if not is_cast or one is None or other is None or function is None or source is None:
        return
    cast = "lax.pcast" if imports(source, "lax") else "jax.lax.pcast"
    names = [
        {node.id for node in ast.walk(function[1]) if isinstance(node, ast.Name) and node.lineno == frame.line}
        for frame in (one, other)
    ]
    for node in ast.walk(function[1]):
        for target in targets_of(node):
            if isinstance(node, ast.Assign) and target.id in names[0] & names[1] and node.lineno < other.line:
                edits = wrapped((other.file, node.value), f"{cast}(", f", {axes}, to='varying')")
                yield Fix(f"cast {target.id} to vary over {axes} once: its gradient is then summed once", edits)


def _of_sums(first: _Sum, again: Collective) -> Finding:
    axes = (*(first.collective.axes or ()), *(again.axes or ()))
    return finding(
        RULE,
        place_in_hlo(again),
        f"a sum over {over_text(first.collective)} is summed over {over_text(again)}: one sum over all axes is enough",
        confidence="proved",
        axes=axes,
        related=(first.place,),
        evidence=(("sums", f"{first.collective.name}, then {again.name}; nothing else uses the first"),),
        fixes=advice(f"sum once, over {tuple(axis.name for axis in axes)!r}"),
        saves=at_most(first.collective, again),
    )


RULE = Rule(
    id="SS28",
    slug="mergeable-sums",
    severity="warning",
    finds="Several sums over devices where one is enough.",
    why="Sums commute. Two sums that are added send twice the bytes of one sum of both, and a sum over one axis and"
    " then another sends almost twice the bytes of one over both axes.",
    proof="In the compiled program only the addition, or the second sum, uses the result of the first. On CPUs, whose"
    " compiler does not add first, the severity of two added sums is `info`.",
    faulty='total = lax.psum(lax.psum(x, "data"), "model")',
    repaired='total = lax.psum(x, ("data", "model"))',
    check=check,
    tries="a value of a shard_map that is cast to vary where several operations take it, cast once",
)
