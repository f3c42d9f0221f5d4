"""SS40: a gradient that JAX sums over devices, and of which each of them returns a copy as its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...dataflow.meaning import POINTWISE, SAME, Does, meaning_of
from ...ir.jaxpr import ShardMap
from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ...report import Finding, Report, SourcePosition
from ...report.position import own_frames
from ..equations import At, Flow, flow_of
from ..fixes.calls import function_around, nodes_of, own_files, shard_map_calls
from ..fixes.edits import Edits, axes_text, with_keyword, wrapped
from ..fixes.gradients import gradient_call
from ..fixes.invariance import CASTS
from ..rule import Rule, alternatives, finding
from .ss06_unchecked_out_spec import output_of

SUM = "psum_invariant"


def check(report: Report) -> Iterator[Finding]:
    """The results of checked shard_maps that are sums of the backward pass, cast to vary for an out_spec."""
    flow = flow_of(report)
    for place in () if flow is None else flow.text.equations:
        mapped = place.equation.shard_map
        if flow is not None and mapped is not None and mapped.checked and not flow.is_backward(place):
            yield from _stacked(report, flow, place, mapped)


def _stacked(report: Report, flow: Flow, place: EquationPlace, mapped: ShardMap) -> Iterator[Finding]:
    body, sizes = dict(place.equation.bodies)["jaxpr"], dict(mapped.sizes)
    outputs = [At(body, name) for name in flow.jaxprs[body].outputs]
    sums = [list(_cast_sums(flow, value, sizes)) for value in outputs]
    reached: Counter[str] = Counter()
    for value in dict.fromkeys(outputs) if any(sums) else ():
        reached.update({each.id for each in flow.makers(value, lambda _: False)})
    for number, found in enumerate(sums):
        for each, axes in [(each, axes) for each, axes in found if reached[each.id] == 1][:1]:
            yield _found(report, flow, each, output_of(report, flow, place, number), axes)


def _cast_sums(flow: Flow, value: At, sizes: Mapping[str, int]) -> Iterator[tuple[EquationPlace, tuple[str, ...]]]:
    """The sums of the backward pass that an output casts to vary, with the axes of both."""
    made, _ = flow.made.get((value.jaxpr, value.name), (None, 0))
    type = flow.type_of(value)
    if made is None or made.equation.primitive not in CASTS or type is None or type.array.elements in (None, 1):
        return
    wanted = [axis for axis in made.equation.axes or () if sizes.get(axis) != 1]
    for each in flow.makers(At(value.jaxpr, made.equation.inputs[0]), _is_end):
        axes = tuple(axis for axis in wanted if axis in (each.equation.axes or ()))
        if axes and each.equation.primitive == SUM and flow.is_backward(each):
            yield each, axes


def _is_end(place: EquationPlace) -> bool:
    return meaning_of(place.equation.primitive).does not in SAME | POINTWISE | Does.REPEAT


def _found(report: Report, flow: Flow, place: EquationPlace, output: str, axes: tuple[str, ...]) -> Finding:
    over, place_of = ", ".join(map(repr, axes)), flow.source(place)
    return finding(
        RULE,
        flow.place(place),
        f"the gradient is summed over {over}, and {output} stacks a copy of the sum from each device",
        confidence="likely",
        subject=output,
        axes=axes,
        evidence=(("sum", f"{SUM} of the backward pass, as what is differentiated is the same on all devices"),),
        fixes=(
            *alternatives(f"cast what is differentiated to vary over {over}", _edits(report.program, place_of, axes)),
            *alternatives("shard_map with check_vma=False: nothing is summed unasked", _unchecked(report.program)),
        ),
    )


def _edits(program: Program, place: SourcePosition, axes: tuple[str, ...]) -> Iterator[Edits]:
    for frame in own_frames(place.stack):
        function = function_around(program, frame.file, frame.line)
        found = None if function is None else gradient_call(program, frame.file, function[1])
        if found is not None:
            yield wrapped((frame.file, found[0].args[0]), "jax.lax.pcast(", f", {axes_text(axes)}, to='varying')")


def _unchecked(program: Program) -> Iterator[Edits]:
    nodes = ((file, node) for file in own_files(program) for node in nodes_of(program, file))
    yield from (with_keyword(call, "check_vma", "False") for call in shard_map_calls(nodes))


RULE = Rule(
    id="SS40",
    slug="stacked-gradient-sum",
    severity="error",
    finds="A gradient that JAX sums over the devices of an axis, returned under an out_spec that names the axis.",
    why="What all devices have alike is cast to vary where it meets their data, and the transpose of that cast is a"
    " psum. An out_spec with the axis says that each device returns its own gradient; each returns the sum.",
    proof="In the jaxpr, the result is a psum_invariant of the backward pass that is cast to vary, with nothing but"
    " elementwise operations between them.",
    faulty="""own = lambda p, x: jax.grad(loss)(p, x)[None]
jax.shard_map(own, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))""",
    repaired="""own = lambda p, x: jax.grad(loss)(lax.pcast(p, "x", to="varying"), x)[None]
jax.shard_map(own, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))""",
    check=check,
    tries="the differentiated argument cast to vary; check_vma=False",
    of_gradients=True,
    is_observation=True,
)
