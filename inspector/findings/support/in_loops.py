"""What became of collectives out of the partitioner in the compiled program."""

from __future__ import annotations

from collections.abc import Iterable

from ....parsers.errors import ParseError
from ....parsers.hlo import Instruction
from ....parsers.source import Frame
from ...catalog.spellings import HLO_OPCODES
from ...ir import hlo_types
from ...links.operation_ids import tags_in
from ...report import Collective, Report
from .shapes import elements_of


def compiled_collectives(report: Report, instructions: Iterable[Instruction]) -> tuple[Collective, ...]:
    """The collectives of the compiled program that come from these: of their kind, with as many elements.

    They are told by the numbers of the operations that they come from; without such, by their lines, else by names.
    """
    before, after = report.program.stage("hlo-spmd"), report.program.stage("hlo")
    found: dict[Collective, None] = {}
    if before is None or after is None:
        return ()
    for instruction in instructions:
        alike = [c for c in report.collectives if c.stage == "hlo" and _is_like(c, instruction)]
        tags = set(tags_in(before, instruction.span))
        tagged = [c for c in alike if tags & set(tags_in(after, c.span))]
        lines = _lines(instruction.frames)
        here = [c for c in alike if lines and _lines(c.source.stack) == lines]
        name = instruction.metadata.op_name if instruction.metadata is not None else None
        named = [c for c in alike if name and c.op_name == name]
        found |= dict.fromkeys(tagged or here or ([] if lines else named or alike))
    return tuple(found)


def _lines(stack: tuple[Frame, ...]) -> list[tuple[str, int]]:
    """The lines of a whole stack: a helper's own line does not tell from where it was called."""
    return [(frame.file, frame.line) for frame in stack]


def _is_like(collective: Collective, instruction: Instruction) -> bool:
    if HLO_OPCODES.get(instruction.opcode) != collective.kind:
        return False
    try:
        wanted = {elements_of(hlo_types.short(leaf)) for leaf in hlo_types.leaves(instruction.type)}
    except ParseError:
        return False
    return bool(wanted & set(map(elements_of, collective.result_types)))
