"""The arrays in the user's expression that failed, the same expression with some of them resharded, and their specs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ..findings.fixes.calls import imports, name_of, nodes_of
from ..findings.fixes.edits import Edits, Placed, extent, together, wrapped
from .failed import Failed

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dimension."""

SPEC = r"P\(((?:[^()]|\([^()]*\))*)\)"

_DIMENSION = re.compile(r"[^,()]*@\([^()]*\)|[^,]+")
_AXIS = re.compile(r"\w+")


def tuples(text: str) -> list[Spec]:
    """`('x', None), (None, ('x', 'y'))`."""
    try:
        found = ast.literal_eval(f"[{text}]")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [tuple(_axes_of(dim) for dim in spec) for spec in found if isinstance(spec, tuple)]


def _axes_of(dim: object) -> tuple[str, ...]:
    if isinstance(dim, tuple):
        return tuple(map(str, dim))
    return () if dim is None else (str(dim),)


def spec_of(text: str) -> Spec:
    """`'x', None`, as in `P('x', None)`, or `'x',`: JAX prints a spec of one entry as a tuple of one."""
    entries = text.strip().removesuffix(",")
    return next(iter(tuples(f"({entries},)" if entries else "()")), ())


def spec_of_type(text: str) -> Spec:
    """`f32[16@x,8@(x,y)]`."""
    inside = text[text.find("[") + 1 : text.rfind("]")]
    return tuple(tuple(_AXIS.findall(dim.partition("@")[2])) for dim in _DIMENSION.findall(inside))


def without(spec: Spec, axes: Iterable[str]) -> Spec:
    """Return a spec without some axes."""
    return tuple(tuple(axis for axis in dim if axis not in set(axes)) for dim in spec)


def axes_text(text: str) -> str:
    """Return the axes in a text as a list of names."""
    return ", ".join(map(repr, _AXIS.findall(text.replace("None", "")))) or "no axis"


def text_of(spec: Spec) -> str:
    """Return a spec as it is written: `P('x', None)`."""
    dims = (repr(dim[0]) if len(dim) == 1 else repr(dim or None) for dim in spec)
    return f"P({', '.join(dims)})"


def resharded(failed: Failed, number: int, spec: Spec) -> Iterator[Edits]:
    """Yield an operand of what failed, resharded: over the mesh that is set, or over its own."""
    found = [*operands(failed)]
    if number >= len(found):
        yield ()
        return
    yield from resharded_at(failed, found[number], spec)


def resharded_at(failed: Failed, placed: Placed, spec: Spec) -> Iterator[Edits]:
    """Yield an expression, resharded: over the mesh that is set, or over its own.

    Without a spec as it is sharded, where that is known, but for partial sums.
    """
    spec = spec or failed.specs.get(ast.unparse(placed[1]), ())
    for sharding in shardings(failed, *placed, text_of(spec)):
        yield wrapped(placed, "jax.sharding.reshard(", f", {sharding})")


def all_resharded(failed: Failed, spec: Spec) -> Iterator[Edits]:
    """Yield all operands of what failed, resharded."""
    for edits in zip(*(list(resharded_at(failed, placed, spec)) for placed in operands(failed)), strict=False):
        yield together(*edits)


def shardings(failed: Failed, file: str, node: ast.expr, spec: str) -> Iterator[str]:
    """Yield a spec as an argument: for the mesh that is set, or with the mesh of an array in an expression."""
    source = failed.program.file(file)
    yield f"jax.{spec}"
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    array = next((name for name in names if source is not None and not imports(source, name)), None)
    if array is not None:
        yield f"jax.NamedSharding(jax.typeof({array}).sharding.mesh, jax.{spec})"


def operands(failed: Failed) -> Iterator[Placed]:
    """Yield the arrays in the expression that failed."""
    for file, node in failing(failed):
        match node:
            case ast.BinOp(left=left, right=right):
                yield from ((file, left), (file, right))
            case ast.Subscript(value=value):
                yield file, value
            case ast.Call(func=function, args=args, keywords=keywords) if name_of(function) == "scan":
                given = [keyword.value for keyword in keywords if keyword.arg == "xs"]
                yield from ((file, each) for each in (*args[2:3], *given))
            case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at"))), args=args):
                yield from ((file, each) for each in args)
            case ast.Call(func=ast.Attribute(value=value)) if not _is_module(failed, file, value):
                yield file, value  # a method
            case ast.Call(args=[ast.List(elts=several) | ast.Tuple(elts=several), *_]):
                yield from ((file, each) for each in several)
            case ast.Call(func=ast.Attribute(attr="where" | "select"), args=[_, one, other]):
                yield from ((file, one), (file, other))
            case ast.Call(args=args):
                arrays = [each for each in args if not isinstance(each, ast.Constant | ast.Starred)]
                yield from ((file, each) for each in arrays)


def conditions_of(failed: Failed) -> Iterator[Placed]:
    """Yield the condition of a `where` that failed."""
    for file, node in failing(failed):
        match node:
            case ast.Call(func=ast.Attribute(attr="where" | "select"), args=[condition, _, _]):
                yield file, condition


def indices_of(failed: Failed) -> Iterator[Placed]:
    """Yield the arrays by which an expression that failed indexes."""
    for file, node in failing(failed):
        match node:
            case (
                ast.Subscript(slice=ast.Tuple(elts=several))
                | ast.Call(
                    func=ast.Attribute(
                        value=ast.Subscript(value=ast.Attribute(attr="at"), slice=ast.Tuple(elts=several))
                    )
                )
            ):
                yield from ((file, each) for each in several if not isinstance(each, ast.Slice | ast.Constant))


def failing(failed: Failed, depth: int = 0) -> Iterator[Placed]:
    """Yield the innermost expression of the user's that failed, or one of the calls that it is in."""
    for frame in failed.failure.stack[depth : depth + 1]:
        there = (frame.line, frame.column, frame.end_line, frame.end_column)
        for node in nodes_of(failed.program, frame.file):
            if isinstance(node, ast.expr) and extent(node) == there:
                yield frame.file, node


def _is_module(failed: Failed, file: str, owner: ast.expr) -> bool:
    source, root = failed.program.file(file), owner
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and source is not None and imports(source, root.id)
