"""The shardings that XLA's own propagation ended with, for values where the propagation recorded in `sdy` differs.

Where XLA dumps its propagation, `sdy` is that. Elsewhere the StableHLO is propagated; XLA simplifies a program before
it runs Shardy on it, so that this may end otherwise. What goes into the partitioner says how each instruction is
sharded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...parsers.errors import ParseError
from ...parsers.mlir.sdy import Sharding
from ...parsers.sharding_syntax import gspmd
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..correspondence.rows import HloArray, arrays_of
from ..dataflow.mlir import Dataflow, Node
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.placement import same
from ..ir.sharding_spellings import from_gspmd
from ..ir.stage import ParsedStage
from .recorded import array_sharding, sharding_at

FROM_HLO = re.compile(rb"^module [^\n]*mhlo\.cross_program_prefetches", re.MULTILINE)
"""The head of a module that XLA made of HLO, as its dump is: the shardings in it are XLA's."""

UNREADABLE = gspmd.UniformSharding("unknown")


@derived
def differing(stage: ParsedStage, flow: Dataflow, before: ParsedStage) -> Mapping[Node, Sharding]:
    """The values of `stage` that XLA sharded otherwise in `before`, which goes into the partitioner, and how."""
    mesh = next(((name, mesh) for name, mesh in flow.module.meshes.items() if mesh.axes), None)
    if mesh is None or before.hlo is None or b"sharding=" not in before.source.data:
        return {}
    if FROM_HLO.search(stage.source.data):
        return {}
    found = {}
    for node, arrays in arrays_of(stage, before, flow):
        manual = flow.rows[node.row].manual if node.kind == "result" else ()
        rank = len(arrays[0].type.shape or ())
        own = array_sharding(flow, sharding_at(flow, node), manual, rank)
        if own is not None and (other := _other(own, [_sharding(each) for each in arrays], rank)) is not None:
            name = next((name for name, each in flow.module.meshes.items() if each == other.mesh), mesh[0])
            found[node] = Sharding(name, other.dims, (), unreduced=other.unreduced, reduction=other.reduction)
    return found


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


def _sharding(array: HloArray) -> gspmd.Sharding | None:
    """An array's sharding; an unreadable one is compared with nothing, and HLO says nothing of what is replicated."""
    try:
        written = array.instruction.sharding
    except ParseError:
        return UNREADABLE
    if not isinstance(written, gspmd.TupleSharding):
        return written
    return written.elements[array.number] if array.number < len(written.elements) else UNREADABLE
