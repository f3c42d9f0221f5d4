"""Calls that reduce gradients, as others that make these larger or smaller by the number of devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...ir.program import Program
from ...report import Fix, SourcePosition
from .calls import Call, around, call_at, imports, name_of, of_lax
from .edits import axes_text, instead, left_out, wrapped

REDUCING = ("psum", "pmean", "psum_scatter")


def smaller(program: Program, place: SourcePosition, axes: tuple[str, ...]) -> Iterator[Fix]:
    """Yield a mean in the place of a sum, a sum that is left out, and the division by the number of devices."""
    call = call_at(program, place, REDUCING)
    if call is None:
        return
    if name_of(call[1].func) == "psum":
        yield _renamed(program, call, "pmean")
    if name_of(call[1].func) != "psum_scatter":
        yield from left_out(program, [place], REDUCING)
    size = f"{of_lax(program, call, 'axis_size')}({axes_text(axes)})"
    source = program.file(call[0])
    if any(isinstance(node, ast.Lambda) for node in around(program, call)):
        yield Fix(f"divide by {size}", wrapped(call, "(", f" / {size})"))
    elif source is not None and imports(source, "jax"):
        edits = wrapped(call, "jax.tree.map(lambda leaf: leaf / " + size + ", ", ")")
        yield Fix(f"divide by {size}", edits)


def larger(program: Program, place: SourcePosition) -> Iterator[Fix]:
    """Yield a sum in the place of a mean."""
    call = call_at(program, place, ("pmean",))
    if call is not None:
        yield _renamed(program, call, "psum")


def _renamed(program: Program, call: Call, name: str) -> Fix:
    function = call[1].func
    own = f"{ast.unparse(function.value)}.{name}" if isinstance(function, ast.Attribute) else ""
    text = own or of_lax(program, call, name)
    changed = ast.unparse(ast.Call(ast.Name(text), call[1].args, call[1].keywords))
    return Fix(f"{changed} in the place of {name_of(function)}", instead((call[0], function), text))
