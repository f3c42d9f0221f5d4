"""Captures from what lies on disk: saved captures, texts of modules, and folders that compilers dumped to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..parsers.errors import ParseError, Problem
from ..parsers.source import Source, Span
from ..parsers.text.modules import Part, language, other_format, parts
from ..parsers.text.repair import restored
from .capture import file
from .capture.dumps import capture_of, in_folder, in_text, read, stage_of
from .capture.model import STAGES, Capture, Message, Stage
from .units import plural

GZIP = b"\x1f\x8b"


def load(path: str, module: str | None = None) -> Capture:
    """What a path holds; `-` is standard input. `module` is the one to take where there are several.

    Raises:
        CaptureError: there is nothing to read at this path.
        ParseError: it holds a text that is neither HLO nor MLIR.
    """
    if path == "-":
        return _of_text(Source("<stdin>", sys.stdin.buffer.read()), module)
    place = Path(path)
    if place.is_dir():
        return capture_of(in_folder(place), module, path)
    data = read(place)
    return file.load(place) if data.startswith(GZIP) else _of_text(Source(path, data), module)


def _of_text(source: Source, module: str | None) -> Capture:
    """A capture with what a text holds, as far as the text itself tells."""
    data, done = restored(source.data)
    source = Source(source.name, data) if done else source
    if language(data) is None:
        line = Span(0, max(data.find(b"\n"), 1))
        message = other_format(data) or "this is neither HLO nor MLIR text, nor a saved capture"
        raise ParseError(Problem(message, source, line, ("'HloModule'", "'module'")))
    found = parts(data)
    modules = in_text(source, found) if len(found) > 1 or found[0].file or module is not None else {}
    capture = capture_of(modules, module, source.name) if modules else _of_one(source, found[0].span)
    left_out = _lines_between(data, found)
    done += (f"{plural(left_out, 'line')} outside of any module left out",) if left_out else ()
    notes = tuple(Message("info", f"of {source.name}, {words}", "start") for words in done)
    return replace(capture, messages=(*notes, *capture.messages))


def _of_one(source: Source, place: Span) -> Capture:
    """A text with one module, which keeps its lines' numbers."""
    data = source.data
    if place != Span(0, len(data)):
        source = Source(source.name, b"\n" * data.count(b"\n", 0, place.start) + data[place.start : place.end])
    name = stage_of(source.data)
    return Capture(stages=(Stage(name, STAGES[name], source),), complete=True)


def _lines_between(data: bytes, found: Sequence[Part]) -> int:
    """How many lines there are around modules, but for empty ones and XLA's own."""
    starts, ends = [part.span.start for part in found], [part.span.end for part in found]
    between = (data[end:start].splitlines() for end, start in zip([0, *ends], [*starts, len(data)], strict=True))
    return sum(bool(line.strip()) and not line.startswith(b"*** ") for lines in between for line in lines)
