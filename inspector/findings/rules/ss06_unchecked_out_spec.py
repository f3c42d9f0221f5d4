"""SS06: a value that leaves an unchecked shard_map as shared, and is not."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.jaxpr import ShardMap
from ...ir.jaxpr_text import EquationPlace
from ...report import Divergence, Finding, FindingPlace, Fix, Report
from ..rule import Rule, advice, finding
from ..support.jaxpr_flow import At, Flow, flow_of
from ..support.own_work import differing_axes


def check(report: Report) -> Iterator[Finding]:
    """Values that were seen to differ along an axis that an out_spec leaves out, and inputs returned as they are."""
    flow = flow_of(report)
    for divergence in report.divergences:
        if flow is not None and divergence.declared == "out_specs":
            yield _found(flow, divergence)
    for place in () if flow is None else flow.text.equations:
        mapped = place.equation.shard_map
        if flow is not None and mapped is not None and not mapped.checked and not flow.is_backward(place):
            yield from _handed_on(flow, place, mapped)
            if report.capture.progress is None and not report.capture.compared:  # nor will a run say more
                yield from _of_own_blocks(flow, place, mapped)


def _of_own_blocks(flow: Flow, place: EquationPlace, mapped: ShardMap) -> Iterator[Finding]:
    """Results that each device computes of its own blocks alone, without the axes of these in the out_spec."""
    body, sizes = dict(place.equation.bodies).get("jaxpr", 0), dict(mapped.sizes)
    for name, leaving in zip(flow.jaxprs[body].outputs, mapped.outputs, strict=False):
        named = {axis for axis, _ in leaving}
        differing = differing_axes(flow, At(body, name))
        missing = tuple(axis for axis in differing if axis not in named and sizes.get(axis) != 1)
        if missing:
            along, (made, _) = ", ".join(missing), flow.made[body, name]
            yield finding(
                RULE,
                flow.place(made),
                f"each device along {along} computes this from its own block, but its out_spec omits {along}",
                confidence="likely",
                axes=missing,
                related=(flow.place(place),),
                evidence=(("result", f"{name} depends on no other device along {along}"),),
                fixes=_advice(along),
            )


def _handed_on(flow: Flow, place: EquationPlace, mapped: ShardMap) -> Iterator[Finding]:
    """The inputs of a shard_map that leave it as they are, with fewer axes in the out_spec than in the in_spec."""
    body = flow.jaxprs[dict(place.equation.bodies).get("jaxpr", 0)]
    given = {variable.name: number for number, variable in enumerate(body.inputs)}
    sizes = dict(mapped.sizes)
    for number, name in enumerate(body.outputs):
        into = given.get(name)
        if into is None or into >= len(mapped.inputs) or number >= len(mapped.outputs):
            continue
        leaving = {axis for axis, _ in mapped.outputs[number]}
        missing = [a for a, what in mapped.inputs[into] if what == "varying" and a not in leaving and sizes.get(a) != 1]
        if missing:
            yield _returned(flow, place, place.equation.inputs[into], tuple(missing))


def _returned(flow: Flow, place: EquationPlace, operand: str, axes: tuple[str, ...]) -> Finding:
    along = ", ".join(axes)
    return finding(
        RULE,
        flow.place(place),
        f"an input sharded over {along} is returned under an out_spec without {along}",
        confidence="likely",
        axes=axes,
        evidence=(("input", f"{operand}: each device along {along} has a different block of it"),),
        fixes=_advice(along),
    )


def _advice(axes: str) -> tuple[Fix, ...]:
    return advice(
        f"name {axes!r} in the out_spec, or reduce the value over {axes!r} before it is returned;"
        " with check_vma=True such specs fail to trace"
    )


def _found(flow: Flow, differs: Divergence) -> Finding:
    place = flow.by_id[differs.equation]
    mapped = flow.shard_map_around(place)
    between = " and ".join(map(str, differs.devices))
    return finding(
        RULE,
        FindingPlace(f"{differs.value} = {differs.primitive}", differs.source, "jaxpr", place.span),
        f"{_result(flow, mapped, differs)} differs along {differs.axis}, but its out_spec omits {differs.axis}",
        confidence="proved",
        axes=(differs.axis,),
        related=() if mapped is None else (flow.place(mapped),),
        evidence=(("live", f"bits differ between devices {between}"),),
        fixes=_advice(differs.axis),
    )


def _result(flow: Flow, mapped: EquationPlace | None, differs: Divergence) -> str:
    """Return the value that leaves, by its number among several, or by its name where it is not known to leave."""
    outputs = () if mapped is None else flow.jaxprs[dict(mapped.equation.bodies).get("jaxpr", 0)].outputs
    if differs.value not in outputs:
        return differs.value
    return "the result" if len(outputs) == 1 else f"result {outputs.index(differs.value)} of the shard_map"


RULE = Rule(
    id="SS06",
    slug="unchecked-out-spec",
    severity="error",
    finds="A value that leaves a shard_map with check_vma=False through an out_spec without an axis over which it"
    " varies.",
    why="The caller has one array whose copies differ, and which copy is read is arbitrary.",
    proof="A run: two devices along the axis hold different bits. For an input that is returned unchanged, its in_spec."
    " Without a run: each device computes the value from its own block, and nothing from another device enters it."
    " The last two are `likely`, as blocks can be equal by chance.",
    faulty='jax.shard_map(lambda x: jnp.sum(x), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)',
    repaired='jax.shard_map(lambda x: lax.psum(jnp.sum(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())',
    check=check,
    by_hand="whether to reduce the value or to name the axis is the author's choice; with the check on, the function"
    " does not trace, and `shardscope run` tries both edits",
)
