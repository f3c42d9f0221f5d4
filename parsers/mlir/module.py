"""A text of MLIR: StableHLO, Shardy and whatever else is in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import chain, islice

from ..errors import ParseError, Problem, readable
from ..sharding_syntax.mesh import MeshSyntax
from ..source import Source, Span, name_set
from .function import Function
from .lists import symbol
from .operation import Operation, operation_from, operation_in, operations_in
from .patterns import HEAD, NAMED, WORD, for_bytes
from .problems import problems_in
from .references import broken_references
from .scan import starts
from .statement import FUNCTION
from .text import MlirText, nests_holding

MAX_PROBLEMS = 1000
_MODULES = ("module", "builtin.module")


class MlirModule:
    """A text of MLIR. Opening it finds its functions; everything else is read on first use.

    A text may be a part of a module, or several modules: the name and the attributes are those of the first one.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = MlirText(source)

    def __repr__(self) -> str:
        return f"<MlirModule {self.name}: {len(self.functions)} functions>"

    @cached_property
    def body(self) -> tuple[Operation, ...]:
        """The operations that are in no other; mostly the one that is the module."""
        return tuple(each for block in self.text.outline[0].blocks for each in operations_in(self.text, block))

    @cached_property
    def operation(self) -> Operation | None:
        """The operation that is the module, if there is one."""
        return next((operation for operation in self.body if operation.name in _MODULES), None)

    @property
    def name(self) -> str:
        """Its name, `jit_f`; empty if it has none."""
        return symbol(self.attributes.get("sym_name", ""))

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by name; none where they cannot be read, which is then among the problems."""
        operation = self.operation
        return (readable(lambda: operation.attributes) if operation else None) or {}

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Its functions in text order, declared ones too."""
        if self.text.functions is not None:
            return tuple(Function(Operation(self.text, found.span, found.nest)) for found in self.text.functions)
        functions = []
        waiting = list(reversed(self.body))
        while waiting:
            operation = waiting.pop()
            if operation.name == FUNCTION:
                functions.append(Function(operation))
            elif operation.name in _MODULES:
                blocks = [block for region in operation.regions for block in region.blocks]
                waiting += reversed([inner for block in blocks for inner in block.operations])
        return tuple(functions)

    def function(self, name: str) -> Function | None:
        """The function of that name, without the `@`."""
        return next((function for function in self.functions if function.name == name), None)

    def operations(self, names: str | Collection[str]) -> tuple[Operation, ...]:
        """The operations of these names, anywhere in the text, in text order. They are searched for by name."""
        found = (operation_from(self.text, start) for start in starts(self.source.data, name_set(names)))
        return tuple(operation for operation in found if operation)

    def operation_at(self, offset: int) -> Operation | None:
        """The innermost operation whose text holds the byte at that offset."""
        around = nests_holding(self.text, offset)
        innermost = Operation(self.text, around[-1].span, around[-1]) if around else None
        regions = [region.node for region in innermost.regions] if innermost else [self.text.outline[0]]
        for block in (block for region in regions for block in region.blocks):
            place = bisect_right(block.items, offset, key=lambda item: item.span.start) - 1
            span = block.items[place].span if place >= 0 else Span(0, 0)
            if span.start <= offset < span.end and (found := operation_in(self.text, span, offset)):
                return found
        return innermost

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The parts that could not be read, in text order; everything else is available."""
        found = set(problems_in(self.text))
        if not found:  # in what is damaged, something is missing anyhow
            found = set(islice(broken_references(self), MAX_PROBLEMS))
        return tuple(sorted(found, key=lambda problem: (problem.span, problem.message)))

    def walk(self) -> Iterator[Operation]:
        """All operations in text order."""
        for operation in self.body:
            yield from operation.walk()

    def opcode_counts(self) -> dict[str, int]:
        """Return the number of operations of each name."""
        return dict(_opcode_counts(self.text))

    @property
    def meshes(self) -> Mapping[str, MeshSyntax]:
        """Its meshes by name, without the `@`; one that cannot be read is among the problems."""
        return self.text.meshes[0]


def parse_module(source: Source) -> MlirModule:
    """Open a text; raises ParseError if nothing in it is MLIR."""
    module = MlirModule(source)
    if not module.functions and not module.body and module.problems:
        place = Span(0, len(source.data))
        raise ParseError(Problem("this is not MLIR", source, place, ("an operation",)))
    return module


_LINE = (
    rf"(?:\A|\n) *+(?:%[{WORD}\-:]*+ = (?!%)|(?:\t[ \t]*+)?+(?=[%\"]|{NAMED}))"
    rf'([A-Za-z_][{WORD}]*+|"[{WORD}\-]++"(?=\()|{HEAD})[^\n]*+'
)
"""A line with the name of its operation, or with all that it starts with, where a printer does not write it so."""


def _opcode_counts(text: MlirText) -> Counter[str]:
    """Return the number of operations of each name, without those of regions that are not written out.

    In a text as printers write it each operation starts a line, and one pattern passes over all lines.
    """
    data = text.source.data
    if text.functions is None or not _starts_lines_only(data):
        outermost = chain.from_iterable(operations_in(text, block) for block in text.outline[0].blocks)
        inside = chain.from_iterable(operation.walk() for operation in outermost)
        return Counter(operation.name for operation in inside if operation.text is text)
    found: Counter[str] = Counter()
    for head, count in Counter(match[1] for match in for_bytes(_LINE).finditer(data)).items():
        found[head.rpartition(b"=")[2].strip().strip(b'"').decode()] += count
    return found


def _starts_lines_only(data: bytes) -> bool:
    """Return whether operations start at the beginning of lines only, never behind a brace or a block's label."""
    label = data.find(b"^")
    while label >= 0:
        end = data.find(b"\n", label)
        if data[label:end].rstrip()[-1:] != b":":
            return False
        label = data.find(b"^", end)
    # Backwards the search takes a third of the time.
    return data.rfind(b"{ ") < 0
