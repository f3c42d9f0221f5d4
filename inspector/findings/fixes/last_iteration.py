"""A loop without its last iteration, which is written behind it: as an edit of the user's source."""

from __future__ import annotations

import ast

from ...ir.program import Program
from ...report import SourcePosition
from .calls import around, call_at, imports, name_of
from .edits import Edits, instead, parenthesized

LOOPS = ("scan", "fori_loop")


def apart(program: Program, place: SourcePosition) -> Edits:
    """Return the innermost loop around a place with one iteration less, as the carry of a call of its body.

    Nothing where what a scan stacks is used, or the loop is written in another way.
    """
    loop = call_at(program, place, LOOPS)
    if loop is None or any(isinstance(each, ast.Starred) for each in loop[1].args):
        return ()
    call = loop[1]
    match name_of(call.func), call.args:
        case "fori_loop", [first, end, body, start] if not call.keywords:
            last = _less_one(end)
            fewer = f"{ast.unparse(call.func)}({ast.unparse(first)}, {last}, {ast.unparse(body)}, {ast.unparse(start)})"
            return instead(loop, f"{_called(body)}({last}, {fewer})")
        case "scan", [body, start, *given] if _is_only_carried(program, loop):
            named = {each.arg: each.value for each in call.keywords}
            xs, length = given[0] if given else named.pop("xs", None), named.pop("length", None)
            parts = (
                _of_length(length) if xs is None or ast.unparse(xs) == "None" else _without_last(program, loop[0], xs)
            )
            if parts is None or len(given) > 1 or "reverse" in named or None in named or (length is not None and xs):
                return ()
            rest = "".join(f", {name}={ast.unparse(value)}" for name, value in named.items())
            fewer = f"{ast.unparse(call.func)}({ast.unparse(body)}, {ast.unparse(start)}, {parts[0]}{rest})[0]"
            return instead(loop, f"{_called(body)}({fewer}, {parts[1]})")
    return ()


def _less_one(count: ast.expr) -> str:
    match count:
        case ast.Constant(value=int(number)):
            return str(number - 1)
    return f"{parenthesized(ast.unparse(count))} - 1"


def _called(body: ast.expr) -> str:
    return f"({ast.unparse(body)})" if isinstance(body, ast.Lambda) else ast.unparse(body)


def _is_only_carried(program: Program, loop: tuple[str, ast.Call]) -> bool:
    """Return whether what a scan stacks is not used: it is taken apart at once, and that gets no name but `_`."""
    match next(around(program, loop), None):
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id="_")])]):
            return True
        case ast.Subscript(slice=ast.Constant(value=0)):
            return True
    return False


def _of_length(length: ast.expr | None) -> tuple[str, str] | None:
    return None if length is None else (f"None, {_less_one(length)}", "None")


def _without_last(program: Program, file: str, xs: ast.expr) -> tuple[str, str] | None:
    """The inputs of all iterations but the last, and those of the last one."""
    match xs:
        case ast.Call(func=function, args=[count], keywords=[]) if name_of(function) == "arange":
            return f"{ast.unparse(function)}({_less_one(count)})", _less_one(count)
    source, text = program.file(file), ast.unparse(xs)
    if source is None or not imports(source, "jax"):
        return None
    return f"jax.tree.map(lambda leaf: leaf[:-1], {text})", f"jax.tree.map(lambda leaf: leaf[-1], {text})"
