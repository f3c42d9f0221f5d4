"""SS14: a value that is cut along another dimension, and then as before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...catalog.spellings import functions_of
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Kind, Report
from ..fixes.calls import call_at
from ..fixes.constraints import InsertedDetour, inserted_detours
from ..fixes.edits import together, without_call
from ..rule import Rule, finding
from ..support.blocks import Reached, numbers_of, reached
from ..support.compiled import EXCHANGES, certainty, compiled_to, is_compiled, saving
from ..support.compiled_from import compiled_as
from ..support.detours import Detour
from ..support.device_values import axis_sizes, devices_along, permutation_of
from ..support.jaxpr_flow import At, Flow, Use, equations_of


def check(report: Report) -> Iterator[Finding]:
    """Exchanges that were written and taken back, then each dimension that an axis leaves, and to which it returns.

    Where that happens before it makes a difference.
    """
    for flow, place in equations_of(report, (*EXCHANGES, "ppermute")):
        devices = devices_along(place.equation.axes or (), axis_sizes(report, flow, place))
        start = At(place.jaxpr, place.equation.outputs[0].name)
        found = reached(flow, start, partial(_takes_back, place, devices))
        if found is not None and found.is_local(flow):
            yield from _written(report, flow, place, found)
    groups: dict[tuple[object, ...], list[InsertedDetour]] = {}
    for detour in inserted_detours(report, "all-to-all"):
        groups.setdefault((detour.blamed, detour.fix, detour.detour.source), []).append(detour)
    for first, *others in groups.values():
        moves = _moves([each.detour for each in (first, *others)])
        yield first.finding(
            RULE,
            f"{first.name(first.detour.source)}: {moves}, and back for nothing",
            ("in between", "back at"),
            ", and another",
            times=2,
            others=others,
        )


def _moves(detours: list[Detour]) -> str:
    """The axes, and the dimensions between which they move."""
    axes = " and ".join(dict.fromkeys(str(each.axis) for each in detours))
    ends = {(each.dim, each.elsewhere) for each in detours}
    if len(ends) == 1:
        move = "moves" if len(detours) == 1 else "move"
        return f"{axes} {move} from dimension {detours[0].dim} to {detours[0].elsewhere}"
    if len(ends) == 2 and {end[::-1] for end in ends} == ends:
        return f"{axes} trade dimensions {detours[0].dim} and {detours[0].elsewhere}"
    return f"{axes} move to other dimensions"


def _takes_back(place: EquationPlace, devices: int | None, use: Use) -> bool:
    """Return whether a use is the inverse exchange, or the inverse of a permutation of all devices."""
    back, there = use.place.equation, place.equation
    if back.primitive != there.primitive or back.axes != there.axes:
        return False
    if there.primitive == "ppermute":
        pairs = permutation_of(there)
        everyone = set(range(devices or 0))
        if len(everyone) == 2:
            return False  # of two devices, a ring's next step takes back the one before
        is_inverse = {(target, source) for source, target in permutation_of(back)} == set(pairs)
        return is_inverse and everyone == {source for source, _ in pairs} == {target for _, target in pairs}
    dims = [[numbers_of(each, name) for name in ("split_axis", "concat_axis")] for each in (back, there)]
    same = all(dict(back.params).get(name) == dict(there.params).get(name) for name in ("tiled", "axis_index_groups"))
    return dims[0] == dims[1][::-1] and () not in dims[0] and same


def _written(report: Report, flow: Flow, place: EquationPlace, found: Reached) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[0].type.array
    kind: Kind = "collective-permute" if equation.primitive == "ppermute" else "all-to-all"
    compiled = compiled_as(report, kind, axes, type, source)
    if compiled is None and is_compiled(report):
        return
    back = list(dict.fromkeys(use.place for use in found.ends))
    calls = [call_at(report.program, flow.source(each), functions_of(kind)) for each in (place, *back)]
    edits = [without_call(report.program, call) for call in calls]
    along = ", ".join(axes)
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is {'permuted' if kind == 'collective-permute' else 'exchanged'} over {along} and back, with only"
        " elementwise operations in between",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, back),
        evidence=(compiled_to(compiled, ", and another"),),
        fixes=(Fix("remove both", together(*edits) if all(edits) else ()),),
        saves=saving(compiled, times=1 + len(back)),
    )


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is resharded to another dimension and back, with only elementwise operations in between.",
    why="Two all-to-alls, or permutations where axes trade places, each of which moves nearly all of"
    " the value. XLA does not cancel them.",
    proof="After propagation an axis shards one dimension of a value, another dimension of what is computed from it"
    " elementwise, and the first one again of everything computed from that; or an all_to_all, or a ppermute to"
    " which all devices send, is followed by its inverse, with only scalars in between. `proved` if the compiled"
    " program has the collective; not reported if the compiler avoided it.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="the program without the constraint in between, or without both exchanges",
)
