"""Changes that are no requests, as findings to be tried: donations, checkpoints, calls, casts, settings."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import replace

from ..collectives.origin import is_repeated
from ..findings.compiled import at_most, in_hlo
from ..findings.fixes.after_loop import own_operands
from ..findings.fixes.calls import behind, imports, name_of, nodes_of, of_lax, own_files
from ..findings.fixes.edits import Edits, axes_text, instead, together, with_keyword
from ..findings.fixes.specs import CONSTRAINTS, targets_of
from ..findings.rules import suspect
from ..ir.program import Program
from ..report import Finding, Fix, Report, SourcePosition
from ..units import format_bytes
from .donations import donated
from .dropped_axes import dropped
from .logical_names import renamed
from .moved import moved, sent_from
from .switches import switched

_CHECKPOINT = re.compile(r"(filter_)?checkpoint|remat")
POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable", "everything_saveable")
"""Policies of checkpoints, that which needs least memory first."""


def rewrites(report: Report) -> Iterator[Finding]:
    """The changes that may be worth trying: nothing says so but the trial."""
    yield from donated(report)
    yield from _saved(report)
    yield from _summed_again(report)
    yield from moved(report)
    yield from _sent_twice(report)
    yield from _cast_late(report)
    yield from dropped(report)
    yield from renamed(report)
    yield from switched(report)


# Checkpoints


def _saved(report: Report) -> Iterator[Finding]:
    """Checkpoints that save more, where the backward pass repeats collectives of the forward pass."""
    repeated = [each for each in in_hlo(report) if is_repeated(each)]
    size = at_most(*repeated).bytes
    for file in own_files(report.program) if repeated else ():
        source = report.program.file(file)
        if source is None or not imports(source, "jax"):
            continue
        for node in nodes_of(report.program, file):
            fixes = [
                Fix(f"save {what} for the backward pass: policy={text}", edits)
                for what, text in _policies(report.program, file)
                for edits in (_with_policy(report.program, (file, node), f"jax.checkpoint_policies.{text}"),)
                if edits
            ]
            if fixes:
                place = SourcePosition.of_line(file, fixes[0].edits[0].line)
                message = f"the backward pass repeats {len(repeated)} collectives of the forward pass"
                made = suspect("SS23", "checkpoint", place, message, fixes, expected=size)
                yield replace(made, evidence=(("repeated", f"{format_bytes(size)} per device and step"),))


def _policies(program: Program, file: str) -> Iterator[tuple[str, str]]:
    names = {
        node.args[1].value
        for node in nodes_of(program, file)
        if isinstance(node, ast.Call) and name_of(node.func) == "checkpoint_name" and len(node.args) > 1
        if isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str)
    }
    if names:
        yield "what has a name", f"save_only_these_names({', '.join(map(repr, sorted(names)))})"
    yield from zip(("products of weights", "all products", "everything"), POLICIES, strict=True)


def _with_policy(program: Program, placed: tuple[str, ast.AST], policy: str) -> Edits:
    """A checkpoint with another policy; nothing of what is no checkpoint, or has that policy."""
    file, node = placed
    match node:
        case ast.Call(args=[first, *_], keywords=keywords) if _CHECKPOINT.fullmatch(name_of(node.func)) or (
            name_of(node.func) == "partial" and _CHECKPOINT.fullmatch(name_of(first))
        ):
            now = next((each.value for each in keywords if each.arg == "policy"), None)
            if now is not None:
                return () if ast.unparse(now) == policy else instead((file, now), policy)
            return with_keyword((file, node), "policy", policy)
        case ast.FunctionDef(decorator_list=decorators):
            source = program.file(file)
            partial = next((name for name in ("partial", "functools") if source and imports(source, name)), "")
            bare = [
                each for each in decorators if not isinstance(each, ast.Call) and _CHECKPOINT.fullmatch(name_of(each))
            ]
            if not bare or not partial:
                return ()
            called = "partial" if partial == "partial" else "functools.partial"
            return instead((file, bare[0]), f"{called}({ast.unparse(bare[0])}, policy={policy})")
    return ()


# Gradients that each iteration sums


def _summed_again(report: Report) -> Iterator[Finding]:
    """Values from outside of a loop that may be made varying before it: their gradients are then summed after it.

    The outermost loop first.
    """
    repeated = [each for each in in_hlo(report) if each.origin == "autodiff" and (each.executions or 1) > 1]
    for axes in dict.fromkeys(each.axes for each in repeated if each.kind == "all-reduce" and each.axes):
        group = [each for each in repeated if each.axes == axes]
        stacks = {each.source.stack[n:] for each in group for n in range(len(each.source.stack))}
        over = axes_text(tuple(axis.name for axis in axes))
        fixes = [
            Fix(f"make {name} varying over {over} before the loop: its gradient is then summed once, after it", edits)
            for stack in sorted(stacks, key=len)
            for name, edits in own_operands(report.program, SourcePosition.exact(stack), over)
        ]
        if fixes:
            message = f"iterations of a loop sum gradients over {over}"
            place = SourcePosition.of_line(fixes[0].edits[0].file, fixes[0].edits[0].line)
            yield suspect("SS07", "gradients", place, message, dict.fromkeys(fixes), expected=at_most(*group).bytes)


# Calls that communicate the same values twice


def _sent_twice(report: Report) -> Iterator[Finding]:
    """`b = send(norm(x))` beside `a = send(x)`: `norm(a)` may be the same, which the trial decides."""
    sent = sent_from(report)
    for file in own_files(report.program):
        for name, first, second in _pairs(report.program, file):
            inner = second.args[0]
            if (os.path.normpath(file), second.lineno) in sent and isinstance(inner, ast.Call):
                text = ast.unparse(_with_operand(inner, ast.Name(name)))
                message = f"{ast.unparse(inner.args[0])} is sent twice: {name} is {ast.unparse(first)}"
                fix = Fix(f"compute {text} of what was sent (line {second.lineno})", instead((file, second), text))
                yield suspect("SS23", name, SourcePosition.of_line(file, second.lineno), message, [fix])


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
            if isinstance(each, ast.Call) and each.args and _same(_with_operand(each, first.args[0]), first):
                inner = each.args[0]
                if isinstance(inner, ast.Call) and inner.args and _same(inner.args[0], first.args[0]):
                    yield name.id, first, each


def _with_operand(call: ast.Call, operand: ast.expr) -> ast.Call:
    return ast.Call(call.func, [operand, *call.args[1:]], call.keywords)


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


# Casts of what a constraint has gathered


def _cast_late(report: Report) -> Iterator[Finding]:
    """`constrain(w, whole).astype(bf16)`, with the cast first, and behind a barrier.

    Without that the compiler gives the cast the constraint's sharding, and sends the wide values before it.
    """
    for file in own_files(report.program) if in_hlo(report, "all-gather") else ():
        text = report.program.file(file)
        has_lax = text is not None and any(imports(text, name) for name in ("jax", "lax"))
        for node in nodes_of(report.program, file) if has_lax else ():
            for constraint, casts in _casts(report.program, file, node):
                operand, dtype = ast.unparse(constraint.args[0]), ast.unparse(casts[0].args[0])
                barrier = of_lax(report.program, (file, constraint), "optimization_barrier")
                edits = _edits(file, constraint, casts, ast.Name(barrier))
                source = SourcePosition.of_line(file, constraint.lineno)
                message = f"{operand} is cast to {dtype} after {name_of(constraint.func)}"
                call = name_of(constraint.func)
                fix = Fix(f"cast {operand} before {call}, behind a barrier (line {constraint.lineno})", edits)
                yield suspect("SS10", operand, source, message, [fix])


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
