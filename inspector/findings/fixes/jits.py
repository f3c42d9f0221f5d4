"""The jit of the captured function in the user's source, and keywords that it may be given."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from ...report import Fix, Report
from .calls import captured_name, name_of, nodes_of, own_files, user_files
from .edits import Edits, Placed, instead, parenthesized, with_keyword


def with_compiler_options(report: Report, options: Mapping[str, object]) -> Edits:
    """Return the jit with these options of the compiler; nothing where there is not just one jit, or it has some."""
    return with_jit_keyword(jit_of(report), "compiler_options", repr(dict(options)))


def with_jit_keyword(jit: Placed | None, name: str, value: str) -> Edits:
    """Return a jit with one more keyword; nothing where it has that, or there is no jit."""
    match jit:
        case (file, ast.Call() as call):
            return with_keyword((file, call), name, value)
        case (_, decorator):
            return instead((jit[0], decorator), f"{ast.unparse(decorator)}({name}={value})")
    return ()


def without_jits(report: Report) -> Iterator[Fix]:
    """Yield each call of a jit, where it is made, that names no shardings, as a call of the function itself."""
    for file in user_files(report.program):
        for node in nodes_of(report.program, file):
            match node:
                case ast.Call(func=ast.Call(func=made, args=[function], keywords=[]) as jit) if name_of(made) == "jit":
                    name = ast.unparse(function)
                    title = f"call {name} without jit: zeros_like then keeps a parameter's sharding"
                    yield Fix(title, instead((file, jit), parenthesized(name)))


def jit_of(report: Report, also: str = "jit") -> Placed | None:
    """Return the jit of the captured function: a call, or a bare decorator; None where there is not just one.

    `also` names one more function that is a jit.
    """
    name, jits = captured_name(report.program), ("jit", also)
    if not name or report.script is None:
        return None
    files = dict.fromkeys((report.script, *own_files(report.program)))  # a script may only import what it hands on
    found = [(file, jit) for file in files for jit in dict.fromkeys(_jits(report, file, name, jits))]
    return found[0] if len(found) == 1 else None


def _jits(report: Report, file: str, function: str, jits: Collection[str]) -> Iterator[ast.expr]:
    for node in nodes_of(report.program, file):
        match node:
            case ast.FunctionDef(name=name, decorator_list=decorators) if name == function:
                yield from (each for each in decorators if _is_jit(each, jits))
            case ast.Assign(targets=[target], value=ast.Call() as call) if name_of(target) == function and _is_jit(
                call, jits
            ):
                yield call
            case ast.Call(args=[given, *_]) as call if name_of(given) == function and name_of(call.func) in jits:
                yield call


def _is_jit(node: ast.expr, jits: Collection[str]) -> bool:
    match node:
        case ast.Call(func=function, args=[first, *_]) if name_of(function) == "partial":
            return name_of(first) in jits
        case ast.Call(func=function):
            return name_of(function) in jits
    return name_of(node) in jits
