"""Changes that are no requests, as findings to be tried: state that is donated, what a checkpoint saves, settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.compiled import at_most, in_hlo
from ..findings.fixes.calls import imports, name_of, nodes_of, own_files
from ..findings.fixes.edits import Edits, instead, with_keyword
from ..findings.rule import finding
from ..findings.rules import rule_named
from ..ir.program import Program
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition
from ..units import format_bytes
from .casts import cast_late
from .donations import donated
from .dropped_axes import dropped
from .repeated_calls import sent_twice
from .switches import switched

_CHECKPOINT = re.compile(r"(filter_)?checkpoint|remat")
REPEATED = ("rematted_computation", "/checkpoint/")
POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable", "everything_saveable")
"""Policies of checkpoints, that which needs least memory first."""


def rewrites(report: Report) -> Iterator[Finding]:
    """The changes that may be worth trying: nothing says so but the trial."""
    yield from donated(report)
    yield from _saved(report)
    yield from sent_twice(report)
    yield from cast_late(report)
    yield from dropped(report)
    yield from switched(report)


# Checkpoints


def _saved(report: Report) -> Iterator[Finding]:
    """Checkpoints that save more, where the backward pass repeats collectives of the forward pass."""
    rule = rule_named("SS23")
    repeated = [each for each in in_hlo(report) if any(part in (each.op_name or "") for part in REPEATED)]
    saves = at_most(*repeated)
    if rule is None or not repeated:
        return
    for file in own_files(report.program):
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
                place = fixes[0].edits[0]
                yield finding(
                    rule,
                    FindingPlace("checkpoint", SourcePosition.of_line(file, place.line)),
                    f"the backward pass repeats {len(repeated)} collectives of the forward pass",
                    confidence="likely",
                    evidence=(("repeated", f"{format_bytes(saves.bytes)} per device and step"),),
                    fixes=tuple(fixes),
                    saves=saves,
                )


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
