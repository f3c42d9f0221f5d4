"""Between which partitions a collective runs, and the names of the mesh axes that form their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...parsers.errors import readable
from ...parsers.hlo import Instruction
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import Groups, MeshGroups, Pairs, ReplicaGroups
from ..ir.meshes import axes_of_groups, axes_of_pairs
from .context import AnalysisContext
from .dcn_transfers import Transfer, as_partitions, in_every_slice

MAX_MEMBERS = 1 << 22
"""Limit for the groups of one module: a line of a text can name a million devices."""


@dataclass
class GroupsOfModule:
    """The groups of a module's collectives as lists of devices; those that are spelled alike are one list.

    None are known of what is spelled when there are too many.
    """

    partitions: int
    known: dict[ReplicaGroups, Groups] = field(default_factory=dict)
    left: int = field(default_factory=lambda: MAX_MEMBERS)

    def of(self, spelled: ReplicaGroups | None) -> Groups:
        """The groups that are spelled so."""
        if spelled is None:
            return ()
        if spelled not in self.known:
            groups = spelled.devices(self.partitions) if self.left > 0 else ()
            self.left -= sum(map(len, groups))
            self.known[spelled] = groups if self.left >= 0 else ()
        return self.known[spelled]


class Participants(Record, frozen=True):
    """Groups, or pairs of source and target, of partitions; `spelled` is how groups are written in the text."""

    spelled: ReplicaGroups | None
    groups: Groups
    pairs: Pairs

    @property
    def group_size(self) -> int | None:
        """The size of the largest group; that of a pair where there are none, and None where neither is known."""
        return max(map(len, self.groups), default=2 if self.pairs else None)

    def axes(self, meshes: tuple[MeshSyntax, ...]) -> tuple[AxisRef, ...] | None:
        """The axes of the first mesh that forms these groups or pairs; meshes with the names in the text come first."""
        if not self.pairs and not self.groups:
            return None
        named = {axis.name for axis in self.spelled.axes} if isinstance(self.spelled, MeshGroups) else set()
        for mesh in sorted(meshes, key=lambda mesh: not named <= {name for name, _ in mesh.axes}):
            axes = axes_of_pairs(self.pairs, mesh) if self.pairs else axes_of_groups(self.groups, mesh)
            if axes is not None:
                return axes
        return None


def participants_of(
    instruction: Instruction,
    transfer: Transfer | None,
    slices: Sequence[Sequence[int]],
    written: GroupsOfModule,
    context: AnalysisContext,
) -> Participants:
    """The participants of an HLO collective.

    `slices` are the partitions of each slice, where the module is of one of them.
    """
    if transfer is not None:
        pairs = as_partitions(transfer.pairs, context.devices)
        return Participants(None, as_partitions(transfer.groups, context.devices), _pairs(pairs))
    spelled = readable(lambda: instruction.replica_groups)
    groups = written.of(spelled)
    permuted = readable(lambda: instruction.source_target_pairs) or ()
    if slices:
        return Participants(spelled, in_every_slice(groups, slices), _pairs(in_every_slice(permuted, slices)))
    return Participants(spelled, groups, permuted)


def _pairs(rows: Groups) -> Pairs:
    return tuple((source, target) for source, target in rows)
