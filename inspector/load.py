"""Captures from what lies on disk: saved captures, texts of modules, and folders that compilers dumped to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from ..parsers.errors import ParseError, Problem
from ..parsers.source import Source, Span
from ..parsers.text.modules import Part, language, other_format, parts
from ..parsers.text.repair import restored
from .capture import file
from .capture.dumps import (
    MAX_WRAPPINGS,
    File,
    capture_of,
    in_archive,
    in_folder,
    in_text,
    place_among_passes,
    plain,
    read,
    stage_of,
    stage_with,
)
from .capture.model import Capture, CaptureError, Message
from .capture.packed import ZIP, Allowance, members, whole
from .units import plural


def load(path: str, module: str | None = None, python: str | None = None) -> Capture:
    """Return the capture in a path; `-` is standard input.

    `module` is the one to take where there are several, `python` the interpreter whose jaxlib prints what is no text.

    Raises:
        CaptureError: there is nothing to read at this path.
        ParseError: it holds a text that is neither HLO nor MLIR.
    """
    if path == "-":
        return load_bytes("<stdin>", whole("<stdin>", sys.stdin.buffer), module, python)
    place = Path(path)
    if place.is_dir():
        return capture_of(in_folder(place, python), module, path)
    return load_bytes(path, read(place), module, python)


def load_bytes(name: str, data: bytes, module: str | None = None, python: str | None = None) -> Capture:
    """Return the capture in the bytes of a file of that name; raises as `load` does."""
    allowance = Allowance(len(data))
    for _ in range(MAX_WRAPPINGS):
        if not data.startswith(ZIP):
            break
        files = [File(*member) for member in members(name, data, allowance)]
        if len(files) != 1 or module is not None:
            return capture_of(in_archive(name, files, python, allowance), module, name)
        name, data = f"{name}/{files[0].name}", files[0].read()
    if file.is_capture(data):
        if module is not None:
            raise CaptureError(f"{name} is a saved capture, which is of one function: leave out --module {module}")
        return file.read(name, BytesIO(data), allowance.left)
    return _of_text(Source(name, plain(name, data, python, allowance)), module)


def _of_text(source: Source, module: str | None) -> Capture:
    """A capture with what a text holds, as far as the text itself tells."""
    data, done = restored(source.data)
    source = source if data is source.data else Source(source.name, data)
    if language(data) is None:
        line = Span(0, len(data.partition(b"\n")[0]))
        found_instead = other_format(data)
        message = f"this is {found_instead or 'neither HLO nor MLIR text, nor a saved capture'}"
        raise ParseError(Problem(message, source, line, expected=("'HloModule'", "'module'")))
    found = parts(data)
    modules = in_text(source, found) if len(found) > 1 or found[0].file or module is not None else {}
    capture = capture_of(modules, module, source.name) if modules else _of_one(source, found[0].span)
    left_out = _lines_between(data, found)
    done += (f"{plural(left_out, 'line')} outside of any module left out",) if left_out else ()
    place = "" if modules else place_among_passes(source.name, data)
    done += (place,) if place else ()
    notes = tuple(Message("info", f"of {source.name}, {words}", "start") for words in done)
    return replace(capture, messages=(*notes, *capture.messages))


def _of_one(source: Source, place: Span) -> Capture:
    """A text with one module, which keeps its lines' numbers."""
    data = source.data
    if place != Span(0, len(data)):
        source = Source(source.name, b"\n" * data.count(b"\n", 0, place.start) + data[place.start : place.end])
    stage = stage_with(stage_of(source.data, source.name), source)
    return Capture(stages=(stage,), complete=True, foreign=True)


def _lines_between(data: bytes, found: Sequence[Part]) -> int:
    """Return the number of lines around modules, without empty ones and XLA's own."""
    starts, ends = [part.span.start for part in found], [part.span.end for part in found]
    between = (data[end:start].splitlines() for end, start in zip([0, *ends], [*starts, len(data)], strict=True))
    return sum(bool(line.strip()) and not line.startswith(b"*** ") for lines in between for line in lines)
