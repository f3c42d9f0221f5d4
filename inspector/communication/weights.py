"""The arguments of a program that it trains: those that come back updated, or whose gradients do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..capture.model import Capture, Value
from ..dataflow.jaxpr import At, GlobalFlow, global_flow_of
from ..dataflow.meaning import POINTWISE, SAME
from ..dataflow.walks import forward
from ..ir.derived import derived
from ..ir.name_scopes import Leaf, counterparts
from ..ir.program import Program

REF = "Ref{"
"""The start of the type of an array that is updated in place."""

MAX_VALUES = 100_000
"""Values that are made of gradients."""


@derived
def weights_of(program: Program) -> frozenset[str]:
    """Return the paths of the arguments that are trained, by what becomes of them, and by paths and types."""
    capture, text = program.capture, program.jaxpr
    if text is None:
        return frozenset(like_results(capture.arguments, capture.outputs))
    flow = global_flow_of(text)
    backward = [place for place in text.equations if flow.is_backward(place)]
    gradients = [At(place.jaxpr, output.name) for place in backward for output in place.equation.outputs]
    results = flow.jaxprs[0].outputs if gradients else ()

    is_known = len(results) == len(capture.outputs)

    def is_trained(number: int) -> bool:
        """Return whether a result may be made of gradients."""
        return not is_known or any(map(flow.is_backward, flow.makers(At(0, results[number]), flow.is_backward)))

    like = like_results(capture.arguments, capture.outputs, is_trained)
    return frozenset(_updated(flow, gradients, capture)).union(like)


def like_results(
    arguments: Sequence[Value], outputs: Sequence[Value], is_trained: Callable[[int], bool] = lambda _: True
) -> set[str]:
    """Return the arguments that are updated in place, or that a result is like: their gradient, or their new value."""
    leaves = ([Leaf(each.path, each.type) for each in values] for values in (arguments, outputs))
    known = counterparts(*leaves)
    chosen = [number for result, each in known.items() if is_trained(result) for number in each]
    return {arguments[number].path for number in chosen} | {
        each.path for each in arguments if each.type.startswith(REF)
    }


def _updated(flow: GlobalFlow, gradients: Sequence[At], capture: Capture) -> Iterator[str]:
    """Arguments that become a result of their type elementwise, together with a result of the backward pass."""
    inputs = flow.jaxprs[0].inputs if flow.jaxprs else ()
    if len(inputs) != len(capture.arguments):
        return
    updates = forward(flow, gradients, SAME | POINTWISE, carried=True, limit=MAX_VALUES)
    numbers = {each.path[0] for each in updates.outputs}
    types = {(number, output.type) for number, output in enumerate(capture.outputs) if number in numbers}
    wanted = {type for _, type in types}
    for variable, argument in zip(inputs, capture.arguments, strict=True):
        if argument.type in wanted:
            reach = forward(flow, [At(0, variable.name)], SAME | POINTWISE, carried=True)
            if any((output.path[0], argument.type) in types for output in reach.outputs):
                yield argument.path
