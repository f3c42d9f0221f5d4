"""Between which partitions a collective of an HLO module runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...parsers.errors import readable
from ...parsers.hlo import Instruction
from ...parsers.sharding_syntax.replica_groups import Groups, Pairs, ReplicaGroups
from .context import AnalysisContext
from .dcn_transfers import Transfer, as_partitions, in_every_slice


@dataclass(frozen=True, slots=True)
class Participants:
    """Groups, or pairs of source and target, of partitions; `spelled` is how groups are written in the text."""

    spelled: ReplicaGroups | None
    groups: Groups
    pairs: Pairs


def participants_of(
    instruction: Instruction, transfer: Transfer | None, slices: Sequence[Sequence[int]], context: AnalysisContext
) -> Participants:
    """The members of a collective. `slices` are the partitions of each slice, where the module is of one of them."""
    if transfer is not None:
        pairs = as_partitions(transfer.pairs, context.devices)
        return Participants(None, as_partitions(transfer.groups, context.devices), _pairs(pairs))
    spelled = readable(lambda: instruction.replica_groups)
    groups = () if spelled is None else spelled.devices(len(slices[0]) if slices else context.partitions)
    permuted = readable(lambda: instruction.source_target_pairs) or ()
    if slices:
        return Participants(spelled, in_every_slice(groups, slices), _pairs(in_every_slice(permuted, slices)))
    return Participants(spelled, groups, permuted)


def _pairs(rows: Groups) -> Pairs:
    return tuple((source, target) for source, target in rows)
