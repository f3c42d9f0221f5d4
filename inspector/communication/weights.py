"""The arguments of a program that it trains: those that come back updated, or whose gradients do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..capture.model import Capture, Value
from ..dataflow.graph import Output
from ..dataflow.jaxpr import At, global_flow_of
from ..dataflow.meaning import POINTWISE, SAME
from ..dataflow.walks import forward
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.program import Program
from ..ir.pytree_paths import Leaf, counterparts

REF = "Ref{"
"""The start of the type of an array that is updated in place."""

MAX_VALUES = 100_000
"""Values that are made of gradients."""


@derived
def weights_of(program: Program) -> frozenset[str]:
    """Return the paths of the arguments that are trained, by what becomes of them, and by paths and types."""
    capture, text = program.capture, program.jaxpr
    updated = _updated(text, capture) if text is not None else ()
    return frozenset(updated).union(like_results(capture.arguments, capture.outputs))


def like_results(arguments: Sequence[Value], outputs: Sequence[Value]) -> set[str]:
    """Return the arguments that are updated in place, or that a result is like: their gradient, or their new value."""
    leaves = ([Leaf(each.path, each.type) for each in values] for values in (arguments, outputs))
    found = {arguments[number].path for choices in counterparts(*leaves).values() for number in choices}
    return found | {each.path for each in arguments if each.type.startswith(REF)}


def _updated(text: JaxprText, capture: Capture) -> Iterator[str]:
    """Arguments that become a result of their type elementwise, together with a result of the backward pass."""
    flow = global_flow_of(text)
    inputs = flow.jaxprs[0].inputs if flow.jaxprs else ()
    if len(inputs) != len(capture.arguments):
        return
    backward = [place for place in text.equations if flow.is_backward(place)]
    gradients = [At(place.jaxpr, output.name) for place in backward for output in place.equation.outputs]
    updates = forward(flow, gradients, SAME | POINTWISE, carried=True, limit=MAX_VALUES)
    types = {(each.path[0], capture.outputs[each.path[0]].type) for each in updates.outputs if _is_in(each, capture)}
    wanted = {type for _, type in types}
    for variable, argument in zip(inputs, capture.arguments, strict=True):
        if argument.type in wanted:
            reach = forward(flow, [At(0, variable.name)], SAME | POINTWISE, carried=True)
            if any((output.path[0], argument.type) in types for output in reach.outputs):
                yield argument.path


def _is_in(output: Output, capture: Capture) -> bool:
    return output.path[0] < len(capture.outputs)
