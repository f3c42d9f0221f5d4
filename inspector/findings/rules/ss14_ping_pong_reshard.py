"""SS14: a value that is cut along another dimension, and then as before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ..fixes.calls import call_at
from ..fixes.constraints import inserted_detours
from ..fixes.edits import together, without_call
from ..rule import Rule, finding
from ..support.blocks import Reached, numbers_of, reached
from ..support.compiled import EXCHANGES, certainty, compiled_to, is_compiled, saving
from ..support.compiled_from import compiled_as
from ..support.jaxpr_flow import At, Flow, Use, equations_of


def check(report: Report) -> Iterator[Finding]:
    """Exchanges that were written and taken back, then each dimension that an axis leaves, and to which it returns.

    Where that happens before it makes a difference.
    """
    for flow, place in equations_of(report, EXCHANGES):
        found = reached(flow, At(place.jaxpr, place.equation.outputs[0].name), partial(_takes_back, place))
        if found is not None and found.is_local(flow):
            yield from _written(report, flow, place, found)
    for detour in inserted_detours(report, "all-to-all"):
        yield detour.finding(
            RULE,
            f"{detour.name(detour.detour.source)}: {detour.detour.axis} moves from dimension {detour.detour.dim} to"
            f" {detour.detour.elsewhere}, and back for nothing",
            ("in between", "back at"),
            ", and another",
            times=2,
        )


def _takes_back(place: EquationPlace, use: Use) -> bool:
    """Return whether a use is the inverse exchange."""
    back, there = use.place.equation, place.equation
    if back.primitive != there.primitive or back.axes != there.axes:
        return False
    dims = [[numbers_of(each, name) for name in ("split_axis", "concat_axis")] for each in (back, there)]
    same = all(dict(back.params).get(name) == dict(there.params).get(name) for name in ("tiled", "axis_index_groups"))
    return dims[0] == dims[1][::-1] and () not in dims[0] and same


def _written(report: Report, flow: Flow, place: EquationPlace, found: Reached) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[0].type.array
    compiled = compiled_as(report, "all-to-all", axes, type, source)
    if compiled is None and is_compiled(report):
        return
    back = list(dict.fromkeys(use.place for use in found.ends))
    calls = [call_at(report.program, flow.source(each), ("all_to_all",)) for each in (place, *back)]
    edits = [without_call(report.program, call) for call in calls]
    along = ", ".join(axes)
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is exchanged over {along} and back, with only elementwise operations in between",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, back),
        evidence=(compiled_to(compiled, ", and another"),),
        fixes=(Fix("leave out both", together(*edits) if all(edits) else ()),),
        saves=saving(compiled, times=1 + len(back)),
    )


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is resharded to another dimension and back, with only elementwise operations in between.",
    why="Two all-to-alls, each of which moves nearly the full value. XLA does not cancel them.",
    proof="After propagation an axis shards one dimension of a value, another dimension of what is computed from it"
    " elementwise, and the first one again of everything computed from that; or an all_to_all is followed by its"
    " inverse, with only scalars in between. `proved` if the compiled program has the all-to-all; not reported if"
    " the compiler avoided it.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="no constraint in between",
)
