"""SS06: a value that leaves an unchecked shard_map as shared, and is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...ir.jaxpr import ShardMap
from ...ir.jaxpr_text import EquationPlace
from ...report import Divergence, Finding, FindingPlace, Fix, Report
from ...variance.held import axes_of, join
from ...variance.inference import infer
from ..equations import At, Flow, flow_of
from ..fixes.edits import axes_text
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Values that were seen to differ along an axis that an out_spec leaves out, and inputs returned as they are."""
    flow = flow_of(report)
    differing: dict[tuple[str, str], list[Divergence]] = {}
    for divergence in report.divergences:
        if divergence.declared == "out_specs":
            differing.setdefault((divergence.equation, divergence.value), []).append(divergence)
    for divergences in differing.values():
        if flow is not None:
            yield _found(report, flow, divergences)
    for place in () if flow is None else flow.text.equations:
        mapped = place.equation.shard_map
        if flow is not None and mapped is not None and not mapped.checked and not flow.is_backward(place):
            yield from _of_own_blocks(report, flow, place, mapped)


def _of_own_blocks(report: Report, flow: Flow, place: EquationPlace, mapped: ShardMap) -> Iterator[Finding]:
    """Results made of what differs on each device, without the axes of that in the out_spec; with a run only inputs."""
    body, sizes = dict(place.equation.bodies)["jaxpr"], dict(mapped.sizes)
    given = dict(zip((each.name for each in flow.jaxprs[body].inputs), mapped.inputs, strict=False))
    known = infer(flow.text, "blocks").results
    is_run = report.capture.progress is not None or bool(report.capture.compared)
    for number, (name, leaving) in enumerate(zip(flow.jaxprs[body].outputs, mapped.outputs, strict=False)):
        made, position = flow.made.get((body, name), (None, 0))
        held = tuple(axis for axis, what in given.get(name, ()) if what == "varying")
        if made is not None and not is_run:
            held = axes_of(join(known.get(made.id, ())[position : position + 1]), "varying")
        missing = [axis for axis in held if axis not in dict(leaving) and sizes.get(axis) != 1]
        if missing:
            along, output = ", ".join(missing), output_of(report, flow, place, number)
            what = "made of what differs, and not reduced or gathered over it" if made is not None else "an input"
            yield finding(
                RULE,
                flow.place(made or place),
                f"{output} differs along {along}, but its out_spec omits {along}",
                confidence="likely",
                subject=output,
                axes=missing,
                related=() if made is None else (flow.place(place),),
                evidence=(("result", what),),
                fixes=_advice(missing),
            )


def _advice(axes: Sequence[str]) -> tuple[Fix, ...]:
    over = axes_text(tuple(axes))
    return advice(
        f"name {over} in the out_spec, or reduce the value over {over} before it is returned;"
        " with check_vma=True such specs fail to trace"
    )


def _found(report: Report, flow: Flow, differing: list[Divergence]) -> Finding:
    differs, place = differing[0], flow.by_id[differing[0].equation]
    mapped, along = flow.shard_map_around(place), ", ".join(each.axis for each in differing)
    result = _result(report, flow, mapped, differs)
    return finding(
        RULE,
        FindingPlace(f"{differs.value} = {differs.primitive}", differs.source, "jaxpr", place.span),
        f"{result} differs along {along}, but its out_spec omits {along}",
        confidence="proved",
        subject=result,
        axes=[each.axis for each in differing],
        related=() if mapped is None else (flow.place(mapped),),
        evidence=[
            *(
                ("live", f"bits differ between devices {' and '.join(map(str, each.devices))}, along {each.axis}")
                for each in differing
            ),
            *(
                ("since", _since(report, flow, origin))
                for each in differing
                if (origin := loop_origin(report, flow, each))
            ),
            *_carried(report, flow, differs, place),
        ],
        fixes=_advice([each.axis for each in differing]),
    )


def _carried(report: Report, flow: Flow, differs: Divergence, place: EquationPlace) -> Iterator[tuple[str, str]]:
    """The value in a loop's body that the loop returns, where it differs from the first iteration on."""
    position = next((n for n, each in enumerate(place.equation.outputs) if each.name == differs.value), -1)
    if place.equation.loop is None or position < 0 or loop_origin(report, flow, differs) is not None:
        return
    body = place.equation.bodies[-1][1]
    outputs = flow.jaxprs[body].outputs
    made = flow.made.get((body, outputs[position])) if position < len(outputs) else None
    if made is not None and (source := flow.source(made[0]).text(report.script)):
        yield "in the loop", f"{outputs[position]} = {made[0].equation.primitive} at {source}"


def _since(report: Report, flow: Flow, origin: LoopOrigin) -> str:
    """`iteration 3, w = mul at line 12; equal in those recorded before`."""
    source = flow.source(origin.place).text(report.script)
    where = f" at {source}" if source else ""
    number = ", ".join(map(str, origin.iteration))
    return (
        f"iteration {number}, {origin.name} = {origin.place.equation.primitive}{where}; equal in those recorded before"
    )


def _result(report: Report, flow: Flow, mapped: EquationPlace | None, differs: Divergence) -> str:
    """Return the value that leaves, by its path in the function's result, or by its number among several."""
    outputs = () if mapped is None else flow.jaxprs[dict(mapped.equation.bodies)["jaxpr"]].outputs
    if mapped is None or differs.value not in outputs:
        return differs.value
    return output_of(report, flow, mapped, outputs.index(differs.value))


def output_of(report: Report, flow: Flow, mapped: EquationPlace, number: int) -> str:
    """Return a result of a shard_map by its path in the function's result, or by its number among several."""
    paths, count = report.capture.outputs, len(mapped.equation.outputs)
    returned = flow.result_of(At(mapped.jaxpr, mapped.equation.outputs[number].name))
    if returned is not None and returned < len(paths) and paths[returned].path:
        return paths[returned].path
    return "the result" if count == 1 else f"result {number} of the shard_map"


Iteration = tuple[int, ...]


class LoopOrigin(NamedTuple):
    """The value that is the first to differ, of those that were recorded, and the iteration."""

    place: EquationPlace
    name: str
    iteration: Iteration


def loop_origin(report: Report, flow: Flow, found: Divergence) -> LoopOrigin | None:
    """Return where a result of a loop begins to differ; None if that is no loop's, or differs from the beginning on."""
    place = flow.by_id[found.equation]
    position = next((n for n, each in enumerate(place.equation.outputs) if each.name == found.value), -1)
    if position < 0 or place.equation.loop is None:
        return None
    first: dict[tuple[str, int], set[Iteration]] = {}
    for compared in report.capture.compared:
        for difference in compared.differs if compared.path else ():
            if difference.axis == found.axis and found.equation in compared.path[:-1]:
                first.setdefault((compared.path[-1], compared.position), set()).add(difference.iteration)
    body = flow.jaxprs[place.equation.bodies[-1][1]]
    at = (place.equation.bodies[-1][1], body.outputs[position]) if position < len(body.outputs) else None
    origin = None
    while at is not None and at in flow.made:
        made, number = flow.made[at]
        iterations = first.get((made.id, number), set())
        if len(iterations) != 1 or (origin is not None and iterations != {origin.iteration}):
            break
        (iteration,) = iterations
        origin = LoopOrigin(made, at[1], iteration)
        operands = [(at[0], name) for name in made.equation.inputs]
        at = next((each for each in operands if _first(flow, first, each) == iteration), None)
    return origin if origin is not None and origin.iteration[-1:] > (0,) else None


def _first(flow: Flow, first: dict[tuple[str, int], set[Iteration]], value: tuple[int, str]) -> Iteration | None:
    if value not in flow.made:
        return None
    place, number = flow.made[value]
    return next(iter(first.get((place.id, number), ())), None)


RULE = Rule(
    id="SS06",
    slug="unchecked-out-spec",
    severity="error",
    finds="A value that leaves a shard_map with check_vma=False through an out_spec without an axis over which it"
    " varies.",
    why="The caller has one array whose copies differ, and which copy is read is arbitrary.",
    proof="A run: two devices along the axis hold different bits. For an input that is returned unchanged, its in_spec."
    " Without a run: it is made of a sharded input, the device's position or a reduce-scatter, and nothing sums,"
    " gathers or permutes it over the axis afterwards."
    " The last two are `likely`, as blocks can be equal by chance.",
    faulty='jax.shard_map(lambda x: jnp.sum(x), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)',
    repaired='jax.shard_map(lambda x: lax.psum(jnp.sum(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())',
    check=check,
    is_observation=True,
    by_hand="whether to reduce the value or to name the axis is the author's choice; with the check on, the function"
    " does not trace, and `shardscope run` tries both edits",
)
