"""A change of sharding in two steps, where the partitioner has no path for it in one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....parsers import gspmd
from ....parsers.errors import ShardscopeError
from ....parsers.mlir.sdy import DimensionSharding
from ...report import Edit, Finding, Report
from ...shardings.sharding import ArraySharding
from ...shardings.spelled import as_spec, from_gspmd
from ...source_files import source_of
from .calls import call_in, name_of
from .changes import imports, wrapped_operand

CONSTRAINTS = ("with_sharding_constraint",)


def through_both(report: Report, found: Finding) -> Iterator[tuple[Edit, ...]]:
    """One more constraint before the one that is there: to the axes of both, for which each device cuts what it has."""
    evidence = dict(found.evidence)
    call = call_in(report.capture, found.place.source, CONSTRAINTS)
    between = _both(report, evidence.get("from", ""), evidence.get("to", ""))
    if call is None or between is None or len(call[1].args) < 2:
        return
    source = source_of(report.capture, call[0])
    wanted = ast.unparse(call[1].args[1])
    if source is None or not imports(source, "jax"):
        return
    sharding = f"jax.{as_spec(between)}"
    if not (isinstance(call[1].args[1], ast.Call) and name_of(call[1].args[1]) in ("P", "PartitionSpec")):
        sharding = f"jax.NamedSharding({wanted}.mesh, {sharding})"
    function = ast.unparse(call[1].func)
    yield wrapped_operand(report.capture, found.place.source, CONSTRAINTS, f"{function}(", f", {sharding})")


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
