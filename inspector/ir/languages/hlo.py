"""HLO as a language of stages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....parsers.errors import Problem
from ....parsers.hlo import HloModule, parse_module
from ....parsers.sharding_syntax.replica_groups import device_counts
from ....parsers.source import Source
from ...catalog.spellings import HLO_OPCODES
from ..language import DebugInfo, Embedded, Language, Operation, any_of

_FRAME_ID = re.compile(rb"\bstack_frame_id\s*+=\s*+(\d{1,9})\b")
_FRAME = re.compile(rb'\bsource_file\s*+=\s*+"[^"\n]*+"')


@dataclass(frozen=True)
class HloText:
    """A module of HLO."""

    syntax: HloModule
    embedded: tuple[Embedded, ...] = ()

    @property
    def source(self) -> Source:
        """The module's text."""
        return self.syntax.source

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The parts that could not be read."""
        return self.syntax.problems

    @property
    def devices(self) -> int:
        """Partitions times replicas."""
        attributes = self.syntax.attributes
        return max({1} | device_counts(*(attributes.get(key, "") for key in ("replica_count", "num_partitions"))))

    def opcode_counts(self) -> Mapping[str, int]:
        """Return the number of instructions of each opcode."""
        return self.syntax.opcode_counts()

    def operation_at(self, offset: int) -> Operation | None:
        """The innermost instruction around an offset."""
        instruction = self.syntax.instruction_at(offset)
        return None if instruction is None else Operation(instruction.span, instruction.frames)

    def located(self) -> Iterator[Operation]:
        """The lines with a call stack; what stands in them is not read, as far as it is as printed."""
        computations = self.syntax.computations
        if not all(computation.is_printed for computation in computations):
            for each in (instruction for computation in computations for instruction in computation.instructions):
                if each.frames:
                    yield Operation(each.span, each.frames)
            return
        for match in _FRAME_ID.finditer(self.source.data):
            yield Operation(self.source.line_around(match.start()), self.syntax.frames(int(match[1])))
        for match in _FRAME.finditer(self.source.data):
            found = self.operation_at(match.start())
            if found is not None:
                yield Operation(self.source.line_around(match.start()), found.stack)


def _read(source: Source) -> HloText:
    module = parse_module(source)
    # Before anything is read of it: what is not as printed is read by the grammar from then on.
    _ = module.problems
    return HloText(module)


HLO = Language(
    "hlo",
    _read,
    rf"""(?P<aside>\b(?:metadata|backend_config)=\{{(?:[^{{}}"]|"(?:[^"\\]|\\.)*+"|\{{[^{{}}]*+\}})*+\}}|/\*.*?\*/|//.*)
    |(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<value>%[\w.\-]+)
    |(?P<type>\b(?:pred|token|opaque|bf16|[sufc]\d+\w*)\[[^\]]*+\](?:\{{[^}}]*+\}})?)
    |(?P<collective>\b(?:{any_of(HLO_OPCODES)})(?:-start|-done)?(?=\())
    |(?P<operation>(?<=\ )[a-z][a-z0-9\-]*+(?=\())
    |(?P<keyword>\b(?:HloModule|ENTRY|ROOT)\b)
    |(?P<groups>\b(?:replica_groups|source_target_pairs|sharding)(?==))""",
    DebugInfo(
        re.compile(rb'\b(?:metadata|backend_config)=(?=[{"])'),
        b"FileNames",
        re.compile(rb"FileNames\n(?:(?:\d++ .*+|FunctionNames|FileLocations|StackFrames|)\n)*+"),
    ),
)
