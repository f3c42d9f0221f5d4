"""The shardings that XLA's own propagation ended with, for values where the propagation recorded in `sdy` differs.

Where XLA dumps its propagation, `sdy` is that. Elsewhere the StableHLO is propagated; XLA simplifies a program before
it runs Shardy on it, so that this may end otherwise. What goes into the partitioner says how each instruction is
sharded, and the operations' numbers say which value that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ...parsers.errors import ParseError
from ...parsers.hlo import Instruction
from ...parsers.hlo.fields import number as number_of
from ...parsers.hlo.types import leaves
from ...parsers.mlir.sdy import Sharding
from ...parsers.sharding_syntax import gspmd
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..correspondence.numbers import tag_of_location, tagged_lines
from ..dataflow.mlir import Dataflow, Node
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.placement import same
from ..ir.sharding_spellings import from_gspmd
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, array_type, dtype_name
from ..units import grouped
from .recorded import array_sharding, sharding_at

_INSTRUCTION = re.compile(
    rb"\s*+(?:ROOT )?+\S++ = (?P<type>[a-z]\w*+\[[\d,]*+\])\S* (?P<opcode>[\w-]+)\("
    rb"(?:.*?, sharding=(?P<sharding>\{(?:[^{}]|\{[^{}]*+\})*+\}))?"
)
"""An instruction with one array as its result."""

FROM_HLO = re.compile(rb"^module [^\n]*mhlo\.cross_program_prefetches", re.MULTILINE)
"""The head of a module that XLA made of HLO, as its dump is: the shardings in it are XLA's."""

Sharded = tuple[ArrayType, gspmd.Sharding | None]
"""A type, and how it is sharded. HLO says nothing of what is replicated."""


@derived
def differing(stage: ParsedStage, flow: Dataflow, before: ParsedStage) -> Mapping[Node, Sharding]:
    """The values of `stage` that XLA sharded otherwise in `before`, which goes into the partitioner, and how."""
    mesh = next(((name, mesh) for name, mesh in flow.module.meshes.items() if mesh.axes), None)
    if mesh is None or before.hlo is None or b"sharding=" not in before.source.data:
        return {}
    if FROM_HLO.search(stage.source.data):
        return {}
    found = {}
    for node, manual, type, candidates in (*_boundary(flow, before), *_results(stage, flow, before)):
        own = array_sharding(flow, sharding_at(flow, node), manual, len(type.shape or ()))
        if own is not None and (other := _other(own, candidates, len(type.shape or ()))) is not None:
            name = next((name for name, each in flow.module.meshes.items() if each == other.mesh), mesh[0])
            found[node] = Sharding(name, other.dims, (), unreduced=other.unreduced, reduction=other.reduction)
    return found


Compared = tuple[Node, tuple[str, ...], ArrayType, tuple[gspmd.Sharding | None, ...]]
"""A value with the manual axes around it, its type, and what instructions of that type are sharded like."""


def _results(stage: ParsedStage, flow: Dataflow, before: ParsedStage) -> Iterator[Compared]:
    instructions = grouped(
        (number, (_type(match["type"]), _sharding(match["sharding"] or b"")))
        for number, line in tagged_lines(before)
        if (match := _INSTRUCTION.match(line)) is not None and match["opcode"] != b"parameter"
    )
    for number, row in enumerate(flow.rows):
        tag = tag_of_location(stage, row.location)
        if tag in instructions and len(row.results) == len(row.types) == 1:
            type = array_type(row.types[0])
            alike = tuple(sharding for other, sharding in instructions[tag] if other == type)
            if alike and type.shape:
                yield Node("result", number, 0), row.manual, type, alike


def _boundary(flow: Dataflow, before: ParsedStage) -> Iterator[Compared]:
    entry = None if before.hlo is None else before.hlo.entry
    if entry is None or entry.root is None:
        return
    parameters = [each for each in entry.instructions if each.opcode == "parameter"]
    parameters.sort(key=lambda each: number_of(each.literal) or 0)
    inputs = [leaf for parameter in parameters for leaf in _leaves(parameter)]
    if len(inputs) == len(flow.function.arguments):
        for number, (type, sharding) in enumerate(inputs):
            yield Node("argument", -1, number), (), type, (sharding,)
    outputs = list(_leaves(entry.root))
    if len(outputs) == len(flow.function.results):
        for number, (type, sharding) in enumerate(outputs):
            yield Node("output", -1, number), (), type, (sharding,)


def _leaves(instruction: Instruction) -> Iterator[Sharded]:
    types = [array_type(leaf) for leaf in leaves(instruction.type)]
    try:
        written = instruction.sharding
    except ParseError:
        return
    each = written.elements if isinstance(written, gspmd.TupleSharding) else (written,) * len(types)
    if len(each) == len(types):
        yield from zip(types, each, strict=True)


def _other(own: ArraySharding, candidates: Sequence[gspmd.Sharding | None], rank: int) -> ArraySharding | None:
    """XLA's own sharding of a value; None where it is equal, unclear, or not along the mesh's axes."""
    found = [_meant(sharding, rank, own.mesh) for sharding in candidates]
    if any(each is None or each.mesh != own.mesh or {*each.manual} != {*own.manual} for each in found):
        return None
    every = [each for each in found if each is not None]
    if any(same(own.closed(), each) for each in every):
        return None
    # What one operation became may pass through other shardings on the way; its result is the last of it.
    return every[-1]


@lru_cache(maxsize=1 << 14)
def _meant(sharding: gspmd.Sharding | None, rank: int, mesh: MeshSyntax) -> ArraySharding | None:
    try:
        return from_gspmd(sharding or gspmd.UniformSharding("replicated"), rank, mesh).closed()
    except ValueError:
        return None


@lru_cache(maxsize=1 << 12)
def _sharding(written: bytes) -> gspmd.Sharding | None:
    """Read a sharding; an unreadable one is compared with nothing."""
    try:
        return gspmd.parse_sharding(written.decode("utf-8", "replace")) if written else None
    except ParseError:
        return gspmd.UniformSharding("unknown")


@lru_cache(maxsize=1 << 12)
def _type(written: bytes) -> ArrayType:
    dtype, _, dims = written.decode().rstrip("]").partition("[")
    return ArrayType(dtype_name(dtype), tuple(int(size) for size in dims.split(",") if size))
