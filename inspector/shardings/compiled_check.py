"""Whether shardings that were derived are those that the compiled program has, as JAX reads them from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...parsers.errors import ParseError
from ...parsers.sharding_syntax.jax_arrays import parse_array_type, parse_spec
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Message, Value
from ..ir.array_sharding import ArraySharding
from ..ir.program import Program
from ..report import PlacedMessage, ShardedValue
from .placement import same
from .spelled import from_spec


def contradictions(program: Program, derived: Iterable[ShardedValue]) -> Iterator[PlacedMessage]:
    """An internal error for each argument and output whose derived sharding is not the compiled program's."""
    capture = program.capture
    known = {"argument": capture.arguments, "output": capture.outputs}
    actual = {(role, value.path): value for role, values in known.items() for value in values if value.actual}
    for row in derived:
        value = actual.get((row.role, row.name))
        compiled = None if value is None else _compiled(value, program.meshes)
        if value is None or compiled is None or row.sharding is None or row.sharding.mesh != compiled.mesh:
            continue
        if not same(row.sharding.closed(), compiled):
            text = f"internal error: {row.role} {row.name} has {value.actual} in the compiled program, not {row.spec}"
            yield PlacedMessage(Message("error", text, "propagation"), row.name)


def _compiled(value: Value, meshes: Iterable[MeshSyntax]) -> ArraySharding | None:
    try:
        rank, spec = len(parse_array_type(value.type).dims), parse_spec(value.actual or "")
    except ParseError:
        return None
    for mesh in meshes:
        try:
            return from_spec(spec, mesh, rank).closed()
        except ValueError:
            continue
    return None
