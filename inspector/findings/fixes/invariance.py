"""Values that all devices have, and whose types say otherwise: what makes the types say it too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ..equations import At, Flow
from .calls import call_at, name_of
from .edits import Edits, with_keyword, without_call

MAX_STEPS = 200
"""Equations that are followed back from a value."""

CASTS = ("pvary", "pcast")


def without_varying(program: Program, call: tuple[str, ast.Call]) -> tuple[str, Edits]:
    """A gather that says that all devices have the same, or no cast to what varies: the same values. Its title too."""
    text = ast.unparse(call[1])
    if name_of(call[1].func) in CASTS:
        return f"leave out {text}", without_call(program, call)
    return f"{text} with to='invarying'", with_keyword(call, "to", "'invarying'")


def made_to_vary(program: Program, flow: Flow, place: EquationPlace, number: int) -> Iterator[tuple[str, Edits]]:
    """The gathers and casts along its axes that an equation's operand is made of, as `without_varying` has them."""
    axes = set(place.equation.axes or ())
    waiting = [At(place.jaxpr, place.equation.inputs[number])]
    seen, calls = set(waiting), dict[ast.Call, str]()
    while waiting and len(seen) < MAX_STEPS:
        at = waiting.pop()
        made = flow.made.get((at.jaxpr, at.name))
        if made is None:
            outer = flow.operand(at)
            before = [] if outer is None else [outer]
        else:
            equation = made[0].equation
            if equation.primitive in ("all_gather", *CASTS) and set(equation.axes or ()) & axes:
                call = call_at(program, flow.source(made[0]), ("all_gather", *CASTS))
                if call is not None:
                    calls[call[1]] = call[0]
                continue
            before = [At(at.jaxpr, name, at.calls) for name in equation.inputs]
        waiting += [each for each in before if each not in seen]
        seen.update(before)
    yield from (without_varying(program, (file, call)) for call, file in calls.items())
