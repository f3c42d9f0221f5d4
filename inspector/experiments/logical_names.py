"""Logical names of dimensions for which a table of rules has none: such a dimension is silently left whole."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher

from ..findings.fixes.calls import nodes_of, user_files
from ..findings.fixes.edits import Edits, instead
from ..findings.rules import suspect
from ..ir.program import Program
from ..report import Finding, Fix, Report, SourcePosition
from .measured import measured
from .spec_places import tables

MAX_WAYS = 2


def renamed(report: Report) -> Iterator[Finding]:
    """A rule that is for no dimension, with a name that no rule is for."""
    for file, table in tables(report.program):
        names = {name for _, name, _ in table}
        used = _used(report.program, names - {axis for mesh in report.meshes for axis, _ in mesh.axes})
        spelled = (each for each in table if isinstance(each[0], ast.Tuple | ast.Constant))
        idle = [each for each in spelled if each[1] not in used and ast.unparse(each[2]) not in ("None", "()")]
        for name in [each for each in used if each not in names]:
            alike = sorted(idle, key=lambda each: -SequenceMatcher(None, each[1], name).ratio())[:MAX_WAYS]
            fixes = [
                Fix(f"name it {name!r} instead of {now!r} (line {at.lineno})", _with_name(file, at, name))
                for at, now, _ in alike
            ]
            if fixes:
                message = f"no rule is for dimensions named {name!r}, which are left whole"
                place = SourcePosition.of_line(file, alike[0][0].lineno)
                yield suspect("SS23", name, place, message, fixes, expected=measured(report).bytes)


def _used(program: Program, names: set[str]) -> Counter[str]:
    """The number of tuples in which each name stands beside one that rules are for."""
    found: Counter[str] = Counter()
    for file in user_files(program):
        for node in nodes_of(program, file):
            given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
            for each in given:
                if isinstance(each, ast.Tuple | ast.List) and all(isinstance(e, ast.Constant) for e in each.elts):
                    listed = [e.value for e in each.elts if isinstance(e, ast.Constant) and e.value is not None]
                    if all(isinstance(e, str) for e in listed) and not names.isdisjoint(listed):
                        found.update(map(str, listed))
    return found


def _with_name(file: str, rule: ast.expr, name: str) -> Edits:
    return instead((file, rule.elts[0] if isinstance(rule, ast.Tuple) else rule), repr(name))
