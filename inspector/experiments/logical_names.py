"""Logical names of dimensions: those for which no rule is, which leave a dimension whole, and others in their place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest

from ..findings.fixes.calls import nodes_of, user_files
from ..findings.fixes.edits import Edits, instead, together
from ..findings.rules import suspect
from ..ir.program import Program
from ..report import Finding, Fix, Report, SourcePosition
from .measured import measured
from .pricing import PricedChange
from .spec_places import axes_of_names, entries_in, tables, without_nones

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


def by_other_names(program: Program, file: str, call: ast.Call, change: PricedChange) -> Iterator[Edits]:
    """Other names for the dimensions of a constraint that lists names, in the call: those of the axes that they get.

    Of several names for the same axes, the one that is written nearest.
    """
    now, wanted = (entries_in(each or "P()") for each in (change.now, change.spec))
    written = [node for node in nodes_of(program, file) if isinstance(node, ast.Constant)]
    named = next((n for n, each in enumerate(call.args) if n and isinstance(each, ast.Constant)), len(call.args))
    for listed in [call.args[named:], *(each.elts for each in call.args if isinstance(each, ast.Tuple | ast.List))]:
        nodes = [each for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str | None)]
        if not nodes or len(nodes) < len(listed) or len(nodes) < len(wanted):
            continue
        for of, rules in tables(program):
            axes = axes_of_names(program, of, rules)
            if axes.keys().isdisjoint(each.value for each in nodes) or now != without_nones(
                [axes.get(str(each.value)) for each in nodes]
            ):
                continue
            changed = [
                (node, _nearest(node, after, axes, written))
                for node, before, after in zip_longest(nodes, now, wanted)
                if without_nones([before]) != without_nones([after])
            ]
            if all(text for _, text in changed):
                yield together(*(instead((file, node), text) for node, text in changed))


def _nearest(node: ast.Constant, axes: object, known: Mapping[str, object], written: Iterable[ast.Constant]) -> str:
    """The name of some axes that is written nearest to a place, as text; empty where there is none."""
    distances = {
        each.value: abs(each.lineno - node.lineno)
        for each in sorted(written, key=lambda each: -abs(each.lineno - node.lineno))
        if isinstance(each.value, str) and known.get(each.value) == axes and each.value in known
    }
    if axes is None:
        return "None"
    return repr(min(distances, key=lambda name: distances[name])) if distances else ""


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
