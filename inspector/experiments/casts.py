"""Casts of what a constraint has gathered: moved before it, so that the narrow values are sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import around, imports, name_of, nodes_of, own_files
from ..findings.fixes.edits import Edits, instead, together
from ..findings.fixes.specs import CONSTRAINTS, targets_of
from ..findings.rule import Saving, finding
from ..findings.rules import rule_named
from ..findings.support.compiled import in_hlo
from ..ir.program import Program
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition
from ..units import known_product


def cast_late(report: Report) -> Iterator[Finding]:
    """`constrain(w, whole).astype(bf16)`, with the cast first, and behind a barrier.

    Without that the compiler gives the cast the constraint's sharding, and sends the wide values before it.
    """
    rule = rule_named("SS10")
    gathers = (each for each in in_hlo(report) if each.kind == "all-gather")
    size = sum(known_product(each.wire_bytes, each.executions) or 0 for each in gathers)
    for file in own_files(report.program) if rule is not None and size else ():
        source = report.program.file(file)
        lax = next((name for name in ("jax", "lax") if source is not None and imports(source, name)), None)
        for node in nodes_of(report.program, file) if lax is not None else ():
            for constraint, casts in _casts(report.program, file, node):
                operand, dtype = ast.unparse(constraint.args[0]), ast.unparse(casts[0].args[0])
                barrier = f"{'jax.lax' if lax == 'jax' else lax}.optimization_barrier"
                text = f"{barrier}({ast.unparse(_with_value(casts[0], constraint.args[0]))})"
                edits = _edits(file, constraint, casts, text)
                assert rule is not None
                yield finding(
                    rule,
                    FindingPlace(operand, SourcePosition.exact((Frame(file, "", constraint.lineno),))),
                    f"{operand} is cast to {dtype} after the constraint",
                    confidence="likely",
                    fixes=(Fix(f"cast {operand} before the constraint (line {constraint.lineno})", edits),),
                    saves=Saving(size // 2),
                )


def _casts(program: Program, file: str, node: ast.AST) -> Iterator[tuple[ast.Call, list[ast.Call]]]:
    """A constraint, and the casts of its value to one dtype, where that has no other use."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="astype"), args=[_]) if _constrains(inner):
            yield inner, [node]
        case ast.Assign(value=ast.Call() as inner) if _constrains(inner):
            name, body = next(targets_of(node), None), next(around(program, (file, node)), None)
            if name is None or not isinstance(body, ast.FunctionDef) or node not in body.body:
                return
            after = [each for one in body.body[body.body.index(node) + 1 :] for each in ast.walk(one)]
            uses = [each for each in after if isinstance(each, ast.Name) and each.id == name.id]
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


def _with_value(cast: ast.Call, value: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(value, "astype"), cast.args, cast.keywords)


def _edits(file: str, constraint: ast.Call, casts: list[ast.Call], operand: str) -> Edits:
    moved = ast.unparse(
        ast.Call(constraint.func, [ast.parse(operand, mode="eval").body, *constraint.args[1:]], constraint.keywords)
    )
    inner = [each for each in casts if isinstance(each.func, ast.Attribute) and each.func.value is constraint]
    if inner:
        return instead((file, inner[0]), moved)
    names = (
        instead((file, each), ast.unparse(each.func.value)) for each in casts if isinstance(each.func, ast.Attribute)
    )
    return together(instead((file, constraint.args[0]), operand), *names)
