"""MLIR as a language of stages: StableHLO, before propagation and with Shardy's shardings after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....parsers.errors import Problem, readable
from ....parsers.mlir import Location, MlirModule, UnknownLoc, frames, parse_module
from ....parsers.mlir import Operation as SyntaxOperation
from ....parsers.sharding_syntax.replica_groups import device_counts
from ....parsers.source import Source
from ...catalog.spellings import MLIR_OPS
from ..language import DebugInfo, Embedded, Language, Operation, any_of


@dataclass(frozen=True)
class MlirText:
    """A module of MLIR."""

    syntax: MlirModule
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
        """Partitions times replicas, `8 : i32` each."""
        attributes = self.syntax.attributes
        given = (attributes.get(f"mhlo.num_{each}", "").partition(" ")[0] for each in ("replicas", "partitions"))
        return max({1} | device_counts(*given))

    def opcode_counts(self) -> Mapping[str, int]:
        """Return the number of operations of each name."""
        return self.syntax.opcode_counts()

    def operation_at(self, offset: int) -> Operation | None:
        """The innermost operation around an offset."""
        operation = self.syntax.operation_at(offset)
        return None if operation is None else Operation(operation.span, frames(location_of(operation)))

    def located(self) -> Iterator[Operation]:
        """The operations with a call stack, without those that stand in no text but are implied by short forms."""
        for operation in self.syntax.walk():
            if operation.text is self.syntax.text and (stack := frames(location_of(operation))):
                yield Operation(operation.span, stack)


def location_of(operation: SyntaxOperation) -> Location:
    """Return where an operation comes from; unknown where it cannot be read, which loses nothing but the position."""
    return readable(lambda: operation.location) or UnknownLoc()


MLIR = Language(
    "mlir",
    lambda source: MlirText(parse_module(source)),
    rf"""(?P<aside>\bloc\((?:[^()"]|"[^"]*+"|\((?:[^()]|\([^()]*+\))*+\))*+\)|//.*|^\#loc.*)
    |(?P<collective>"?(?:{any_of(MLIR_OPS)})\b"?)
    |(?P<operation>"?\b(?:stablehlo|sdy|func|chlo|mhlo|mpmd|arith|shape|builtin)\.[\w.]++"?(?!\s*=)|\bcall\b|\breturn\b)
    |(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<value>%[\w\#:]+)
    |(?P<type>\btensor<[^<>]*+>)
    |(?P<keyword>\b(?:module|func|public|private|attributes)\b)
    |(?P<groups>\b(?:replica_groups|source_target_pairs|sdy\.sharding|in_shardings|out_shardings)\b)""",
    DebugInfo(
        re.compile(rb'\bloc(?=\()|\bbackend_config\ =\ (?=[{"])'),
        b"#loc",
        re.compile(rb"(?:#loc.*+\n?)++"),
    ),
)
