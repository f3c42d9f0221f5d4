"""Operations of the propagated program and the instructions of the compiler's stages that they became."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...parsers.hlo import Instruction
from ...parsers.source import Frame
from ..dataflow.mlir import Dataflow
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..report.position import own_frame
from ..units import grouped
from .collectives import Line
from .evidence import Evidence, Match, strongest
from .numbers import tag_of_location, tagged_places

OPCODES = {"dot_general": "dot", "broadcast_in_dim": "broadcast"}
"""HLO's names of operations where they are others than StableHLO's, which have underscores."""


def rows_of(
    stage: ParsedStage, flow: Dataflow, numbers: Sequence[int], op_name: str | None, frame: Frame | None
) -> Match[int]:
    """The rows that an instruction comes from, with these numbers, this name, and this line of the user's.

    Of several numbers each has a row: XLA merged them.
    """
    by_number = rows_by_tag(flow, stage)
    name = (op_name or "").rstrip(":"), None if frame is None else (frame.file, frame.line)
    return strongest(
        {
            Evidence.NUMBER: lambda: [by_number[number][0] for number in numbers if number in by_number],
            Evidence.NAME_AND_LINE: lambda: _rows_by_name(flow).get(name, ()) if name[0] else (),
        }
    )


@derived
def rows_by_tag(flow: Dataflow, stage: ParsedStage) -> Mapping[int, Sequence[int]]:
    """The rows of the propagated program by the numbers of their operations."""
    made = ((number, row) for number, row in enumerate(flow.rows) if row.results and not row.name.endswith("constant"))
    # One operation of JAX's may be several here, as a call is: the first one with a sharding rule stands for them.
    return grouped((tag, number) for number, row in made if (tag := tag_of_location(stage, row.location)) is not None)


@derived
def _rows_by_name(flow: Dataflow) -> Mapping[tuple[str, Line | None], Sequence[int]]:
    found = []
    for number, row in enumerate(flow.rows):
        if row.results:
            names, stack = flow.located(row.location)
            frame = own_frame(stack)
            line = None if frame is None else (frame.file, frame.line)
            found.append((((names[0] if names else "").rstrip(":"), line), number))
    return grouped(found)


def instructions_of(
    stage: ParsedStage | None, text: ParsedStage | None, flow: Dataflow, row: int
) -> Iterator[Instruction]:
    """The instructions that an operation became in a stage of the compiler, by its number and its opcode."""
    tag = None if stage is None else tag_of_location(stage, flow.rows[row].location)
    if text is None or text.hlo is None or tag is None:
        return
    name = flow.rows[row].name.rpartition(".")[2]
    for instruction in map(text.hlo.instruction_at, _places(text).get(tag, ())):
        if instruction is not None and instruction.opcode == OPCODES.get(name, name.replace("_", "-")):
            yield instruction


@derived
def _places(text: ParsedStage) -> Mapping[int, Sequence[int]]:
    return grouped((number, offset) for offset, number in tagged_places(text))
