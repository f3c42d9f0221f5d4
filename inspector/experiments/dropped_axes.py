"""Explicit axes that an operand has and `out_sharding=` leaves out: added where the operand's dimension comes out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ...parsers.errors import readable
from ...parsers.sharding_syntax.jax_arrays import parse_array_type
from ...parsers.sharding_syntax.mesh import AxisRef
from ..dataflow.jaxpr import global_flow_of
from ..findings.fixes.calls import own_files
from ..findings.fixes.edits import Edits, instead, together
from ..findings.rules import suspect
from ..ir.jaxpr import Jaxpr, literal_in
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.program import Program
from ..ir.types import held_text
from ..report import Finding, Fix, Report, SourcePosition
from .spec_places import spec_entries, spec_helpers
from .written import expression_at

KEYWORDS = ("out_sharding", "out_shardings")


class _Dropped(NamedTuple):
    """An axis of an operand, and the spec of the result with it."""

    axis: str
    file: str
    line: int
    edits: Edits


def dropped(report: Report) -> Iterator[Finding]:
    """Every such axis; where several results leave it out, all of them at once come first."""
    text = report.program.jaxpr
    found: dict[str, list[_Dropped]] = {}
    for each in () if text is None else dict.fromkeys(_found(report.program, text)):
        found.setdefault(each.axis, []).append(each)
    for axis, places in found.items():
        lines = ", ".join(str(line) for line in sorted({each.line for each in places}))
        first: dict[int, Edits] = {}
        for each in places:
            first.setdefault(each.line, each.edits)
        every = [(f"add {axis!r} to the out_sharding (line {lines})", together(*first.values()))] * (len(first) > 1)
        single = [(f"add {axis!r} to the out_sharding (line {each.line})", each.edits) for each in places]
        made = suspect(
            "SS29",
            axis,
            SourcePosition.of_line(places[0].file, places[0].line),
            f"out_sharding leaves out {axis}, over which an operand is sharded in a dimension of the result",
            (Fix(title, edits) for title, edits in (*every, *single)),
        )
        yield replace(made, axes=(AxisRef(axis),))


def _found(program: Program, text: JaxprText) -> Iterator[_Dropped]:
    flow, files = global_flow_of(text), {*own_files(program)}
    calls: dict[tuple[int, int], list[EquationPlace]] = {}
    for place in text.equations:
        if place.equation.stack and not flow.is_backward(place):
            calls.setdefault((place.jaxpr, place.equation.stack[0]), []).append(place)
    for (jaxpr, number), places in calls.items():
        frame = text.program.frames[number]
        node = expression_at(program, frame) if frame.file in files else None
        for given in node.keywords if isinstance(node, ast.Call) else ():
            if given.arg in KEYWORDS:
                yield from _without(program, frame.file, given.value, text.program.jaxprs[jaxpr], places)


def _without(
    program: Program, file: str, spec: ast.expr, jaxpr: Jaxpr, places: list[EquationPlace]
) -> Iterator[_Dropped]:
    helpers = spec_helpers(program, file)
    entries = spec_entries(spec, helpers)
    if entries is None or not isinstance(spec, ast.Call):
        return
    made = {output.name for place in places for output in place.equation.outputs}
    types = {each.name: each.type.text for each in (*jaxpr.constants, *jaxpr.inputs)}
    types |= {output.name: output.type.text for each in jaxpr.equations for output in each.outputs}
    result = _dimensions(places[-1].equation.outputs[0].type.text)
    entries += [None] * (len(result) - len(entries))
    named = {axis for each in entries for axis in (each if isinstance(each, tuple) else (each,))}
    operands = dict.fromkeys(name for place in places for name in place.equation.inputs if literal_in(name) is None)
    for operand in operands:
        for size, axes in _dimensions(types.get(operand, "")) if operand not in made else ():
            free = [at for at, (other, _) in enumerate(result) if (other, entries[at]) == (size, None)]
            for axis in axes if free else ():
                if axis not in named:
                    wanted = [axis if at == free[0] else each for at, each in enumerate(entries)]
                    text = f"{ast.unparse(spec.func)}({', '.join(map(repr, wanted))})"
                    yield _Dropped(axis, file, spec.lineno, instead((file, spec), text))


def _dimensions(text: str) -> list[tuple[int | None, tuple[str, ...]]]:
    """The size of each dimension, and the axes over which it is sharded."""
    array = readable(lambda: parse_array_type(held_text(text)))
    return [] if array is None else list(zip(array.dims, array.axes, strict=True))
