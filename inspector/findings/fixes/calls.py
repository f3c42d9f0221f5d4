"""Calls in the user's source, so that a fix can be written in the user's own words."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from ...ir.derived import derived
from ...ir.program import Program, SourceFile
from ...report import SourcePosition
from ...report.position import own_frames
from ...units import plural
from .aliases import resolve

Call = tuple[str, ast.Call]
"""A call, and the file that it is in."""

Body = ast.FunctionDef | ast.Lambda


def call_at(program: Program, place: SourcePosition, functions: Collection[str]) -> Call | None:
    """The innermost call of one of these functions, by its last name, at a place; None where there is not just one."""
    for frame in own_frames(place.stack):
        source = program.file(frame.file)
        here = (
            [call for call in _calls(source).get(frame.line, ()) if name_of(call.func) in functions] if source else []
        )
        exact = [call for call in here if call.col_offset == frame.column]
        if len(exact or here) == 1:
            return frame.file, (exact or here)[0]
    return None


def operand_text(call: Call | None, otherwise: str) -> str:
    """The first argument of a call as it is written, or another text where there is none."""
    return ast.unparse(call[1].args[0]) if call is not None and call[1].args else otherwise


def renamed(call: Call | None, function: str) -> str:
    """How the user would name another function of the same module: `lax.psum` → `lax.psum_scatter`."""
    if call is None:
        return f"lax.{function}"
    return f"{ast.unparse(call[1].func.value)}.{function}" if isinstance(call[1].func, ast.Attribute) else function


def name_of(function: ast.expr) -> str:
    """The last name of a function."""
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def call_to_leave_out(program: Program, place: SourcePosition, functions: Collection[str]) -> tuple[Call | None, str]:
    """The call of one of these functions at a place, and words on what else it changes to leave that out.

    Of a helper that does nothing else, and that is called elsewhere too, it is the call at this place.
    """
    call = call_at(program, place, functions)
    found = None if call is None else _function_around(program, call)
    if call is None or found is None:
        return call, ""
    name, body = found
    source = program.file(call[0])
    others = -1 if source is None else _calls_by_name(source)[name] - 1
    if others < 1:
        return call, ""
    inside = range(body.lineno, (body.end_lineno or body.lineno) + 1)
    outer = tuple(frame for frame in place.stack if frame.file != call[0] or frame.line not in inside)
    helped = call_at(program, SourcePosition.exact(outer), (name,)) if _gives(body, call[1]) else None
    return (helped, "") if helped else (call, f"; that changes {plural(others, 'other call')} of {name}")


def _function_around(program: Program, call: Call) -> tuple[str, Body] | None:
    """The innermost function with a name that a call is in."""
    return next((found for node in around(program, call) for found in _named_functions(node)), None)


def _gives(body: Body, call: ast.Call) -> bool:
    """Whether a function returns a call on its own first parameter, and does nothing else."""
    parameters = [*body.args.posonlyargs, *body.args.args]
    returned: ast.AST | None = body.body if isinstance(body, ast.Lambda) else None
    if isinstance(body, ast.FunctionDef):
        statements = [each for each in body.body if not (isinstance(each, ast.Expr) and _is_text(each.value))]
        returned = statements[0].value if len(statements) == 1 and isinstance(statements[0], ast.Return) else None
    operand = call.args[0] if call.args else None
    return returned is call and isinstance(operand, ast.Name) and [operand.id] == [each.arg for each in parameters[:1]]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _named_functions(node: ast.AST) -> Iterator[tuple[str, Body]]:
    match node:
        case ast.FunctionDef(name=name):
            yield name, node
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as body):
            yield name, body


def imports(source: SourceFile, name: str) -> bool:
    """Whether a file has a module or an object by that name from an import."""
    imported = [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return any((alias.asname or alias.name) == name for node in imported for alias in node.names)


def around(program: Program, call: tuple[str, ast.AST]) -> Iterator[ast.AST]:
    """The syntax that a call stands in, innermost first."""
    source = program.file(call[0])
    parents = {} if source is None else _parents(source)
    node: ast.AST | None = call[1]
    while (node := parents.get(node)) is not None:  # type: ignore[arg-type]
        yield node


@derived
def _parents(source: SourceFile) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree_of(source)) for child in ast.iter_child_nodes(node)}


@derived
def _calls_by_name(source: SourceFile) -> Counter[str]:
    calls = (node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Call))
    return Counter(filter(None, (name_of(call.func) for call in calls)))


def nodes_of(program: Program, file: str) -> Iterator[ast.AST]:
    """The syntax of a file, node by node; nothing of one that is not known."""
    source = program.file(file)
    return iter(()) if source is None else ast.walk(tree_of(source))


@derived
def tree_of(source: SourceFile) -> ast.Module:
    """The syntax of a file, calls by another name resolved; an empty one of a text that is no Python."""
    try:
        return resolve(ast.parse(source.data))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@derived
def _calls(source: SourceFile) -> dict[int, list[ast.Call]]:
    """The calls of a file by their first lines."""
    found: dict[int, list[ast.Call]] = {}
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call):
            found.setdefault(node.lineno, []).append(node)
    return found
