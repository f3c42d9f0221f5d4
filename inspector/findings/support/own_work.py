"""Work of a device on its own block alone: values that do not depend on any other device."""

from __future__ import annotations

from ...catalog.custom_calls import HOST_PRIMITIVES
from ...catalog.spellings import is_kernel, rule_of
from ...ir.jaxpr import Equation
from ...variance.inference import infer
from .jaxpr_flow import At, Flow

FOREIGN = frozenset({"ffi_call", "custom_partitioning", "custom_call", *HOST_PRIMITIVES})
"""Operations that may do anything."""


def differing_axes(flow: Flow, value: At) -> tuple[str, ...]:
    """The axes along which devices hold different values, as far as each computes its own of its own block alone.

    Empty for what is no result of an equation.
    """
    made = flow.made.get((value.jaxpr, value.name))
    known = () if made is None else infer(flow.text, "values").results.get(made[0].id, ())
    held = known[made[1]] if made is not None and made[1] < len(known) else ()
    exchanged = _exchanged(flow, value) if held else frozenset[str]()
    if exchanged is None:
        return ()
    return tuple(each.axis for each in held if each.state == "varying" and each.axis not in exchanged)


def _exchanged(flow: Flow, value: At) -> frozenset[str] | None:
    """The axes of the collectives that a value depends on; None where something else may have communicated."""
    axes, waiting, seen = set[str](), [value.name], set[str]()
    while waiting:
        name = waiting.pop()
        made = flow.made.get((value.jaxpr, name))
        if made is None or name in seen:
            continue
        equation = made[0].equation
        seen.update(output.name for output in equation.outputs)
        inside = _inside(flow, equation, set())
        if inside is None:
            return None
        axes |= inside
        waiting += equation.inputs
    return frozenset(axes)


def _inside(flow: Flow, equation: Equation, seen: set[int]) -> set[str] | None:
    """The axes over which an equation communicates, or one in its bodies; None where that is not known."""
    if is_kernel(equation.primitive) or equation.primitive in FOREIGN:
        return None
    rule = rule_of(equation.primitive)
    found = set(equation.axes or ()) if rule is not None and rule.lowers_to is not None else set[str]()
    for _, body in equation.bodies:
        if body in seen:
            continue
        seen.add(body)
        for each in flow.jaxprs[body].equations:
            inner = _inside(flow, each, seen)
            if inner is None:
                return None
            found |= inner
    return found
