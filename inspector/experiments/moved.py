"""Calls that make a value larger before it is made smaller again, or before it is sent: moved behind that."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator

from ..catalog.spellings import functions_of
from ..findings.compiled import at_most, in_hlo
from ..findings.fixes.calls import around, name_of, nodes_of, own_files
from ..findings.fixes.edits import Edits, instead, together, wrapped
from ..findings.fixes.specs import CONSTRAINTS, assigned_names
from ..findings.rules import suspect
from ..ir.program import Program
from ..report import Finding, Fix, Report, SourcePosition

EXPANSIONS = ("repeat", "tile", "broadcast_to")
SENDS = (*functions_of(), *CONSTRAINTS)

MAX_WAYS = 3


def sent_from(report: Report) -> Counter[tuple[str, int]]:
    """The bytes that collectives send in all, by each line of their call stacks; 0 of one of an unknown number."""
    sent: Counter[tuple[str, int]] = Counter()
    for each in in_hlo(report):
        for frame in each.source.stack:
            sent[os.path.normpath(frame.file), frame.line] += at_most(each).bytes or 0
    return sent


def moved(report: Report) -> Iterator[Finding]:
    """`b = f(send(a))` as `b = send(f(a))`, and `send(repeat(a))` as `repeat(send(a))`: the trial decides.

    Slices of what is sent first, then the largest expressions.
    """
    sent = sent_from(report)
    for file in own_files(report.program):
        for node in nodes_of(report.program, file):
            if not isinstance(node, ast.Assign) or not isinstance(call := node.value, ast.Call) or not call.args:
                continue
            is_sent = name_of(call.func) in SENDS
            if not is_sent and name_of(call.func) not in EXPANSIONS:
                continue
            ways = [each for each in _around_uses(report.program, (file, node)) if is_sent or _is_sent(each)]
            wanted = sorted(ways, key=lambda each: not isinstance(each, ast.Subscript))[:MAX_WAYS]
            lines = [node.lineno] if is_sent else [each.lineno for each in wanted]
            size = max((sent[os.path.normpath(file), line] for line in lines), default=0)
            fixes = [Fix(_title(call, each), _edits(file, call, each)) for each in wanted]
            if size and fixes:
                what = "sent before it is made smaller" if is_sent else "made larger before it is sent"
                message = f"{ast.unparse(call.args[0])} may be {what}"
                place = SourcePosition.of_line(file, node.lineno)
                is_likely = name_of(call.func) not in CONSTRAINTS or isinstance(wanted[0], ast.Subscript)
                yield suspect("SS22", what, place, message, fixes, expected=size if is_likely else None)


def _around_uses(program: Program, placed: tuple[str, ast.Assign]) -> Iterator[ast.expr]:
    """Yield the expressions of one statement in which all uses are of what a statement assigns, the largest first."""
    file, statement = placed
    body = getattr(next(around(program, placed), None), "body", [])
    names = assigned_names(statement)
    users: dict[ast.stmt, list[ast.Name]] = {}
    for each in body[body.index(statement) + 1 :] if statement in body else ():
        uses = [node for node in ast.walk(each) if isinstance(node, ast.Name) and node.id in names]
        if loads := [node for node in uses if isinstance(node.ctx, ast.Load)]:
            users[each] = loads
        if len(loads) < len(uses):
            break
    if len(users) != 1 or not (isinstance(next(iter(users)), ast.Assign | ast.Return)):
        return
    ways = [list(_enclosing(program, file, use)) for use in next(iter(users.values()))]
    yield from (each for each in reversed(ways[0]) if all(each in way for way in ways))


def _enclosing(program: Program, file: str, use: ast.Name) -> Iterator[ast.expr]:
    """Yield the expressions around a name that have values of their own, the smallest first."""
    for each in around(program, (file, use)):
        if isinstance(each, ast.keyword | ast.Attribute | ast.Tuple):
            continue
        if not isinstance(each, ast.expr) or isinstance(each, ast.Lambda | ast.comprehension):
            return
        yield each


def _is_sent(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and name_of(expression.func) in SENDS


def _title(call: ast.Call, expression: ast.expr) -> str:
    made = f"{name_of(expression.func)}(…)" if isinstance(expression, ast.Call) else "what is made of it"
    what = ast.unparse(expression) if isinstance(expression, ast.Subscript) else made
    if name_of(call.func) in CONSTRAINTS:
        return f"constrain {what} on line {expression.lineno} instead of {ast.unparse(call.args[0])}"
    return f"{ast.unparse(call.func)} behind {what} (line {expression.lineno})"


def _edits(file: str, call: ast.Call, expression: ast.expr) -> Edits:
    rest = [*map(ast.unparse, call.args[1:]), *map(ast.unparse, call.keywords)]
    outer = wrapped((file, expression), f"{ast.unparse(call.func)}(", "".join(f", {each}" for each in rest) + ")")
    return together(instead((file, call), ast.unparse(call.args[0])), outer)
