"""Calls that communicate the same values twice: once as they are, once after a function of them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from ..findings.compiled import in_hlo
from ..findings.fixes.calls import behind, nodes_of, own_files
from ..findings.fixes.edits import instead
from ..findings.fixes.specs import targets_of
from ..findings.rule import Saving, finding
from ..findings.rules import rule_named
from ..ir.program import Program
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition


def sent_twice(report: Report) -> Iterator[Finding]:
    """`b = send(norm(x))` beside `a = send(x)`: `norm(a)` may be the same, which the trial decides."""
    rule, sent = rule_named("SS23"), _bytes_by_line(report)
    for file in own_files(report.program) if rule is not None else ():
        for name, first, second in _pairs(report.program, file):
            size = sent.get((os.path.normpath(file), second.lineno), 0)
            inner = second.args[0]
            if rule is None or not size or not isinstance(inner, ast.Call):
                continue
            text, what = ast.unparse(_of(inner, name)), ast.unparse(first)
            yield finding(
                rule,
                FindingPlace(name, SourcePosition.of_line(file, second.lineno)),
                f"{ast.unparse(inner.args[0])} is sent twice: {name} is {what}",
                confidence="likely",
                fixes=(Fix(f"compute {text} of what was sent (line {second.lineno})", instead((file, second), text)),),
                saves=Saving(size),
            )


def _bytes_by_line(report: Report) -> dict[tuple[str, int], int]:
    """The bytes that collectives send, by each line of their call stacks."""
    found: dict[tuple[str, int], int] = {}
    for each in in_hlo(report):
        for place in {(os.path.normpath(frame.file), frame.line) for frame in each.source.stack}:
            found[place] = found.get(place, 0) + (each.step_bytes or 0)
    return found


def _pairs(program: Program, file: str) -> Iterator[tuple[str, ast.Call, ast.Call]]:
    """A name with the call that it is assigned, and a later call of the same of a function of the same value."""
    for node in nodes_of(program, file):
        name = next(iter(targets_of(node)), None)
        if name is None or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        first = node.value
        mine = behind(program, (file, node)) if first.args else []
        if not mine:
            continue
        kept = {name.id, *(each.id for each in ast.walk(first.args[0]) if isinstance(each, ast.Name))}
        if any(isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id in kept for each in mine):
            continue
        for each in mine:
            if isinstance(each, ast.Call) and each.args and _with_operand(each, first) == ast.unparse(first):
                inner = each.args[0]
                if isinstance(inner, ast.Call) and inner.args and _same(inner.args[0], first.args[0]):
                    yield name.id, first, each


def _with_operand(call: ast.Call, other: ast.Call) -> str:
    """A call as text, with the operand of another one."""
    return ast.unparse(ast.Call(call.func, [other.args[0], *call.args[1:]], call.keywords))


def _of(call: ast.Call, name: str) -> ast.Call:
    return ast.Call(call.func, [ast.Name(name), *call.args[1:]], call.keywords)


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)
