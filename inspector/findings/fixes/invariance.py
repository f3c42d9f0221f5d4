"""Values that all devices have, and whose types say otherwise: what makes the types say it too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ..equations import At, Flow
from .calls import call_at, name_of
from .edits import Edits, with_keyword, without_call

CASTS = ("pvary", "pcast")

MAX_STEPS = 200
"""Equations that are followed back from a value."""


def without_varying(program: Program, call: tuple[str, ast.Call]) -> tuple[str, Edits]:
    """A gather that says that all devices have the same, or no cast to what varies: the same values. Its title too."""
    text = ast.unparse(call[1])
    if name_of(call[1].func) in CASTS:
        return f"leave out {text}", without_call(program, call)
    return f"{text} with to='invarying'", with_keyword(call, "to", "'invarying'")


def made_to_vary(program: Program, flow: Flow, place: EquationPlace, number: int) -> Iterator[tuple[str, Edits]]:
    """The gathers and casts along its axes that an equation's operand is made of, as `without_varying` has them."""
    axes = set(place.equation.axes or ())

    def is_made(each: EquationPlace) -> bool:
        return each.equation.primitive in ("all_gather", *CASTS) and bool(set(each.equation.axes or ()) & axes)

    makers = islice(flow.makers(At(place.jaxpr, place.equation.inputs[number]), is_made), MAX_STEPS)
    places = filter(is_made, makers)
    calls = dict.fromkeys(call_at(program, flow.source(each), ("all_gather", *CASTS)) for each in places)
    yield from (without_varying(program, call) for call in calls if call is not None)
