"""A call that gives the same in every iteration of a loop, made once, before the statement with the loop's body."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...ir.program import Program
from ...report import Edit
from .calls import Call, tree_of
from .edits import Edits, instead

Body = ast.FunctionDef | ast.Lambda


def before_the_loop(program: Program, found: Call | None) -> Edits:
    """A name in place of a call, and an assignment of that name where the loop's body is defined.

    The body is the innermost function around the call. Nothing where the call uses what that function is given or
    makes itself, or where the function stands in no other one.
    """
    source = None if found is None else program.file(found[0])
    if found is None or source is None:
        return ()
    file, call = found
    path = _path(tree_of(source), call)
    inner = max((number for number, node in enumerate(path) if isinstance(node, Body)), default=0)
    outer = [node for node in path[:inner] if isinstance(node, Body)]
    statements = [node for node in path[: inner + 1] if isinstance(node, ast.stmt)]
    if not outer or not isinstance(outer[-1], ast.FunctionDef) or not statements or statements[-1] is outer[-1]:
        return ()
    body, statement = path[inner], statements[-1]
    known = {node.id for node in ast.walk(tree_of(source)) if isinstance(node, ast.Name)}
    if set(_names(call)) & set(_own(body)):
        return ()
    name = next(name for number in range(len(known) + 1) if (name := f"before{number or ''}") not in known)
    line = statement.lineno if not isinstance(statement, ast.FunctionDef) else _first(statement)
    text = f"{name} = {ast.unparse(call)}\n{' ' * statement.col_offset}"
    return (Edit(file, line, statement.col_offset, line, statement.col_offset, text), *instead(found, name))


def _path(node: ast.AST, call: ast.Call) -> list[ast.AST]:
    """What the call stands in, outermost first, and the call."""
    if node is call:
        return [node]
    for child in ast.iter_child_nodes(node):
        found = _path(child, call)
        if found:
            return [node, *found]
    return []


def _first(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _own(body: ast.AST) -> Iterator[str]:
    """The names that a function is given, or assigns."""
    for node in ast.walk(body):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef) and node is not body:
            yield node.name


def _names(call: ast.Call) -> Iterator[str]:
    return (node.id for node in ast.walk(call) if isinstance(node, ast.Name))
