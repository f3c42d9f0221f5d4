"""In_specs of shard_maps in the user's source, with an axis over which an argument could be sharded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....parsers.sharding_syntax.mesh import AxisRef
from ...report import Fix, Report
from .calls import name_of, nodes_of, own_files
from .edits import axes_text, instead
from .specs import SPECS


def sharded_inputs(report: Report, axes: tuple[AxisRef, ...]) -> Iterator[Fix]:
    """Yield the change of each `P()` among the in_specs to one over the axes: last arguments first, often the batch."""
    if not axes or any(axis.sub is not None for axis in axes):
        return
    names = axes_text(tuple(axis.name for axis in axes))
    for file in dict.fromkeys(own_files(report.program)):
        for number, spec in _replicated(list(nodes_of(report.program, file))):
            text = f"{ast.unparse(spec.func)}({names})"
            yield Fix(
                f"shard argument {number} of the shard_map: {text} in its in_specs, if it holds the examples",
                instead((file, spec), text),
            )


def _replicated(nodes: list[ast.AST]) -> Iterator[tuple[int, ast.Call]]:
    """The specs of whole values that are written among in_specs, each with its position."""
    for node in nodes:
        match node:
            case ast.keyword(arg="in_specs", value=ast.Tuple(elts=specs)):
                calls = [(number, spec) for number, spec in enumerate(specs) if isinstance(spec, ast.Call)]
                yield from ((number, spec) for number, spec in reversed(calls) if _is_whole(spec))
            case ast.keyword(arg="in_specs", value=ast.Call() as spec) if _is_whole(spec):
                yield 0, spec


def _is_whole(spec: ast.Call) -> bool:
    return name_of(spec.func) in SPECS and not spec.args and not spec.keywords
