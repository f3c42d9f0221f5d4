"""Shapes that specs do not fit, and explicit shardings that leave the result open."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import tree_of
from ..findings.fixes.edits import as_operand, instead
from ..report import Explanation, Fix, StoryStep
from .failed import Failed
from .functions import calls_at, functions_named, place_of, results_of
from .out_specs import FUNCTION

_INDIVISIBLE = re.compile(
    r"the passed (\S+) of shape (\S+), where \S+ is bound to (\S+)'s parameter '(\w+)', corresponds to in_specs of"
    r" value (P\(.*?\)), which maps array axis (\d+) \(of size (\d+)\) to mesh ax\w+ (.*?) \(of (?:total )?size (\d+)\)"
)
_RANK = re.compile(
    r"out_specs((?:\[\d+\])*) is (P\(.*?\)) which has length (\d+), but .*? has shape (\S+), which has rank (\d+)"
)
_AMBIGUOUS = re.compile(r"ambiguous how the output should be sharded.*?lhs_contracting_spec=(\(.*?\)) and", re.DOTALL)


def explain(failed: Failed) -> Explanation | None:
    """A dimension that its mesh axes do not divide: what it would be padded to."""
    said = _INDIVISIBLE.search(failed.said)
    if said is None:
        return None
    _, shape, function, parameter, spec, dim, size, axes, parts = said.groups()
    padded = -(-int(size) // int(parts)) * int(parts)
    step = StoryStep(f"{parameter} is {shape}, and its in_spec is {spec}", place_of(failed.failure))
    words = (
        f"pad dimension {dim} of {parameter} to {padded} before the call, and cut the result",
        f"leave dimension {dim} whole: an in_spec without {axes}, if every device can have all of it",
    )
    return Explanation(
        f"{axes} cuts dimension {dim} of {parameter} of {function} into {parts} parts, which do not divide {size}",
        (step,),
        tuple(map(Fix, words)),
    )


def explain_rank(failed: Failed) -> Explanation | None:
    """An out_spec with more entries than the result has dimensions."""
    said, function = _RANK.search(failed.said), FUNCTION.search(failed.said)
    if said is None or function is None:
        return None
    path, spec, length, shape, rank = said.groups()
    new = int(length) - int(rank)
    fixes = [
        Fix(f"give it {new} dimension{'s' if new > 1 else ''} more, along which devices lie side by side", edits)
        for file, found in functions_named(failed.program, function[1])
        for placed in results_of(file, found, path)
        if (edits := as_operand(placed, f"[{', '.join(['None'] * new)}{', ...' if int(rank) else ''}]"))
    ]
    step = StoryStep(f"result{path} is {shape}, of {rank} dimensions", place_of(failed.failure))
    return Explanation(
        f"out_specs{path} = {spec} has {length} entries for a result of {rank} dimensions", (step,), tuple(fixes)
    )


def explain_explicit(failed: Failed) -> Explanation | None:
    """A product of explicit types of which the sharding of the result is not said."""
    said = _AMBIGUOUS.search(failed.said)
    if said is None:
        return None
    step = StoryStep(f"both operands are cut along {said[1]} in the dimension that is summed", place_of(failed.failure))
    return Explanation(
        "the sharding of the product is left open: it may be summed everywhere, or scattered",
        (step,),
        tuple(_with_out_sharding(failed)),
    )


def _with_out_sharding(failed: Failed) -> Iterator[Fix]:
    what = "say that the sum is to be on every device (an axis in the spec scatters it instead)"
    for file, call in calls_at(
        failed.program, place_of(failed.failure).stack, ("dot", "matmul", "einsum", "dot_general", "tensordot")
    ):
        for sharding in _everywhere(call.args[0] if call.args else None):
            yield Fix(what, instead((file, call), f"{ast.unparse(call)[:-1]}, out_sharding={sharding})"))
        return
    if not failed.failure.stack:
        return
    frame = failed.failure.stack[0]
    source = failed.program.file(frame.file)
    for node in () if source is None else ast.walk(tree_of(source)):
        match node:
            case ast.BinOp(left=left, op=ast.MatMult(), right=right) if (node.lineno, node.col_offset) == (
                frame.line,
                frame.column,
            ) and (node.end_lineno, node.end_col_offset) == (frame.end_line, frame.end_column):
                operands = f"{ast.unparse(left)}, {ast.unparse(right)}"
                for sharding in _everywhere(left):
                    product = f"jax.numpy.matmul({operands}, out_sharding={sharding})"
                    yield Fix(what, instead((frame.file, node), product))


def _everywhere(operand: ast.expr | None) -> Iterator[str]:
    """The whole on every device: of the mesh that is set, or of that of an operand."""
    yield "jax.P()"
    if isinstance(operand, ast.Name):
        yield f"jax.NamedSharding(jax.typeof({operand.id}).sharding.mesh, jax.P())"
