"""A part of an HLO text that is not as printed: read as the grammar says, or as well as it can be."""

from __future__ import annotations

from ..errors import ParseError, Problem
from ..source import Source, Span
from .reading import Header, read_module
from .sections import Section


def read_part(
    source: Source, start: int, end: int, problems: list[Problem], prologue_end: int | None = None
) -> tuple[Header | None, list[Section]]:
    """The header of the module, if it is in this part, and the computations, in the order of their headers.

    What is in none of them, and what is not closed, is added to the problems. With `prologue_end` the header of the
    module is at the start, and its computations are behind that if the header is broken.
    """
    try:
        return read_module(source.data, start, end)
    except ParseError as error:
        failed = min(start + error.problem.span.start, end)
    # Few texts need it, and it has large patterns to compile.
    from . import recovery

    start = start if prologue_end is None else prologue_end
    whole, found = recovery.header_before(source.data, start, failed), []
    if whole > start:
        try:
            found = read_module(source.data, start, whole)[1]
            start = whole
        except ParseError:
            pass
    return None, [*found, *recovery.sections(source, start, end, problems)]


def read_body(source: Source, header: int, body: Span, problems: list[Problem]) -> tuple[tuple[Span, ...], bool]:
    """The statements of a computation whose ends are known, and whether all of it is in the language."""
    try:
        (section,) = read_module(source.data, header, body.end + 1)[1]
        return section.statements, True
    except (ParseError, ValueError):
        from . import recovery

        return recovery.statements(source, body.start, body.end, problems), False
