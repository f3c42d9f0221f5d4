"""Requested shardings against those that propagation derived and those that the compiled program has, and layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ...parsers.errors import ParseError
from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.record import Record
from ...parsers.sharding_syntax.jax_arrays import parse_array_type, parse_spec
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Span
from ..capture.model import Message, Value
from ..ir.array_sharding import ArraySharding, merged
from ..ir.meshes import KeyedMeshes
from ..ir.placement import same
from ..ir.program import Program
from ..ir.sharding_spellings import from_spec, from_type
from ..ir.types import ArrayType, held_text
from ..report import PlacedMessage, Role, ShardedValue, SourcePosition
from ..units import bytes_of


def requested_sharding(
    value: Value, meshes: Iterable[MeshSyntax], actual: ArraySharding | None = None, keyed: KeyedMeshes = ()
) -> ArraySharding | None:
    """Return the requested sharding of an argument or a result: from its spec, or from its type on an explicit mesh.

    None where nothing was asked, and where no mesh has the axes that were. The mesh is the one that the value names.
    Where the capture does not have it, it is, of several with axes of these names, the one on which the value is placed
    as it actually is, if there is one: a spec does not say which is meant.
    """
    try:
        type = parse_array_type(held_text(value.type))
        spec = None if value.spec is None else parse_spec(value.spec)
    except ParseError:
        return None
    if spec is None and not any(type.axes) and not type.unreduced:
        return None
    found: list[ArraySharding] = []
    for mesh in [mesh for key, mesh in keyed if key == value.mesh] or meshes:
        try:
            # The elements of keys are arrays themselves.
            rank = len(type.dims) + type.dtype.startswith("key<")
            found.append(from_type(type, mesh) if spec is None else from_spec(spec, mesh, rank))
        except ValueError:
            continue
    first = next(iter(found), None)
    return first if actual is None else next((each for each in found if agrees(each, actual)), first)


def actual_sharding(value: Value, program: Program) -> ArraySharding | None:
    """Return the sharding that the compiled program has for an argument or a result; None where it is not known."""
    if value.actual is None:
        return None
    compiled = replace(value, spec=value.actual, mesh=value.actual_mesh)
    return requested_sharding(compiled, program.meshes, keyed=program.keyed_meshes)


def contradictions(program: Program, table: Iterable[ShardedValue]) -> Iterator[PlacedMessage]:
    """An internal error for each argument and output whose derived sharding is not that of the compiled program."""
    capture = program.capture
    known = {"argument": capture.arguments, "output": capture.outputs}
    actual = {(role, value.path): value for role, values in known.items() for value in values if value.actual}
    for row in table:
        value = actual.get((row.role, row.name))
        compiled = actual_sharding(value, program) if value else None
        if value is None or compiled is None or row.sharding is None or row.sharding.mesh != compiled.mesh:
            continue
        if not same(row.sharding.closed(), compiled.closed()):
            text = f"internal error: {row.role} {row.name} has {value.actual} in the compiled program, not {row.spec}"
            yield PlacedMessage(Message("error", text, "propagation"), row.name)


def agrees(requested: ArraySharding, actual: ArraySharding) -> bool:
    """Return whether a value has the requested sharding; an open dimension may have further axes."""
    if len(requested.dims) != len(actual.dims):
        return False
    if requested.mesh == actual.mesh:
        filled = tuple(_filled(*dims, requested.mesh) for dims in zip(requested.dims, actual.dims, strict=True))
        try:
            requested = replace(requested, dims=filled)
        except ValueError:  # a further axis is requested of another dimension
            return False
    return same(requested.closed(), actual.closed())


def _filled(requested: DimensionSharding, actual: DimensionSharding, mesh: MeshSyntax) -> DimensionSharding:
    wanted = merged(requested.axes, mesh)
    starts_so = merged(actual.axes, mesh)[: len(wanted)] == wanted
    return DimensionSharding(actual.axes) if requested.is_open and starts_so else DimensionSharding(requested.axes)


class Layout(Record, frozen=True):
    """An array type under a sharding, with one device's part; the type alone where its shape or sharding is unknown."""

    type: ArrayType
    local_type: ArrayType | None = None
    sharding: ArraySharding | None = None
    spec: str | None = None
    replicated_bytes: int | None = None

    def row(
        self,
        stage: str,
        role: Role,
        value: str,
        name: str,
        span: Span,
        source: SourcePosition,
        requested: ArraySharding | None = None,
        manual: tuple[str, ...] = (),
        spelled: Callable[[ArraySharding], str] = str,
    ) -> ShardedValue:
        """The row of a value that is laid out so."""
        return ShardedValue(
            stage=stage,
            role=role,
            value=value,
            name=name,
            span=span,
            type=self.type,
            local_type=self.local_type,
            sharding=self.sharding,
            spec=self.spec,
            requested=None if requested is None else spelled(requested),
            agrees=None if requested is None or self.sharding is None else agrees(requested, self.sharding),
            replicated_bytes=self.replicated_bytes,
            source=source,
            manual=manual,
        )


def layout_of(type: ArrayType, sharding: ArraySharding | None, spelled: Callable[[ArraySharding], str] = str) -> Layout:
    """The layout of an array of a type under a sharding."""
    shape = type.shape
    if shape is None or sharding is None or len(sharding.dims) != len(shape) or min(shape, default=0) < 0:
        return Layout(type)
    local = sharding.local_shape(shape)
    size = bytes_of(type.dtype, local)
    replicated = None if size is None else size - size // sharding.copies
    return Layout(type, ArrayType(type.dtype, local), sharding, spec=spelled(sharding), replicated_bytes=replicated)
