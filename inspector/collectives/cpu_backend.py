"""The CPU backend's own ways: it widens what is sent, and has custom calls that the partitioner gathers for.

After partitioning, XLA's CPU backend makes `f32` of what collectives move as `bf16`, wider floats of 8-bit ones, and
32-bit integers of 16-bit ones that are summed (its passes `float-normalization-…` and `all-reduce-promotion`). TPUs
and GPUs send the types of the partitioned program, and compute as fusions, or sort, what is a call of a library here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..catalog.custom_calls import OF_CPUS
from ..catalog.spellings import KIND_OF
from ..dataflow.hlo import HloValue, hlo_flow
from ..dataflow.meaning import SAME
from ..dataflow.walks import forward
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType
from ..report import Collective
from ..units import bits_of, known_sum
from .participants import Participants
from .twins import COMBINED, Part


def in_own_types(collective: Collective, parts: Sequence[Part]) -> Collective:
    """A collective compiled for CPUs in the types that it has out of the partitioner; its parts get theirs, too."""
    twins = [(part, part.twin.dtype) for part in parts if part.twin is not None]
    widened = [(part, dtype) for part, dtype in twins if _is_narrower(dtype, part.type.dtype)]
    if not widened:
        return collective
    wide = tuple(dict.fromkeys((dtype, part.type.dtype) for part, dtype in widened))
    narrow = {part.index: dtype for part, dtype in widened}
    for part, dtype in widened:
        part.type = replace(part.type, dtype=dtype)
    operands, results = (
        _narrowed(collective, types, narrow) for types in (collective.operand_types, collective.result_types)
    )
    bytes_in, bytes_out = (known_sum(type.bytes for type in types) for types in (operands, results))
    size = Participants(None, collective.groups, collective.pairs).group_size
    return replace(
        collective,
        operand_types=operands,
        result_types=results,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[collective.kind].wire_bytes(size, bytes_in, bytes_out),
        widened=wide,
    )


def _is_narrower(dtype: str, other: str) -> bool:
    bits, wide = bits_of(dtype), bits_of(other)
    return bits is not None and wide is not None and bits < wide


def _narrowed(collective: Collective, types: Iterable[ArrayType], narrow: dict[int, str]) -> tuple[ArrayType, ...]:
    """Parts are numbered as results are where several are combined; else all are of the first one's dtype."""
    if collective.kind not in COMBINED:
        return tuple(replace(type, dtype=narrow[0]) for type in types)
    return tuple(replace(type, dtype=narrow.get(index, type.dtype)) for index, type in enumerate(types))


def with_cpu_call(stage: ParsedStage, collective: Collective) -> Collective:
    """A collective compiled for CPUs, which nobody requested, with the custom call that is its only user."""
    flow = hlo_flow(stage) if _has_cpu_calls(stage) else None
    made = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or made is None:
        return collective
    reach = forward(flow, [HloValue(made)], SAME)
    targets = {use.instruction.call_target for use in reach.ends} if reach.is_all else set()
    return replace(collective, cpu_call=targets.pop()) if len(targets) == 1 and targets <= OF_CPUS else collective


@derived
def _has_cpu_calls(stage: ParsedStage) -> bool:
    calls = () if stage.hlo is None else stage.hlo.with_opcode({"custom-call"})
    return any(each.call_target in OF_CPUS for each in calls)
