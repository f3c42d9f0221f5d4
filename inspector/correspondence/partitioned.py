"""The collectives around the partitioner, of which later stages keep the channels, or, of merged ones, the names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...parsers.hlo import Instruction
from ...parsers.record import Record
from ..catalog.spellings import HLO_OPCODES, PRIMITIVES
from ..ir.derived import derived
from ..ir.name_scopes import last_components, merged_parts
from ..ir.stage import ParsedStage
from ..report import Origin


class Partitioning(Record, frozen=True, eq=False):
    """The origins of the collectives that went into the partitioner, or came out of it, by channel and by name."""

    channels: Mapping[str | None, Origin]
    names: Mapping[str | None, Origin]

    def origin(self, op_name: str | None) -> Origin:
        """The origin of a collective of a later stage: the one that all names agree on that were merged into it."""
        if op_name is None:  # what later passes make anew has neither name nor channel
            return "unknown" if "user" in self.names.values() else "partitioner"
        origins = {self.names.get(name, "compiler") for name in merged_parts(op_name)}
        return origins.pop() if len(origins) == 1 else "unknown"


@derived
def partitioning_of(after: ParsedStage, before: ParsedStage) -> Partitioning | None:
    """The partitioner's changes, from the stages right after and before it."""
    if before.hlo is None or after.hlo is None:
        return None
    given, made = (module.with_opcode(HLO_OPCODES) for module in (before.hlo, after.hlo))
    own = [each for each in made if is_of_custom(each.op_name, each.name)]
    found: list[tuple[Origin, Iterable[Instruction]]] = [("partitioner", made), ("user", given)]
    names = {each.op_name: origin for origin, side in found for each in side}
    channels = {each.attributes.get("channel_id"): origin for origin, side in (*found, ("user", own)) for each in side}
    return Partitioning(channels, names)


CUSTOM = "custom_partitioning"
"""The operation whose partitioning is a function of the user's."""


def is_of_custom(op_name: str | None, instruction: str) -> bool:
    """Return whether it is in a user's partitioning of an operation, named after that operation."""
    named = instruction.rstrip(".0123456789").lstrip("%")
    return op_name is not None and last_components(op_name) == (CUSTOM,) and named in PRIMITIVES
