"""Functions of the user's, and what they return, as syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import nodes_of
from ..findings.fixes.edits import Placed
from .failed import Failed

Function = ast.FunctionDef | ast.Lambda

PATH = r"(?:\[(?:\d+|'[^']*')\]|\.\w+)*"
"""Paths of results, as JAX's messages have them: `[1]['loss']`, `.loss`."""

_STEP = re.compile(r"\[(\d+)\]|(?:\['([^']*)'\]|\.(\w+))")


def functions_named(failed: Failed, name: str) -> Iterator[tuple[str, Function]]:
    """The functions of that name; for `<lambda>` all lambdas."""
    for file in failed.files:
        for node in nodes_of(failed.program, file):
            match node:
                case ast.FunctionDef(name=found) if found == name:
                    yield file, node
                case ast.Lambda() if name == "<lambda>":
                    yield file, node


def results_of(file: str, function: Function, path: str) -> Iterator[Placed]:
    """Return what a function returns, at each return: the full value, or the part at a path as in `[1][0]`."""
    if isinstance(function, ast.Lambda):
        found: list[ast.expr] = [function.body]
    else:
        found = [node.value for node in _own(function) if isinstance(node, ast.Return) and node.value is not None]
    for value in found:
        if path and isinstance(value, ast.Name) and not isinstance(function, ast.Lambda):
            assigned = [node for node in _own(function) if isinstance(node, ast.Assign)]
            named = [node.value for node in assigned if value.id in map(ast.unparse, node.targets)]
            value = named[0] if len(named) == 1 else value
        part = element(value, path)
        if part is not None:
            yield file, part


def element(value: ast.expr, path: str) -> ast.expr | None:
    """An element of a tuple, dictionary or class that is written out; None where it is not."""
    for number, key, attribute in _STEP.findall(path):
        found: list[ast.expr] = []
        match value:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if number:
                found = parts[int(number) :]
            case ast.Dict(keys=keys, values=parts):
                pairs = zip(keys, parts, strict=True)
                found = [part for name, part in pairs if isinstance(name, ast.Constant) and name.value == key]
            case ast.Call(keywords=keywords):
                found = [keyword.value for keyword in keywords if keyword.arg == (key or attribute)]
        if not found:
            return None
        value = found[0]
    return value


def prefix_of(call: ast.Call) -> str:
    """Return the user's prefix for functions of `jax.lax`: `lax.`, `jax.lax.`; the full name if it is not clear."""
    return f"{ast.unparse(call.func.value)}." if isinstance(call.func, ast.Attribute) else "jax.lax."


def maps(call: ast.Call, function: Function) -> bool:
    """Return whether a call of shard_map maps a function: it decorates it, or has it as an argument."""
    return call in getattr(function, "decorator_list", ()) or any(
        argument is function or (isinstance(argument, ast.Name) and argument.id == getattr(function, "name", None))
        for argument in call.args
    )


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
