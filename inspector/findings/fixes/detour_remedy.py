"""Where a detour of a sharding is to be mended, and how."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...report import FindingPlace, Report
from ...shardings.dataflow import Dataflow
from ...shardings.explained import wording_of
from ...shardings.spelled import as_spec
from ..support.detours import CONSTRAINT, Detour, kept_cut
from .calls import call_at


@dataclass(frozen=True, slots=True)
class Remedy:
    """The operation to change, a constraint if the detour has one; the other operations on the way; and the change."""

    place: FindingPlace
    related: tuple[FindingPlace, ...]
    fix: str


def remedy_of(report: Report, flow: Dataflow, detour: Detour) -> Remedy:
    """What to change so that the value keeps its sharding all the way."""
    wording = wording_of(flow)

    def place_of(row: int) -> FindingPlace:
        name, source = wording.places.operation(row)
        return FindingPlace(name, source, "sdy", wording.span(row))

    blamed = next((row for row in (detour.lost, *detour.rows) if flow.rows[row].name == CONSTRAINT), detour.lost)
    place = place_of(blamed)
    node, dim = next(((node, dim) for node, dim in detour.nodes if node.row == blamed), detour.nodes[0])
    kept = kept_cut(flow, detour, node, dim)
    spec = f"dimension {dim} along {str(detour.axis)!r}" if kept is None else as_spec(kept)
    call = call_at(report.capture, place.source, ("with_sharding_constraint", "reshard", "device_put"))
    here = place.what if call is None else ast.unparse(call)
    is_asked = flow.rows[blamed].name == CONSTRAINT
    rows = [row for row in dict.fromkeys((*detour.rows, *detour.back)) if row != blamed]
    fix = f"leave out {here}, or let it ask for {spec}" if is_asked else f"constrain {here} to {spec}"
    return Remedy(place, tuple(map(place_of, rows)), fix)
