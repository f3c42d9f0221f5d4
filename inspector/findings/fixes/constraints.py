"""Fixes of sharding constraints: a needless one is left out, a distant one is reached in two steps."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ....parsers.errors import ShardscopeError
from ....parsers.mlir.sdy import DimensionSharding
from ....parsers.sharding_syntax import gspmd
from ...ir.array_sharding import ArraySharding
from ...report import FindingPlace, Fix, Report, SourcePosition
from ...shardings.dataflow import Dataflow
from ...shardings.explained import wording_of
from ...shardings.spelled import as_spec, from_gspmd
from ..support.detours import CONSTRAINT, Detour, kept_cut
from .calls import call_at, imports, name_of
from .edits import Edits, without_call, wrapped

CONSTRAINTS = ("with_sharding_constraint", "reshard", "device_put")


@dataclass(frozen=True, slots=True)
class DetourFix:
    """The operation to change, a constraint if the detour has one; the other operations on the way; and the fix."""

    place: FindingPlace
    related: tuple[FindingPlace, ...]
    fix: Fix


def detour_fix(report: Report, flow: Dataflow, detour: Detour) -> DetourFix:
    """The change with which the value keeps its sharding all the way."""
    wording = wording_of(flow)

    def place_of(row: int) -> FindingPlace:
        name, source = wording.places.operation(row)
        return FindingPlace(name, source, "sdy", wording.span(row))

    blamed = next((row for row in (detour.lost, *detour.rows) if flow.rows[row].name == CONSTRAINT), detour.lost)
    place = place_of(blamed)
    node, dim = next(((node, dim) for node, dim in detour.nodes if node.row == blamed), detour.nodes[0])
    kept = kept_cut(flow, detour, node, dim)
    spec = f"dimension {dim} along {str(detour.axis)!r}" if kept is None else as_spec(kept)
    call = call_at(report.program, place.source, CONSTRAINTS)
    here = wording.places.operation(blamed)[0] if call is None else ast.unparse(call[1])
    fix = Fix(f"constrain {here} to {spec}")
    if flow.rows[blamed].name == CONSTRAINT:
        fix = Fix(f"leave out {here}, or let it ask for {spec}", without_call(report.program, call))
    rows = [row for row in dict.fromkeys((*detour.rows, *detour.back)) if row != blamed]
    return DetourFix(place, tuple(map(place_of, rows)), fix)


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
    sharding = f"jax.{as_spec(between)}"
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
