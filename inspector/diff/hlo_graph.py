"""The instructions of a computation of HLO as nodes."""

from __future__ import annotations

import re
from collections import Counter

from ...parsers.errors import ParseError
from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.computation import Computation
from ...parsers.hlo.graph import Uses
from ..report.changes import Node
from .nodes import Graph

UNREAD = frozenset(("metadata", "backend_config", "channel_id", "frontend_attributes", "use_global_device_ids"))
"""Attributes that a line is shown without."""

ACCIDENTAL = frozenset((*UNREAD, "calls", "to_apply", "body", "condition", "sharding", "replica_groups"))
"""Attributes that name, number or place, that say how the backend goes about it, or that are spelled in many ways."""

_LAYOUT = re.compile(r"\{[\d,]*(?::[^}]*)?\}|/\*.*?\*/")


def graph_of(computation: Computation) -> Graph[Instruction]:
    """The graph of one computation."""
    return Graph(computation.instructions, Uses(computation), _node)


def graph_around(module: HloModule, offset: int) -> Graph[Instruction] | None:
    """The computation whose instruction stands there."""
    instruction = module.instruction_at(offset)
    return None if instruction is None else graph_of(instruction.computation)


def _node(instruction: Instruction) -> Node:
    type = _LAYOUT.sub("", instruction.type_text)
    attributes = {key: value for key, value in instruction.attributes.items() if key not in ACCIDENTAL}
    # The number of a parameter is accidental, the value of a constant is not.
    literal = instruction.literal if instruction.opcode == "constant" else None
    does = (tuple(sorted(attributes.items())), literal, _called(instruction), _groups(instruction))
    span, name, opcode = instruction.span, instruction.name, instruction.opcode
    line = _line(instruction, type)
    return Node(name, opcode, instruction.operands, span, type, (opcode, type, does), attributes, line)


def _line(instruction: Instruction, type: str) -> str:
    """An instruction without what only machines read."""
    attributes = "".join(f", {key}={value}" for key, value in instruction.attributes.items() if key not in UNREAD)
    inside = instruction.literal
    operands = ", ".join(instruction.operands) if inside is None else inside
    return f"{instruction.name} = {type} {instruction.opcode}({operands}){attributes}"


def _groups(instruction: Instruction) -> object:
    """Return the participants, however the text spells them."""
    try:
        spelled = instruction.replica_groups
    except ParseError:
        return instruction.attributes.get("replica_groups")
    return None if spelled is None else spelled.devices(0)


def _called(instruction: Instruction) -> tuple[tuple[str, int], ...]:
    """The census of the computations that it calls: their names say nothing."""
    counted: Counter[str] = Counter()
    for computation in filter(None, map(instruction.computation.module.computation, instruction.called)):
        counted.update(each.opcode for each in computation.instructions)
    return tuple(sorted(counted.items()))
