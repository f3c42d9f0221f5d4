"""Fixes of sharding constraints: a needless one is left out, a distant one is reached in two steps."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from ....parsers.errors import ShardscopeError
from ....parsers.mlir.sdy import DimensionSharding
from ....parsers.sharding_syntax import gspmd
from ...catalog.spellings import SDY_REQUESTS
from ...ir.array_sharding import ArraySharding
from ...ir.sharding_spellings import from_gspmd
from ...report import (
    Collective,
    CollectiveCause,
    ConstraintOrigin,
    FindingPlace,
    Fix,
    Report,
    ShardedValue,
    SourcePosition,
)
from ...shardings.collective_causes import causes_of
from ...shardings.explained import why_axes, wording_of
from ...shardings.recorded import sharding_at
from ...shardings.table import propagated
from ..rule import MAX_ALTERNATIVES
from .calls import call_at, imports, name_of
from .edits import Edits, axes_text, instead, left_out, together, wrapped
from .specs import sharding_text, spelled, value_behind

CONSTRAINTS = ("with_sharding_constraint", "with_logical_constraint", "reshard", "device_put")

MAX_FOLLOWED = 100
"""Values that are followed to the constraints behind them."""


def replicated_by(report: Report, shapes: Collection[tuple[int, ...] | None]) -> Iterator[tuple[FindingPlace, Fix]]:
    """Constraints that make values of these shapes whole on each device, each with the fix of leaving it out."""
    for value in _made_whole(report, shapes):
        place = FindingPlace(value.name, value.source, value.stage, value.span)
        for fix in left_out(report.program, [value.source], CONSTRAINTS):
            yield place, fix


def _made_whole(report: Report, shapes: Collection[tuple[int, ...] | None]) -> Iterator[ShardedValue]:
    """The constrained values of these shapes that each device has whole."""
    for value in report.shardings:
        sharding = value.sharding
        if value.role != "constraint" or sharding is None or value.type.shape not in shapes:
            continue
        if not (*sharding.sharded, *sharding.unreduced, *sharding.manual):
            yield value


def resharded(
    report: Report, shapes: Collection[tuple[int, ...] | None], axes: tuple[str, ...], parts: int
) -> Iterator[Fix]:
    """Each reshard that makes a value of these shapes whole, to each dimension that so many parts along axes divide.

    Where types say how values are sharded, leaving it out rarely traces.
    """
    for value in _made_whole(report, shapes):
        call = call_at(report.program, value.source, ("reshard",))
        if call is None or len(call[1].args) < 2:
            continue
        file, wanted = call[0], call[1].args[1]
        spec = value_behind(report.program, file, wanted)
        for dim in (number for number, size in enumerate(value.type.shape or ()) if size % parts == 0):
            text = f"P({'None, ' * dim}{axes_text(axes)})"
            if isinstance(spec, ast.Call) and name_of(spec.func) == "NamedSharding":
                text = sharding_text(report.program, (file, wanted), text)
            else:
                text = spelled(report.program, file, text)
            if text:
                title = f"{ast.unparse(call[1].func)} {ast.unparse(call[1].args[0])} to {text}"
                yield Fix(f"{title} instead of {ast.unparse(wanted)}", instead((file, wanted), text))


def without_constraints(report: Report, collective: Collective) -> tuple[Fix, ...]:
    """The program without a constraint behind a collective or at it, or because of which there is one."""
    causes = causes_of(report.program, collective)
    moved = [each for each in causes if each.effect == "reshard"]
    axes = [axis for each in moved for axis in (*each.origins, *each.against)]
    whys = why_axes(report.program, axes, most=0) if axes else ()
    asked = (why.place for why in whys if isinstance(why.origin, ConstraintOrigin))
    here = (collective.source, *(each.place for each in moved[:1])) if moved or not causes else ()
    behind = left_out(report.program, _behind(report, collective, causes), CONSTRAINTS)
    every = together(*(fix.edits for fix in behind))
    both = [Fix("; ".join(fix.title for fix in behind), every)] if every and len(behind) > 1 else []
    fixes = dict.fromkeys((*both, *behind, *left_out(report.program, (*here, *asked), CONSTRAINTS)))
    return tuple(islice(fixes, MAX_ALTERNATIVES))


def _behind(report: Report, collective: Collective, causes: Iterable[CollectiveCause]) -> Iterator[SourcePosition]:
    """The constraints without a collective's axes that what it moves comes to, the nearest first."""
    _, flow = propagated(report.program)
    if flow is None:
        return
    waiting = [each.node for cause in causes for each in cause.origins]
    over = {axis.name for axis in collective.axes or ()}
    for node in waiting:
        for row in flow.users(node):
            results = flow.results(row)
            if flow.rows[row].name not in SDY_REQUESTS:
                waiting += [each for each in results if each not in waiting and len(waiting) < MAX_FOLLOWED]
                continue
            sharding = sharding_at(flow, results[0]) if results else None
            held = {axis.name for dim in sharding.dims for axis in dim.axes} if sharding is not None else over
            if held.isdisjoint(over):
                yield wording_of(flow).places.operation(row)[1]


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
