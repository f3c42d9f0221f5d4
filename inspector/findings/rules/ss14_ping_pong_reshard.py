"""SS14: a value that is cut along another dimension, and then as before."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Finding, Report
from ...shardings.dataflow import Dataflow
from ...shardings.explained import wording_of
from ...shardings.table import propagated
from ..fixes.constraints import detour_fix
from ..rule import Rule, finding
from ..support.compiled import is_compiled
from ..support.detours import Detour, detours
from ..support.inserted import inserted_for


def check(report: Report) -> Iterator[Finding]:
    """Each dimension that an axis leaves for another one, and to which it returns before that makes a difference."""
    _, flow = propagated(report.program)
    for detour in detours(report.program):
        if flow is not None and detour.elsewhere is not None:
            yield from _found(report, flow, detour)


def _found(report: Report, flow: Dataflow, detour: Detour) -> Iterator[Finding]:
    exchange = inserted_for(report, flow, detour.nodes, "all-to-all", detour.axis.name)
    if is_compiled(report) and exchange is None:
        return
    wording, axis = wording_of(flow), str(detour.axis)
    change = detour_fix(report, flow, detour)
    yield finding(
        RULE,
        change.place,
        f"{axis} moves from dimension {detour.dim} of {wording.name(detour.source)} to dimension {detour.elsewhere},"
        " and back: what is done in between works element by element",
        confidence="likely" if exchange is None else "proved",
        axes=(detour.axis.name,),
        related=change.related,
        evidence=(
            ("in between", ", ".join(wording.name(node) for node, _ in detour.nodes[:6])),
            ("back at", ", ".join(wording.places.operation(row)[0] for row in detour.back[:6])),
            ("compiled to", "not compiled" if exchange is None else f"{exchange.kind} {exchange.name}, and another"),
        ),
        fixes=(change.fix,),
        saved_bytes=None if exchange is None or exchange.wire_bytes is None else 2 * exchange.wire_bytes,
        saved_seconds=None if exchange is None or exchange.estimate is None else 2 * exchange.estimate.seconds,
    )


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is cut along another dimension and, with only element by element work in between, as before.",
    why="Two all-to-alls, each of which moves nearly all of the value. XLA does not cancel them.",
    proof="After propagation an axis cuts one dimension of a value, another one of what is made of it element by"
    " element, and the first one again of all that is made of that. `proved` when the compiled program has the"
    " all-to-all; silent when the compiler did without it.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="no constraint in between",
)
