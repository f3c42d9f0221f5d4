"""Operations of explicit types whose operands are sharded in ways that leave open what is to be communicated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from ..findings.fixes.calls import imports, nodes_of
from ..findings.fixes.edits import Edits, Placed, extent, instead, wrapped
from ..report import Explanation, Fix, StoryStep
from .failed import Failed
from .operations import with_out_sharding

BROADCAST = re.compile(r"(\w+) got incompatible shardings for broadcasting: (.*)\.\s*\Z", re.DOTALL)
ALIKE = re.compile(r"(All operands|select cases) (?:should|must) have the same shardings?[.,] ?[Gg]ot", re.DOTALL)
ILLEGAL = re.compile(r"(\w+) operation with inputs: (\S+), (\S+) produces an illegally sharded result: (\S+)")
CONTRACTED = re.compile(r"requires contracting dimensions to have consistent sharding, got (\(.*?\)) and (\(.*?\))\.")
LOOKUP = re.compile(r"`\.at\[\.\.\.\]\.get\(out_sharding=\)`.*?operand=\S*?(\w+\[\S*\])\)?, indices=\S*?(\w+\[\S*\])")
ALONG = re.compile(r"Input should be unsharded over the axis being reduced\. Got input type=(\S+) and axis=(\d+)")

RESHAPE = re.compile(r"This reshape is not supported.*?Got operand type: (\S+), new sizes: (\(.*?\))", re.DOTALL)

_SPEC = re.compile(r"spec=P\(((?:[^()]|\([^()]*\))*)\)")
_DIMENSION = re.compile(r"[^,()]*@\([^()]*\)|[^,]+")
_AXIS = re.compile(r"\w+")

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dimension."""

ORDINALS = ("first", "second", "third", "fourth")


def explain_broadcast(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """The dimensions that the operands of an elementwise operation have sharded over other axes."""
    specs = _tuples(said[2])
    return _unlike(failed, said[1], specs, specs) if len(specs) > 1 else None


def explain_alike(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """The same for what has to be sharded alike; the cases of a select are listed last one first."""
    specs = [_spec(text) for text in _SPEC.findall(failed.said)]
    if len(specs) < 2:
        return None
    operation = "concatenate" if said[1] == "All operands" else "select"
    return _unlike(failed, operation, specs, specs if operation == "concatenate" else specs[::-1])


def explain_illegal(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """The axis that both operands keep in different dimensions: each axis can shard one dimension of the result."""
    left, right, result = (_of_type(text) for text in said.groups()[1:])
    if said[1] != "dot_general":
        return _unlike(failed, said[1], (left, right), (left, right))
    flat = [axis for dim in result for axis in dim]
    twice = [axis for axis in dict.fromkeys(flat) if flat.count(axis) > 1]
    if not twice:
        return None
    steps = [
        StoryStep(f"the {which} operand is sharded as {_text(spec)}", failed.place)
        for which, spec in zip(ORDINALS, (left, right), strict=False)
    ]
    operands = [
        Fix(f"replicate the {which} operand over {', '.join(map(repr, twice))}: reshard to {_text(without)}", edits)
        for number, (which, spec) in reversed(list(enumerate(zip(ORDINALS, (left, right), strict=False))))
        for without in (_without(spec, twice),)
        for edits in _resharded(failed, number, without)
    ]
    return Explanation(
        f"the result of the product would be sharded over {', '.join(map(repr, twice))} in two dimensions",
        tuple(steps),
        (*operands, *with_out_sharding(failed)),
    )


def explain_contracted(failed: Failed, said: re.Match[str]) -> Explanation:
    """The contracting dimension of each operand."""
    steps = tuple(
        StoryStep(f"the contracting dimension of the {which} operand is sharded over {_axes(text)}", failed.place)
        for which, text in zip(ORDINALS, said.groups(), strict=False)
    )
    return Explanation(
        "the operands of the product are sharded differently in the contracting dimension",
        steps,
        tuple(with_out_sharding(failed)),
    )


def explain_lookup(failed: Failed, said: re.Match[str]) -> Explanation:
    """A lookup in an array that is sharded in the dimension that is indexed."""
    operand, indices = (_of_type(text) for text in said.groups())
    steps = (
        StoryStep(f"the indexed array is sharded as {_text(operand)}", failed.place),
        StoryStep(f"the indices are sharded as {_text(indices[:-1])}", failed.place),
    )
    used = {axis for dim in indices for axis in dim}
    result = (*indices[:-1], *_without(operand[1:], used))
    return Explanation(
        "the sharding of the lookup's result is left open: rows, or indices, have to be communicated",
        steps,
        tuple(_looked_up(failed, dict.fromkeys((_text(result), "P()")))),
    )


def explain_along(failed: Failed, said: re.Match[str]) -> Explanation:
    """A scan along a sharded dimension."""
    spec, dim = _of_type(said[1]), int(said[2])
    whole = tuple(() if number == dim else axes for number, axes in enumerate(spec))
    title = f"reshard the operand to {_text(whole)}: every device gathers dimension {dim}"
    return Explanation(
        f"the operation works along dimension {dim}, which is sharded over {', '.join(map(repr, spec[dim]))}",
        (StoryStep(f"its operand is sharded as {_text(spec)}", failed.place),),
        tuple(Fix(title, edits) for edits in _resharded(failed, 0, whole)),
    )


def explain_reshape(failed: Failed, said: re.Match[str]) -> Explanation:
    """A reshape that splits or merges sharded dimensions."""
    spec = _of_type(said[1])
    whole: Spec = ((),) * len(spec)
    title = f"reshard the operand to {_text(whole)}: every device gathers all of it"
    fixes = [Fix(title, edits) for edits in _resharded(failed, 0, whole)]
    with_sharding = Fix("use jax.lax.reshape with out_sharding: how the result is to be sharded")
    return Explanation(
        "the reshape splits or merges sharded dimensions, so that the sharding of its result is left open",
        (StoryStep(f"its operand is {said[1]}, its result {said[2]}", failed.place),),
        (*fixes, with_sharding),
    )


def _unlike(failed: Failed, operation: str, specs: Sequence[Spec], in_order: Sequence[Spec]) -> Explanation:
    """Return the axes of operands that must be sharded alike, and each with the others' sharding."""
    steps = [
        StoryStep(f"the {which} operand is sharded as {_text(spec)}", failed.place)
        for which, spec in zip(ORDINALS, in_order, strict=False)
    ]
    differing = [dim for dim, axes in enumerate(zip(*specs, strict=False)) if len({*axes, ()}) > 2]
    where = f" in dimension {differing[0]}" if differing else ""
    fixes = [
        Fix(f"reshard the {ORDINALS[number]} operand to {_text(wanted)}, as the {ORDINALS[other]} one is", edits)
        for number in reversed(range(min(len(in_order), 2)))
        for other, wanted in ((1 - number, in_order[1 - number]),)
        for edits in _resharded(failed, number, wanted)
    ]
    return Explanation(f"the operands of {operation} are sharded differently{where}", tuple(steps), tuple(fixes))


def _resharded(failed: Failed, number: int, spec: Spec) -> Iterator[Edits]:
    """An operand of what failed, resharded: over the mesh that is set, or over its own."""
    found = [*_operands(failed)]
    if number >= len(found):
        yield ()
        return
    file, node = found[number]
    for sharding in _shardings(failed, file, node, _text(spec)):
        yield wrapped((file, node), "jax.sharding.reshard(", f", {sharding})")


def _shardings(failed: Failed, file: str, node: ast.expr, spec: str) -> Iterator[str]:
    """A spec as an argument: for the mesh that is set, or with the mesh of an array in an expression."""
    source = failed.program.file(file)
    yield f"jax.{spec}"
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    array = next((name for name in names if source is not None and not imports(source, name)), None)
    if array is not None:
        yield f"jax.NamedSharding(jax.typeof({array}).sharding.mesh, jax.{spec})"


def _looked_up(failed: Failed, specs: Iterable[str]) -> Iterator[Fix]:
    for file, node in _failing(failed):
        if isinstance(node, ast.Subscript):
            for spec in specs:
                for sharding in _shardings(failed, file, node.value, spec):
                    text = f"{ast.unparse(node.value)}.at[{ast.unparse(node.slice)}].get(out_sharding={sharding})"
                    yield Fix(f"say how the result is to be sharded: {spec}", instead((file, node), text))


def _operands(failed: Failed) -> Iterator[Placed]:
    """The arrays in the expression that failed."""
    for file, node in _failing(failed):
        match node:
            case ast.BinOp(left=left, right=right):
                yield from ((file, left), (file, right))
            case ast.Call(func=ast.Attribute(value=value), args=args) if all(map(_is_number, args)):
                yield file, value  # a method
            case ast.Call(args=[ast.List(elts=several) | ast.Tuple(elts=several), *_]):
                yield from ((file, each) for each in several)
            case ast.Call(func=ast.Attribute(attr="where" | "select"), args=[_, one, other]):
                yield from ((file, one), (file, other))
            case ast.Call(args=args):
                arrays = [each for each in args if not isinstance(each, ast.Constant | ast.Starred)]
                yield from ((file, each) for each in arrays)


def _is_number(node: ast.expr) -> bool:
    """Return whether a size or an axis is a literal, or a tuple of literals."""
    return isinstance(node, ast.Constant | ast.UnaryOp) or (
        isinstance(node, ast.Tuple | ast.List) and all(map(_is_number, node.elts))
    )


def _failing(failed: Failed) -> Iterator[Placed]:
    for frame in failed.failure.stack[:1]:
        there = (frame.line, frame.column, frame.end_line, frame.end_column)
        for node in nodes_of(failed.program, frame.file):
            if isinstance(node, ast.expr) and extent(node) == there:
                yield frame.file, node


def _tuples(text: str) -> list[Spec]:
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


def _spec(text: str) -> Spec:
    """`'x', None`, as in `P('x', None)`."""
    return next(iter(_tuples(f"({text},)" if text.strip() else "()")), ())


def _of_type(text: str) -> Spec:
    """`f32[16@x,8@(x,y)]`."""
    inside = text[text.find("[") + 1 : text.rfind("]")]
    return tuple(tuple(_AXIS.findall(dim.partition("@")[2])) for dim in _DIMENSION.findall(inside))


def _without(spec: Spec, axes: Iterable[str]) -> Spec:
    return tuple(tuple(axis for axis in dim if axis not in set(axes)) for dim in spec)


def _axes(text: str) -> str:
    return ", ".join(map(repr, _AXIS.findall(text.replace("None", "")))) or "no axis"


def _text(spec: Spec) -> str:
    dims = (repr(dim[0]) if len(dim) == 1 else repr(dim or None) for dim in spec)
    return f"P({', '.join(dims)})"
