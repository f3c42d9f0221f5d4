"""Functions of the user's, and calls in them, as syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ...parsers.source import Frame
from ..capture.model import Failure
from ..findings.fixes.calls import name_of, tree_of
from ..findings.fixes.edits import Placed
from ..ir.program import Program
from ..report import SourcePosition

Function = ast.FunctionDef | ast.Lambda

_STEP = re.compile(r"\[(\d+)\]")


def files_of(program: Program) -> tuple[str, ...]:
    """The script, and the files through which the failure went."""
    failure, script = program.capture.failure, program.script
    stack = () if failure is None else failure.stack
    return tuple(dict.fromkeys([*([] if script is None else [script.name]), *(frame.file for frame in stack)]))


def place_of(failure: Failure) -> SourcePosition:
    """Where the user's code was when it failed."""
    frames = (Frame(f.file, f.function, f.line, f.end_line, f.column, f.end_column) for f in failure.stack)
    return SourcePosition(tuple(frames), "exact" if failure.stack else "none")


def functions_named(program: Program, name: str) -> Iterator[tuple[str, Function]]:
    """The functions of that name; for `<lambda>` all lambdas."""
    for file in files_of(program):
        source = program.file(file)
        for node in () if source is None else ast.walk(tree_of(source)):
            match node:
                case ast.FunctionDef(name=found) if found == name:
                    yield file, node
                case ast.Lambda() if name == "<lambda>":
                    yield file, node


def results_of(file: str, function: Function, path: str) -> Iterator[Placed]:
    """What a function returns, in each of its returns: all of it, or the part at a path as in `[1][0]`."""
    if isinstance(function, ast.Lambda):
        found: list[ast.expr] = [function.body]
    else:
        found = [node.value for node in _own(function) if isinstance(node, ast.Return) and node.value is not None]
    for value in found:
        part = element(value, path)
        if part is not None:
            yield file, part


def element(value: ast.expr, path: str) -> ast.expr | None:
    """An element of a tuple or list that is written out; None where it is not."""
    for step in _STEP.findall(path):
        if not isinstance(value, ast.Tuple | ast.List) or int(step) >= len(value.elts):
            return None
        value = value.elts[int(step)]
    return value


def calls_at(program: Program, frames: Collection[Frame], names: Collection[str]) -> Iterator[tuple[str, ast.Call]]:
    """The calls of functions of such names that the frames stand in, innermost first."""
    for frame in frames:
        source = program.file(frame.file)
        for node in () if source is None else ast.walk(tree_of(source)):
            match node:
                case ast.Call(lineno=frame.line, col_offset=frame.column) if name_of(node) in names:
                    yield frame.file, node


def prefix_of(call: ast.Call) -> str:
    """How the user calls functions of `jax.lax`: `lax.`, `jax.lax.`; by its full name where that cannot be told."""
    return f"{ast.unparse(call.func.value)}." if isinstance(call.func, ast.Attribute) else "jax.lax."


def shard_map_calls(program: Program) -> Iterator[tuple[str, ast.Call]]:
    """The calls of shard_map, partial ones included."""
    for file in files_of(program):
        source = program.file(file)
        for node in () if source is None else ast.walk(tree_of(source)):
            if isinstance(node, ast.Call) and "shard_map" in (name_of(node), _first_name(node)):
                yield file, node


def _first_name(call: ast.Call) -> str:
    """The function that `partial` is given."""
    if name_of(call) != "partial" or not call.args:
        return ""
    match call.args[0]:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The statements of a function, without those of functions in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
