"""The jaxpr as a language of stages: recorded as data, shown as JAX prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....parsers.errors import ParseError, Problem
from ....parsers.source import Source, Span
from ...capture.model import CaptureError
from ...catalog.spellings import PRIMITIVES
from ..jaxpr import read_program
from ..jaxpr_text import JaxprText, print_jaxpr, walk
from ..language import Embedded, Language, Operation, any_of


@dataclass(frozen=True)
class PrintedJaxpr:
    """A traced function."""

    syntax: JaxprText
    problems: tuple[Problem, ...] = ()
    devices: int = 1
    embedded: tuple[Embedded, ...] = ()

    @property
    def source(self) -> Source:
        """The jaxpr as it prints."""
        return self.syntax.source

    def opcode_counts(self) -> Mapping[str, int]:
        """Return the number of equations of each primitive; those of a shared jaxpr count once."""
        return Counter(equation.primitive for _, _, equation in walk(self.syntax.program))

    def operation_at(self, offset: int) -> Operation | None:
        """The innermost equation that is printed around an offset."""
        place = self.syntax.equation_at(offset)
        return None if place is None else Operation(place.span, self.syntax.stack(place.equation))

    def located(self) -> Iterator[Operation]:
        """The equations as they are printed."""
        return (Operation(place.span, self.syntax.stack(place.equation)) for place in self.syntax.equations)


def _read(source: Source) -> PrintedJaxpr:
    try:
        return PrintedJaxpr(print_jaxpr(read_program(source)))
    except CaptureError as error:
        raise ParseError(Problem(str(error), source, Span(0, 1))) from None


JAXPR = Language(
    "jaxpr",
    _read,
    rf"""(?P<groups>(?<=\])\{{[VURvur]:[^}}]*+\}}|\b(?:axes|axis_name|in_specs|out_specs|perm)(?==))
    |(?P<type>\b(?:bool|bf16|key<\w+>|[iufc]\d+\w*)\[[^\]]*+\])
    |(?P<collective>(?<==\ )(?:{any_of(PRIMITIVES)})\b)
    |(?P<operation>(?<==\ )[a-z_]\w*+)
    |(?P<keyword>\b(?:lambda|let|in)\b)
    |(?P<aside>\bjaxpr=|\bcall_jaxpr=)""",
)
