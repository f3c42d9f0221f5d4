"""Fixes of sharding constraints: a needless one is left out, a distant one is reached in two steps."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from ....parsers.errors import ShardscopeError
from ....parsers.mlir.sdy import DimensionSharding
from ....parsers.record import Record
from ....parsers.sharding_syntax import gspmd
from ....parsers.sharding_syntax.mesh import AxisRef
from ...collectives.origin import direction_of
from ...ir.array_sharding import ArraySharding
from ...report import (
    Collective,
    CollectiveCause,
    ConstraintOrigin,
    Finding,
    FindingPlace,
    Fix,
    Kind,
    Report,
    SourcePosition,
)
from ...shardings.dataflow import Dataflow, Node
from ...shardings.explained import Wording, why_axes, wording_of
from ...shardings.recorded import ASKING
from ...shardings.spelled import from_gspmd
from ...shardings.table import propagated
from ..rule import Rule, finding, keep_whole
from ..support.compiled import certainty, compiled_to, is_compiled, saving
from ..support.detours import Detour, detours, kept_cut, released
from ..support.inserted import inserted_for, local_shape
from .calls import call_at, call_to_leave_out, imports, name_of
from .edits import Edits, without_call, wrapped

CONSTRAINTS = ("with_sharding_constraint", "with_logical_constraint", "reshard", "device_put")


class InsertedDetour(Record, frozen=True):
    """A detour, and the collective that it was compiled to; None where nothing was compiled.

    `fix` is a change of the operation `blamed`, a row.
    """

    report: Report
    flow: Dataflow
    detour: Detour
    compiled: Collective | None
    fix: Fix
    blamed: int

    def name(self, node: Node) -> str:
        """A value as one would call it: by its path, or its operation and line."""
        if node.kind in ("argument", "output"):
            return str(wording_of(self.flow).name(node))
        return _at_line(self.report, wording_of(self.flow), node.row)

    def finding(
        self,
        rule: Rule,
        message: str,
        labels: tuple[str, str],
        then: str,
        times: int = 1,
        others: Sequence[InsertedDetour] = (),
    ) -> Finding:
        """Return the rule's finding: `labels` are for the values on the way, and for the operations that end it.

        The same change takes away `others`, of the same values along other axes.
        """
        detour, places = self.detour, wording_of(self.flow).places
        rows = [row for row in dict.fromkeys((*detour.rows, *detour.back)) if row != self.blamed]
        compiled = tuple(dict.fromkeys(each.compiled for each in (self, *others)))
        return finding(
            rule,
            self._place(self.blamed),
            message,
            confidence=certainty(self.compiled),
            subject=self.name(detour.source),
            axes=tuple(dict.fromkeys(each.detour.axis for each in (self, *others))),
            related=map(self._place, rows),
            evidence=(
                (labels[0], ", ".join(str(wording_of(self.flow).name(node)) for node, _ in detour.nodes[:6])),
                (labels[1], ", ".join(str(places.operation(row)[0]) for row in detour.back[:6])),
                *(compiled_to(each, then) for each in compiled),
            ),
            fixes=(self.fix,),
            saves=saving(*compiled, times=times),
        )

    def _place(self, row: int) -> FindingPlace:
        wording = wording_of(self.flow)
        operation, source = wording.places.operation(row)
        return FindingPlace(str(operation), source, "sdy", wording.span(row))


def inserted_detours(report: Report, kind: Literal["all-gather", "all-to-all"]) -> Iterator[InsertedDetour]:
    """The detours for which the partitioner gathers, or moves the axis to another dimension, if the compiler did.

    Of those that one change takes away with one collective, the first.
    """
    _, flow = propagated(report.program)
    seen: set[tuple[Collective, AxisRef, Fix, SourcePosition]] = set()
    if flow is None:
        return
    found = [each for each in detours(report.program) if (each.elsewhere is None) is (kind == "all-gather")]
    alike: dict[int, list[Detour]] = {}
    for detour in found:
        alike.setdefault(_blamed(flow, detour), []).append(detour)
    for detour in found:
        # Axes that trade places are exchanged by a permutation.
        kinds: tuple[Kind, ...] = (kind,) if kind == "all-gather" else (kind, "collective-permute")
        there = (inserted_for(report, flow, detour.nodes, each, detour.axis.name, detour.source) for each in kinds)
        compiled = next(filter(None, there), None)
        if compiled is None and is_compiled(report):
            continue
        blamed = _blamed(flow, detour)
        fix = _fix(report, flow, alike[blamed], blamed)
        if compiled is not None:
            key = compiled, detour.axis, fix, wording_of(flow).places.operation(blamed)[1]
            if key in seen:
                continue
            seen.add(key)
        yield InsertedDetour(report, flow, detour, compiled, fix, blamed)


def _blamed(flow: Dataflow, detour: Detour) -> int:
    """The row of the operation to change: one that asks for a sharding, or the first that loses it."""
    return next((row for row in (detour.lost, *detour.rows) if flow.rows[row].name in ASKING), detour.lost)


def _fix(report: Report, flow: Dataflow, alike: list[Detour], blamed: int) -> Fix:
    """The change with which a value keeps its sharding all the way, along all axes that the blamed operation loses."""
    first = alike[0]
    name, source = wording_of(flow).places.operation(blamed)
    node = next((node for node, _ in first.nodes if node.row == blamed), first.nodes[0][0])
    kept = kept_cut(flow, alike, node)
    dims = ", ".join(f"dimension {dict(each.nodes).get(node, 0)} along {str(each.axis)!r}" for each in alike)
    spec = dims if kept is None else str(kept)
    call = call_to_leave_out(report.program, source, CONSTRAINTS)
    here = _at_line(report, wording_of(flow), blamed) if call is None else ast.unparse(call[1])
    if flow.rows[blamed].name in ASKING:
        other = "" if keep_whole(each.axis for each in alike) else f", or let it ask for {spec}"
        return Fix(f"leave out {here}{other}", without_call(report.program, call))
    what = (
        f"what the loop{here.removeprefix('while')} carries" if name.primitive == "while" else f"the result of {here}"
    )
    return Fix(keep_whole(each.axis for each in alike) or f"constrain {what} to {spec}")


def unsharded_by(
    report: Report,
    axes: Iterable[AxisRef],
    *,
    shapes: Collection[tuple[int, ...]] | None = None,
    lines: Collection[tuple[str | None, int | None]] | None = None,
) -> Iterator[tuple[FindingPlace, Fix]]:
    """Constraints to shardings without axes, each with the fix of leaving it out.

    Of values of these shapes on each device that are used sharded over the axes; or, with `lines`, of what matrix
    products of these lines take.
    """
    _, flow = propagated(report.program)
    taken = () if flow is None or lines is None else _products(flow, lines)
    if flow is None or (lines is not None and not taken):
        return
    for row in dict.fromkeys(row for axis in axes for row in released(flow, axis, taken)):
        if shapes is None or (local_shape(flow, Node("result", row, 0)) in shapes and not _is_transposed(flow, row)):
            yield _left_out(report, flow, row)


def _products(flow: Dataflow, lines: Collection[tuple[str | None, int | None]]) -> frozenset[int]:
    """The rows of the matrix products of some lines."""
    products = (row for row, each in enumerate(flow.rows) if each.name in PRODUCTS)
    sources = {row: wording_of(flow).places.operation(row)[1] for row in products}
    return frozenset(row for row, source in sources.items() if (source.file, source.line) in lines)


def _is_transposed(flow: Dataflow, row: int) -> bool:
    """Return whether a constraint is the transpose of one that the forward pass may need."""
    return any(direction_of(name, differentiated=True) == "backward" for name in flow.names(row))


PRODUCTS = ("stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution")


def without_constraints(report: Report, causes: Iterable[CollectiveCause]) -> Iterator[Fix]:
    """Fixes that leave out a constraint because of which a value is resharded."""
    axes = [axis for each in causes if each.effect == "reshard" for axis in (*each.origins, *each.against)]
    whys = why_axes(report.program, axes, most=0)
    places = (why.place for why in whys if isinstance(why.origin, ConstraintOrigin))
    calls = (call_to_leave_out(report.program, place, CONSTRAINTS) for place in dict.fromkeys(places))
    for call in dict.fromkeys(filter(None, calls)):
        if edits := without_call(report.program, call):
            yield Fix(f"leave out {ast.unparse(call[1])}", edits)


def _left_out(report: Report, flow: Dataflow, row: int) -> tuple[FindingPlace, Fix]:
    wording = wording_of(flow)
    operation, source = wording.places.operation(row)
    call = call_to_leave_out(report.program, source, CONSTRAINTS)
    here = _at_line(report, wording, row) if call is None else ast.unparse(call[1])
    place = FindingPlace(str(operation), source, "sdy", wording.span(row))
    return place, Fix(f"leave out {here}", without_call(report.program, call))


def _at_line(report: Report, wording: Wording, row: int) -> str:
    operation, source = wording.places.operation(row)
    place = source.text(report.script)
    return f"{operation} at {place}" if place else str(operation)


def through_both(report: Report, place: SourcePosition, before: str, after: str) -> Edits:
    """One more constraint before the one that is there: to the axes of both, for which each device cuts what it has.

    `before` and `after` are shardings as the compiler's messages spell them.
    """
    call, between = call_at(report.program, place, ("with_sharding_constraint",)), _both(report, before, after)
    if call is None or between is None or len(call[1].args) < 2:
        return ()
    file, node = call
    source, (operand, wanted, *_) = report.program.file(file), node.args
    if source is None or not imports(source, "jax"):
        return ()
    sharding = f"jax.{between}"
    if not (isinstance(wanted, ast.Call) and name_of(wanted.func) in ("P", "PartitionSpec")):
        sharding = f"jax.NamedSharding({ast.unparse(wanted)}.mesh, {sharding})"
    return wrapped((file, operand), f"{ast.unparse(node.func)}(", f", {sharding})")


def _both(report: Report, before: str, after: str) -> ArraySharding | None:
    for mesh in report.meshes:
        try:
            found = [gspmd.parse_sharding(text) for text in (before, after)]
            rank = max(len(getattr(each, "dims", ())) for each in found)
            old, new = (from_gspmd(each, rank, mesh) for each in found)
        except (ShardscopeError, ValueError):
            continue
        used = set(new.sharded)
        dims = tuple(
            DimensionSharding((*after.axes, *(axis for axis in before.axes if axis not in used)))
            for before, after in zip(old.dims, new.dims, strict=True)
        )
        known = {name for name, _ in mesh.axes}
        axes = [axis for dim in dims for axis in dim.axes]
        if all(axis.name in known and axis.sub is None for axis in axes) and len(set(axes)) == len(axes):
            return ArraySharding(mesh, dims)
    return None
