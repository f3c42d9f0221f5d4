"""Operations of the propagated program and the instructions of the compiler's stages that they became."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...parsers.hlo import Instruction
from ...parsers.hlo.types import leaves
from ...parsers.source import Frame
from ..catalog.spellings import RENAMED
from ..dataflow.mlir import Dataflow, Node
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, array_type
from ..report.position import own_frame
from ..units import grouped
from .collectives import Line
from .evidence import Evidence, Match, strongest
from .numbers import tag_of_location, tagged_places


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
    name = flow.rows[row].name.rpartition(".")[2]
    opcode = RENAMED.get(name, name.replace("_", "-"))
    yield from (each for each in _numbered(stage, text, flow, row) if each.opcode == opcode)


def _numbered(stage: ParsedStage | None, text: ParsedStage | None, flow: Dataflow, row: int) -> Iterator[Instruction]:
    tag = None if stage is None else tag_of_location(stage, flow.rows[row].location)
    if text is not None and text.hlo is not None and tag is not None:
        yield from filter(None, map(text.hlo.instruction_at, _places(text).get(tag, ())))


@derived
def _places(text: ParsedStage) -> Mapping[int, Sequence[int]]:
    return grouped((number, offset) for offset, number in tagged_places(text))


class HloArray(NamedTuple):
    """The result of an instruction, or one of the arrays in it by its number."""

    instruction: Instruction
    number: int
    type: ArrayType


def arrays_of(stage: ParsedStage, text: ParsedStage, flow: Dataflow) -> Iterator[tuple[Node, Sequence[HloArray]]]:
    """The values of the propagated program with the arrays that they became in a stage of the compiler, in its order.

    Arguments and outputs are known by their positions, where there are as many, results by number and type.
    """
    entry = None if text.hlo is None else text.hlo.entry
    if entry is not None and entry.root is not None:
        inputs = [each for parameter in entry.parameters for each in _arrays_in(parameter)]
        if len(inputs) == len(flow.function.arguments):
            yield from ((Node("argument", -1, number), (each,)) for number, each in enumerate(inputs))
        outputs = list(_arrays_in(entry.root))
        if len(outputs) == len(flow.function.results):
            yield from ((Node("output", -1, number), (each,)) for number, each in enumerate(outputs))
    for number, row in enumerate(flow.rows):
        if len(row.results) == len(row.types) == 1:
            type = array_type(row.types[0])
            made = (_arrays_in(each) for each in _numbered(stage, text, flow, number) if each.opcode != "parameter")
            alike = [array for array, *others in made if array.type == type and not others]
            if alike:
                yield Node("result", number, 0), alike


def _arrays_in(instruction: Instruction) -> list[HloArray]:
    return [HloArray(instruction, number, array_type(leaf)) for number, leaf in enumerate(leaves(instruction.type))]
