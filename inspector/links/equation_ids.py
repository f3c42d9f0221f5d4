"""Which operations of the StableHLO an equation of the jaxpr became: exactly, by the numbers of
`capture/worker/equation_numbers.py`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from ...parsers.source import Span
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.program import Program

EquationNumber = tuple[int, int]
"""The index of a jaxpr, and that of an equation in it."""


def operations_of(program: Program, text: JaxprText, offset: int) -> tuple[int, ...]:
    """The numbers of the operations that the equation at an offset of the printed jaxpr became.

    One that stands for others, as a call does, may be nothing by itself: then they are those of its bodies.
    """
    place = text.equation_at(offset)
    by_equation = _by_equation(program)
    waiting = [] if place is None else [(place.jaxpr, place.index)]
    seen: set[EquationNumber] = set()
    while waiting and not (found := [number for each in waiting for number in by_equation.get(each, ())]):
        seen.update(waiting)
        waiting = [each for each in dict.fromkeys(_inside(text, waiting)) if each not in seen]
    return tuple(dict.fromkeys(found)) if waiting else ()


def spans_of_equations(program: Program, text: JaxprText, operations: Iterable[int]) -> tuple[Span, ...]:
    """Where the equations are printed that operations with these numbers come from."""
    by_operation = _by_operation(program)
    wanted = {by_operation[number] for number in operations if number in by_operation}
    return tuple(place.span for place in text.equations if (place.jaxpr, place.index) in wanted) if wanted else ()


def _inside(text: JaxprText, equations: Iterable[EquationNumber]) -> Iterable[EquationNumber]:
    jaxprs = text.program.jaxprs
    for jaxpr, index in equations:
        if jaxpr < len(jaxprs) and index < len(jaxprs[jaxpr].equations):
            for _, body in jaxprs[jaxpr].equations[index].bodies:
                inner = jaxprs[body].equations if 0 <= body < len(jaxprs) else ()
                yield from ((body, position) for position in range(len(inner)))


@derived
def _by_operation(program: Program) -> Mapping[int, EquationNumber]:
    numbers = array("I", program.capture.equations)
    return dict(zip(numbers[::3], zip(numbers[1::3], numbers[2::3], strict=True), strict=True))


@derived
def _by_equation(program: Program) -> Mapping[EquationNumber, tuple[int, ...]]:
    found: dict[EquationNumber, list[int]] = {}
    for number, equation in _by_operation(program).items():
        found.setdefault(equation, []).append(number)
    return {equation: tuple(numbers) for equation, numbers in found.items()}
