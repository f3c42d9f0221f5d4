"""Casts of what a constraint has gathered: moved before it, so that the narrow values are sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..findings.compiled import at_most, in_hlo
from ..findings.fixes.calls import behind, imports, name_of, nodes_of, of_lax, own_files
from ..findings.fixes.edits import Edits, instead, together
from ..findings.fixes.specs import CONSTRAINTS, targets_of
from ..findings.rule import finding
from ..findings.rules import rule_named
from ..ir.program import Program
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition


def cast_late(report: Report) -> Iterator[Finding]:
    """`constrain(w, whole).astype(bf16)`, with the cast first, and behind a barrier.

    Without that the compiler gives the cast the constraint's sharding, and sends the wide values before it.
    """
    rule = rule_named("SS10")
    gathers = in_hlo(report, "all-gather")
    for file in own_files(report.program) if rule is not None and gathers else ():
        source = report.program.file(file)
        has_lax = source is not None and any(imports(source, name) for name in ("jax", "lax"))
        for node in nodes_of(report.program, file) if has_lax else ():
            for constraint, casts in _casts(report.program, file, node):
                operand, dtype = ast.unparse(constraint.args[0]), ast.unparse(casts[0].args[0])
                barrier = of_lax(report.program, (file, constraint), "optimization_barrier")
                edits = _edits(file, constraint, casts, ast.Name(barrier))
                assert rule is not None
                yield finding(
                    rule,
                    FindingPlace(operand, SourcePosition.of_line(file, constraint.lineno)),
                    f"{operand} is cast to {dtype} after the constraint",
                    confidence="likely",
                    fixes=(Fix(f"cast {operand} before the constraint (line {constraint.lineno})", edits),),
                    saves=at_most(*gathers),
                )


def _casts(program: Program, file: str, node: ast.AST) -> Iterator[tuple[ast.Call, list[ast.Call]]]:
    """A constraint, and the casts of its value to one dtype, where that has no other use."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="astype"), args=[_]) if _constrains(inner):
            yield inner, [node]
        case ast.Assign(value=ast.Call() as inner) if _constrains(inner):
            name, after = next(targets_of(node), None), behind(program, (file, node))
            uses = [each for each in after if name is not None and isinstance(each, ast.Name) and each.id == name.id]
            casts = [
                each
                for each in after
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and len(each.args) == 1
                if each.func.attr == "astype" and each.func.value in uses
            ]
            if casts and len(casts) == len(uses) and len({ast.unparse(each.args[0]) for each in casts}) == 1:
                yield inner, casts


def _constrains(call: ast.Call) -> bool:
    return name_of(call.func) in CONSTRAINTS and len(call.args) > 1


def _edits(file: str, constraint: ast.Call, casts: list[ast.Call], barrier: ast.expr) -> Edits:
    """The constraint of the cast operand behind a barrier, and what was cast in the place of each cast."""
    operand, cast = constraint.args[0], casts[0]
    narrow = ast.Call(barrier, [ast.Call(ast.Attribute(operand, "astype"), cast.args, cast.keywords)], [])
    values = {each: each.func.value for each in casts if isinstance(each.func, ast.Attribute)}
    if values[cast] is constraint:
        moved = ast.Call(constraint.func, [narrow, *constraint.args[1:]], constraint.keywords)
        return instead((file, cast), ast.unparse(moved))
    names = (instead((file, each), ast.unparse(value)) for each, value in values.items())
    return together(instead((file, operand), ast.unparse(narrow)), *names)
