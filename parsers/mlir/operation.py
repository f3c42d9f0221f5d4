"""Operations, and the regions and blocks in them.

Each is a place in a text, and reads the text there when it is asked for something. What the text does not tell then
raises ParseError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from ..errors import ParseError, Problem
from ..sharding_syntax.replica_groups import ReplicaGroups
from ..source import Source, Span
from .annotations import Annotations
from .collectives import parse_channel, parse_groups, parse_pairs
from .lists import entries
from .locations import Location
from .parameters import Parameter, function_parameters, label, region_arguments
from .scan import span_at, spans_in
from .statement import FUNCTION, Head, Statement, read_head, read_statement, result_names
from .structure import BlockNode, Nest, RegionNode, Run, nest_at
from .text import MlirText
from .types import MlirType, TensorType

T = TypeVar("T")


@dataclass(frozen=True)
class Operation:
    """An operation, `%0 = stablehlo.add %a, %b : tensor<8xf32>`, and what is in its regions."""

    text: MlirText = field(repr=False)
    span: Span
    nest: Nest | None = field(default=None, compare=False, repr=False)

    @cached_property
    def head(self) -> Head:
        """Its results and its name."""
        return read_head(self.text.source, self.span.start)

    @property
    def name(self) -> str:
        """Its name, `stablehlo.add`, as it is written: `call` and `return` are without a dialect."""
        return self.head.name

    @property
    def results(self) -> tuple[str, ...]:
        """The names of its results; none of more than one can believe, nor their types."""
        return self.head.names

    @cached_property
    def statement(self) -> Statement:
        """Its own text, without its regions."""
        return read_statement(self.text.source, self.head, self.nest.pieces if self.nest else (self.span,))

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands, as they are written."""
        return self.statement.operands

    @property
    def operand_types(self) -> tuple[MlirType, ...]:
        """The type of each operand."""
        return self._signature[0]

    @property
    def result_types(self) -> tuple[MlirType, ...]:
        """The type of each result."""
        return self._signature[1]

    @cached_property
    def _signature(self) -> tuple[tuple[MlirType, ...], tuple[MlirType, ...]]:
        try:
            return self.statement.typed(len(result_names(self.head.results)), self.text.resolved)
        except ParseError as error:
            raise self.text.placed(error, self.span.start) from None
        except ValueError as error:
            raise ParseError(Problem(str(error), self.text.source, self.span)) from None

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by name; also those that the pretty form writes in a way of its own."""
        try:
            return self.statement.attributes
        except ParseError as error:
            raise self.text.placed(error, self.span.start) from None

    @property
    def annotations(self) -> Annotations:
        """Attributes about sharding."""
        return Annotations(self.text, self.attributes, self.span.start)

    @property
    def replica_groups(self) -> ReplicaGroups | None:
        """The groups in which a collective of StableHLO runs; a custom call has them in its configuration."""
        return self._read("replica_groups", lambda text: parse_groups(text, self.text.meshes[0].get))

    @property
    def source_target_pairs(self) -> tuple[tuple[int, int], ...] | None:
        """Senders and receivers of a `stablehlo.collective_permute`."""
        return self._read("source_target_pairs", parse_pairs)

    @property
    def channel(self) -> int | None:
        """The number of a collective's channel; with one, its groups count devices of the whole mesh."""
        return self._read("channel_handle", parse_channel)

    def _read(self, key: str, parse: Callable[[str], T]) -> T | None:
        value = self.attributes.get(key)
        if value is None and (config := self.attributes.get("backend_config", "")).startswith("{"):
            value = entries(config).get(key)
        return None if value is None else self.text.read(value, parse, self.span.start)

    @property
    def location(self) -> Location:
        """Origin of the operation."""
        return self.text.location(self.statement.location)

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """Its regions. The one that a compact reduction does not show is made up, with a text of its own.

        An operation that cannot be read has those that are written.
        """
        if self.nest is not None:
            return tuple(Region(self, number, self.text.region(node)) for number, node in enumerate(self.nest.regions))
        if self.text.source.data.find(b" applies ", self.span.start, self.span.end) < 0:
            return ()
        try:
            applied = self.statement.form.applied
            first = self.operand_types[0] if applied else None
        except ParseError:
            return ()
        if not applied or not isinstance(first, TensorType):
            return ()
        return self._compact_reduction(applied, replace(first, dims=())).regions

    def _compact_reduction(self, applied: str, element: MlirType) -> Operation:
        """A reduction that applies one operation, in generic form: with the region that the compact form stands for."""
        location = self.statement.location or ""
        dialect = applied.partition(".")[0]
        written = (
            f'"{self.name}"() ({{\n^bb0(%lhs: {element} {location}, %rhs: {element} {location}):\n'
            f"  %0 = {applied} %lhs, %rhs : {element} {location}\n"
            f"  {dialect}.return %0 : {element} {location}\n}}) : () -> ()\n"
        )
        text = MlirText(Source(f"applies {applied}", written.encode()), self.text.aliases)
        return next(operations_in(text, text.outline[0].blocks[0]))

    @property
    def parent(self) -> Operation | None:
        """The operation in whose region it is."""
        nest = self.text.parent(self.span.start)
        return None if nest is None else Operation(self.text, nest.span, nest)

    def walk(self) -> Iterator[Operation]:
        """The operation and all that is in its regions, in text order."""
        waiting = [self]
        while waiting:
            operation = waiting.pop()
            yield operation
            blocks = [block for region in operation.regions for block in region.blocks]
            waiting += reversed([inner for block in blocks for inner in block.operations])


@dataclass(frozen=True)
class Region:
    """One of an operation's regions, counted from 0."""

    operation: Operation
    number: int
    node: RegionNode = field(compare=False, repr=False)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Its blocks; the first one may be without a label."""
        first, *labelled = self.node.blocks
        nodes = labelled if labelled and not first.items else (first, *labelled)
        return tuple(Block(self, number, node) for number, node in enumerate(nodes))


@dataclass(frozen=True)
class Block:
    """One of a region's blocks, counted from 0."""

    region: Region
    number: int
    node: BlockNode = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """Its label, `^bb0`, or an empty text."""
        return self._label[0]

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Its arguments, listed in its label or by the operation."""
        return self._label[1]

    @cached_property
    def _label(self) -> tuple[str, tuple[Parameter, ...]]:
        operation = self.region.operation
        if self.node.label is not None:
            return label(operation.text, self.node.label)
        if operation.name == FUNCTION and not operation.head.is_quoted:
            return "", function_parameters(operation.text, operation.span.start, operation.statement, results=False)
        return "", region_arguments(operation.text, operation.span.start, operation.statement)

    @property
    def start(self) -> int:
        """The offset at which its operations begin; that of its region's operation where it has none."""
        items = self.node.items
        return items[0].span.start if items else self.region.operation.span.start

    def holds(self, operation: Operation) -> bool:
        """Return whether an operation of the same text is in it, at any depth."""
        items = self.node.items
        return bool(items) and items[0].span.start <= operation.span.start < items[-1].span.end

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Its operations, in order. They are made again on each access, since there may be hundreds of thousands."""
        return tuple(operations_in(self.region.operation.text, self.node))


def operations_in(text: MlirText, block: BlockNode) -> Iterator[Operation]:
    """The operations in a block."""
    for item in block.items:
        match item:
            case Nest():
                yield Operation(text, item.span, item)
            case Run(span):
                for operation in spans_in(text.source.data, span):
                    yield Operation(text, operation)


def operation_from(text: MlirText, start: int) -> Operation | None:
    """The operation that starts at an offset, if one does."""
    span = span_at(text.source.data, start)
    if span:
        return Operation(text, span)
    nest = nest_at(text.source, start)
    return Operation(text, nest.span, nest) if nest else None


def operation_in(text: MlirText, run: Span, offset: int) -> Operation | None:
    """The operation without regions, of those in a run, that holds the byte at an offset: the first one from the end.

    Operations begin on lines of their own, as printers write them, so that only the lines before the offset are read.
    """
    data, line = text.source.data, offset + 1
    while line > run.start:
        line = max(data.rfind(b"\n", run.start, line - 1) + 1, run.start)
        if span := span_at(data, line, run.end):
            return Operation(text, span) if span.start <= offset < span.end else None
    return None
