"""Batches that are joined one behind the other and split again, as edits: row by row, which needs no other device."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...ir.program import Program
from ...report import Fix, SourcePosition
from ...report.position import own_frames
from .calls import Body, lines_of, name_of, nodes_of
from .edits import Edits, instead, parenthesized, together

Changed = tuple[int, ast.expr, str]
"""The number of batches that an expression joins or splits, the expression, and the one in its place."""


def row_by_row(program: Program, places: Iterable[SourcePosition]) -> Iterator[Fix]:
    """For the innermost function around each place that joins batches and splits the result, their rows in turn.

    All in it that joins or splits as many along the first dimension is changed. Whether the rest works on each row by
    itself is for a trial to say.
    """
    for file, line in dict.fromkeys((each.file, each.line) for place in places for each in own_frames(place.stack)):
        around = [node for node in nodes_of(program, file) if isinstance(node, Body) and line in lines_of(node)]
        for function in sorted(around, key=lambda node: len(lines_of(node))):
            joined, split = list(_joined(function)), list(_split(function))
            counts = {count for count, _, _ in joined} & {count for count, _, _ in split}
            if counts:
                changed = [each for each in (*joined, *split) if each[0] in counts]
                first = next(node for count, node, _ in joined if count in counts)
                edits: list[Edits] = [instead((file, node), text) for _, node, text in changed]
                yield Fix(f"put the rows of {ast.unparse(first)} in turn, and take every other one", together(*edits))
                break


def _joined(function: ast.AST) -> Iterator[Changed]:
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(value=module, attr="concatenate" | "concat"), args=[values, *rest], keywords=keywords
            ) if _is_first(rest, keywords) and (count := _count(values)):
                name = ast.unparse(module)
                rows = f"{name}.stack({ast.unparse(values)}, axis=1)"
                yield count, node, f"jax.lax.collapse({rows}, 0, 2)"
            case ast.Call(
                func=ast.Attribute(value=module, attr="tile"),
                args=[value, ast.Tuple(elts=[ast.Constant(value=int(count)), *others])],
            ) if count > 1 and all(isinstance(each, ast.Constant) and each.value == 1 for each in others):
                yield count, node, f"{ast.unparse(module)}.repeat({ast.unparse(value)}, {count}, axis=0)"


def _split(function: ast.AST) -> Iterator[Changed]:
    halves: dict[str, dict[bool, list[ast.Subscript]]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Call(args=[value, ast.Constant(value=int(count)), *rest], keywords=keywords) if (
                name_of(node.func) == "split" and count > 1 and _is_first(rest, keywords)
            ):
                text = parenthesized(ast.unparse(value))
                yield count, node, f"[{text}[i::{count}] for i in range({count})]"
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                if (bound := upper if lower is None else lower) is not None and (lower is None or upper is None):
                    key = f"{ast.unparse(value)} {ast.unparse(bound)}"
                    halves.setdefault(key, {}).setdefault(lower is None, []).append(node)
    for both in halves.values():
        for is_first, nodes in both.items() if len(both) > 1 else ():
            for node in nodes:
                yield 2, node, f"{parenthesized(ast.unparse(node.value))}[{'' if is_first else 1}::2]"


def _is_first(rest: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    """Return whether a call says that it is along the first dimension, or nothing of it."""
    given = [*rest, *(each.value for each in keywords if each.arg == "axis")]
    others = [each for each in keywords if each.arg != "axis"]
    return not others and all(isinstance(each, ast.Constant) and each.value == 0 for each in given)


def _count(values: ast.expr) -> int:
    """The number of values in a list, or of repetitions of one; 0 where it is not written."""
    match values:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return 0 if any(isinstance(each, ast.Starred) for each in elements) or len(elements) < 2 else len(elements)
        case ast.BinOp(left=ast.List(elts=[_]), op=ast.Mult(), right=ast.Constant(value=int(count))):
            return count
    return 0
