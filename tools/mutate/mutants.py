"""The small faults that can be made in a file: one piece of its text is replaced."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult,
}  # fmt: skip


UNSEEN = ("strict", "timeout", "compresslevel", "maxsize")
"""Arguments that change no result: a check of what is so anyway, a time, a size."""


@dataclass(frozen=True)
class Mutant:
    """A file, the lines of the replaced piece (from 1), the piece, its place in bytes, and what is put there."""

    file: Path
    lines: range
    was: str
    becomes: str
    place: slice

    @property
    def text(self) -> bytes:
        """The file with the fault; all lines around it keep their numbers."""
        data = self.file.read_bytes()
        lost = data.count(b"\n", self.place.start, self.place.stop) - self.becomes.count("\n")
        fault = self.becomes.encode()
        closing = fault[-1:] if fault.endswith(b")") else b""
        fault = fault.removesuffix(closing) + b"\n" * lost + closing
        return data[: self.place.start] + fault + data[self.place.stop :]


def mutants(file: Path) -> Iterator[Mutant]:
    """Each small fault of a file that is in the body of a function."""
    data = file.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(data)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if not _executed(node, parents):
            continue
        for piece, fault in _faults(node):
            begin = starts[piece.lineno - 1] + piece.col_offset
            end = starts[(piece.end_lineno or piece.lineno) - 1] + (piece.end_col_offset or 0)
            becomes = ast.unparse(fault) if isinstance(piece, ast.stmt) else f"({ast.unparse(fault)})"
            lines = range(piece.lineno, (piece.end_lineno or piece.lineno) + 1)
            yield Mutant(file, lines, data[begin:end].decode(), becomes, slice(begin, end))


def shuffled(files: Mapping[str, Sequence[Path]], seed: int) -> dict[str, list[Mutant]]:
    """All mutants of each folder's files, in the order in which they are to be tried."""
    chosen = {}
    for folder, paths in files.items():
        known = [each for path in paths for each in mutants(path)]
        chosen[folder] = random.Random(f"{seed} {folder}").sample(known, len(known))
    return chosen


def _faults(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """What is replaced, and by what."""
    changed: Any = copy.copy(node)
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in COMPARISONS:
            changed.ops = [COMPARISONS[type(operator)](), *node.ops[1:]]
            yield node, changed
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not isinstance(node.left, ast.Constant):
            changed.op = OPERATORS[type(operator)]()
            yield node, changed
        case ast.BoolOp():
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, changed
        case ast.UnaryOp(op=ast.Not()):
            yield node, changed.operand
        case ast.Return(value=ast.Constant(value=False)):
            pass  # where that is a condition, None is the same; True is another fault
        case ast.Return(value=ast.Constant(value="")):
            yield node, ast.Return(ast.Constant("mutant"))  # where texts are filtered, None is the same
        case ast.Constant(value=bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield node, ast.Constant(value + 1)
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield node, ast.Return(ast.Constant(None))
        case ast.If() | ast.IfExp():
            yield node.test, ast.UnaryOp(ast.Not(), changed.test)


def _executed(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a node is executed in a function; types are not, and pieces of f-strings have no text of their own."""
    inner, outer = node, parents.get(node)
    while outer is not None:
        if isinstance(outer, ast.FunctionDef):
            return inner in outer.body
        if isinstance(outer, (ast.AnnAssign, ast.arg)) and inner is outer.annotation:
            return False
        if isinstance(outer, (ast.FormattedValue, ast.MatchSingleton)):
            return False
        if isinstance(outer, ast.keyword) and outer.arg in UNSEEN:
            return False
        if isinstance(outer, ast.Call) and inner is not outer.func and ast.unparse(outer.func) == "time.sleep":
            return False
        inner, outer = outer, parents.get(outer)
    return False
