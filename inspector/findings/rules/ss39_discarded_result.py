"""SS39: a constraint, or a collective, whose result a statement throws away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...catalog.spellings import CONSTRAINTS, PRIMITIVES
from ...dataflow.jaxpr import At
from ...ir.jaxpr_text import EquationPlace
from ...report import Edit, Finding, FindingPlace, Fix, Report
from ...report.position import own_frames
from ..equations import Flow, equations_of
from ..fixes.calls import Call, around, nodes_of, operand_text
from ..rule import Rule, finding


def check(report: Report) -> Iterator[Finding]:
    """Each call that stands as a statement, and of whose result nothing is made."""
    found: dict[Call, FindingPlace] = {}
    for flow, place in equations_of(report, {*PRIMITIVES, *CONSTRAINTS}):
        call = None if _is_used(flow, place) else _statement(report, flow, place)
        if call is not None:
            found.setdefault(call, flow.place(place))
    yield from (_found(place, call) for call, place in found.items())


def _is_used(flow: Flow, place: EquationPlace) -> bool:
    return any(any(flow.uses(At(place.jaxpr, output.name))) for output in place.equation.outputs)


def _statement(report: Report, flow: Flow, place: EquationPlace) -> Call | None:
    """The call, or that of a helper that returns it, if it is a statement of its own."""
    for frame in own_frames(flow.source(place).stack):
        nodes = (each for each in nodes_of(report.program, frame.file) if isinstance(each, ast.Call))
        call = next((each for each in nodes if (each.lineno, each.col_offset) == (frame.line, frame.column)), None)
        parent = None if call is None else next(around(report.program, (frame.file, call)), None)
        if call is not None and isinstance(parent, ast.Expr):
            return frame.file, call
        if not isinstance(parent, ast.Return):
            break
    return None


def _found(place: FindingPlace, call: Call) -> Finding:
    file, node = call
    name, function = operand_text(call, "its operand"), ast.unparse(node.func)
    at = (node.lineno, node.col_offset)
    is_name = bool(node.args) and isinstance(node.args[0], ast.Name)
    return finding(
        RULE,
        place,
        f"nothing uses the result of {function}({name}, …): {name} itself stays as it is",
        confidence="proved",
        subject=name,
        evidence=(("statement", f"line {node.lineno}: its value is thrown away"),),
        fixes=(Fix(f"assign the result: {name} = …", (Edit(file, *at, *at, f"{name} = "),) if is_name else ()),),
    )


RULE = Rule(
    id="SS39",
    slug="discarded-result",
    severity="warning",
    finds="A constraint, or a collective, whose result a statement throws away.",
    why="JAX's arrays do not change: what is constrained, or summed, is the result. The compiler leaves out what"
    " nothing uses, and the program runs as if the statement were not there.",
    proof="The jaxpr: no equation and no result takes the value. The source: the call is a statement of its own.",
    faulty="""lax.with_sharding_constraint(x, P("data"))
return x @ w""",
    repaired="""x = lax.with_sharding_constraint(x, P("data"))
return x @ w""",
    check=check,
    tries="the result assigned to the operand's name",
    saves="compute",
    is_observation=True,
)
