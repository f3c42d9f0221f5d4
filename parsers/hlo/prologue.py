"""The text before the computations of an HLO module: its name and attributes, and the tables of source positions.

HloModule jit_f, is_scheduled=true, num_partitions=8        FileLocations
FileNames                                                   1 {file_name_id=1 function_name_id=2 line=7 …}
1 "/home/me/f.py"                                           StackFrames
FunctionNames …                                             1 {file_location_id=1 parent_frame_id=1}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from ..errors import readable
from ..expressions import compiled
from ..source import Frame, Source, Span
from .fields import attributes, fields, number, number_in, plain, position
from .patterns import IN_LINE, NAME, SPACE
from .reading import Header, read_tables

MAX_FRAMES = 1 << 8
"""Frames of a stack, from the innermost one: more than a program's, and few enough for a stack of each instruction."""

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_HEADER = compiled(rf"{SPACE}HloModule\b(?:\s++%?({NAME}):?+)?+".encode())
_LATER_HEADER = rf"^[ \t]*+HloModule\s++%?({NAME}):?+".encode()
_COMPUTATION = rf"^[ \t]*+(?:ENTRY |(?:ROOT )?%?{NAME} (?:= (?:\(|[a-z]\w*+\[)|\([^\n]*+(?<=\{{)$))".encode()
_TITLES = "|".join(TABLES)
_TABLES = compiled(rf"(?:\s*+(?:{_TITLES})(?:\s++\d++ [^\n]*+)*+)*+".encode())
_ROW = rf"\d++ (?:{IN_LINE.string}|\{{{IN_LINE.but('{}/')}*+\}})"
_PRINTED_TABLES = compiled(
    rf"(?:\s*+(?:{_TITLES})[ \t\r]*+(?:\n[ \t]*+{_ROW}[ \t\r]*+(?=\n|\Z))*+)*+".encode(),
)
_MORE = compiled(rf"\s*+(?:\d++ |(?:{_TITLES})\s)".encode())
_TITLE_OR_ROW = compiled(rf"^[ \t]*+(?:({_TITLES})|(\d++) (.*))", re.MULTILINE)


@dataclass(frozen=True)
class Prologue:
    """The header of a module and its tables; `span` is empty where a text begins with a computation.

    The name is empty, too, where what stands there can be none.
    """

    source: Source
    span: Span
    name: str
    attributes: Mapping[str, str]
    tables: Span
    is_printed: bool = False
    """True if the tables are as printed."""

    @property
    def _text(self) -> bytes:
        return self.source.data[self.tables.start : self.tables.end]

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[int, str]]:
        """The rows of each table as text, by table and number."""
        if not self.is_printed and (read := readable(partial(read_tables, self._text))):
            return {title: read.get(title, {}) for title in TABLES}
        tables: dict[str, dict[int, str]] = {title: {} for title in TABLES}
        rows: dict[int, str] = {}
        for title, digits, row in _TITLE_OR_ROW.findall(self._text.decode("utf-8", "replace")):
            if title:
                rows = tables[title]
            else:
                rows[number(digits) or 0] = row.rstrip()
        return tables

    def frames(self, stack_frame_id: int) -> tuple[Frame, ...]:
        """The call stack with that number, innermost frame first; empty if the tables do not have it."""
        if stack_frame_id not in self._stacks:
            self._stacks[stack_frame_id] = self._read_stack(stack_frame_id)
        return self._stacks[stack_frame_id]

    @cached_property
    def _stacks(self) -> dict[int, tuple[Frame, ...]]:
        return {}

    def _read_stack(self, stack_frame_id: int) -> tuple[Frame, ...]:
        frames: list[Frame] = []
        seen: set[int] = set()
        while (found := self._frame(stack_frame_id)) and stack_frame_id not in seen and len(frames) < MAX_FRAMES:
            seen.add(stack_frame_id)
            frame, stack_frame_id = found
            frames.append(frame)
        return tuple(frames)

    def _frame(self, stack_frame_id: int) -> tuple[Frame, int] | None:
        """A frame, which many stacks may have, and the number of the calling one; None where the tables lack it."""
        if stack_frame_id not in self._frames:
            row = self._row("StackFrames", stack_frame_id)
            location = self._row("FileLocations", number_in(row, "file_location_id"))
            file = plain(self._rows["FileNames"].get(number_in(location, "file_name_id"), ""))
            function = plain(self._rows["FunctionNames"].get(number_in(location, "function_name_id"), ""))
            # The number of the calling frame is printed plus one: the outermost frame, whose caller is 0, has a 1.
            caller = number_in(row, "parent_frame_id") - 1
            self._frames[stack_frame_id] = (position(file, function, location), caller) if row else None
        return self._frames[stack_frame_id]

    @cached_property
    def _frames(self) -> dict[int, tuple[Frame, int] | None]:
        return {}

    def _row(self, table: str, place: int) -> Mapping[str, str]:
        return fields(self._rows[table].get(place, ""))


def read_prologue(source: Source, header: Header) -> Prologue:
    """The prologue that the grammar has read."""
    return Prologue(source, header.place, header.name, header.attributes, header.tables)


def parse_prologue(source: Source) -> Prologue:
    """The prologue of a text, as far as it can be read."""
    header = _HEADER.match(source.data) or _later_header(source.data)
    if header is None:
        return Prologue(source, Span(0, 0), "", {}, Span(0, 0), is_printed=True)
    found, end = attributes(source.data, header.end(), len(source.data))
    tables = _PRINTED_TABLES.match(source.data, end)
    is_printed = not _MORE.match(source.data, tables.end() if tables else end)
    tables = tables if is_printed else _TABLES.match(source.data, end)
    place = Span(*tables.span()) if tables else Span(end, end)
    name = (header[1] or b"").decode()
    return Prologue(source, Span(header.start(), place.end), name, found, place, is_printed)


def _later_header(data: bytes) -> re.Match[bytes] | None:
    """The header of a module, where a text has something in front of it that is no part of one."""
    # Few texts are such: the patterns are compiled for those.
    header = compiled(_LATER_HEADER, re.MULTILINE).search(data)
    computation = compiled(_COMPUTATION, re.MULTILINE)
    return None if header is None or computation.search(data, 0, header.start()) else header
