"""Functions, which are operations too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..errors import ParseError, readable
from ..expressions import compiled
from ..source import Span
from .lists import symbol
from .operation import Block, Operation
from .parameters import Parameter, function_parameters, generic_parameters
from .statement import FUNCTION
from .text import nests_around

_FUNCTION_NAME = compiled(rb'func\.func\s++(?:\w++\s++)?+(@(?:"[^"\n]*+"|[\w$.\-]++))')


@dataclass(frozen=True)
class Function:
    """A function: `func.func public @main(%arg0: tensor<8xf32> {…}) -> (tensor<8xf32> {…}) {`.

    One whose header cannot be read, which is then among the problems, is there without what the header says.
    """

    operation: Operation

    @property
    def span(self) -> Span:
        """All of it."""
        return self.operation.span

    @property
    def name(self) -> str:
        """Its name, without the `@`."""
        # What follows it, the signature, may be megabytes long.
        early = _FUNCTION_NAME.match(self.operation.text.source.data, self.span.start)
        return symbol(early[1].decode("utf-8", "replace") if early else self.attributes.get("sym_name", ""))

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by name."""
        return readable(lambda: self.operation.attributes) or {}

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """Its arguments; without names if it is only declared."""
        return readable(self.read_arguments) or ()

    @cached_property
    def results(self) -> tuple[Parameter, ...]:
        """Its results."""
        return readable(self.read_results) or ()

    def read_arguments(self) -> tuple[Parameter, ...]:
        """Its arguments; raises ParseError."""
        return self._read(results=False)

    def read_results(self) -> tuple[Parameter, ...]:
        """Its results; raises ParseError."""
        return self._read(results=True)

    def _read(self, *, results: bool) -> tuple[Parameter, ...]:
        operation, start = self.operation, self.span.start
        try:
            if not operation.head.is_quoted:
                return function_parameters(operation.text, start, operation.statement, results=results)
            named = self._entry.arguments if self._entry and not results else ()
            return generic_parameters(operation.text, start, operation.attributes, named, results=results)
        except ParseError as error:
            raise operation.text.placed(error, start) from None

    @property
    def body(self) -> tuple[Operation, ...]:
        """The operations in its first block; none if it is only declared."""
        return self._entry.operations if self._entry else ()

    @property
    def _entry(self) -> Block | None:
        return next((block for region in self.operation.regions for block in region.blocks), None)


def function_around(operation: Operation) -> Function | None:
    """The function in which an operation is."""
    around = nests_around(operation.text, operation.span.start)
    enclosing = (Operation(operation.text, nest.span, nest) for nest in reversed(around))
    return next((Function(each) for each in enclosing if each.name == FUNCTION), None)
