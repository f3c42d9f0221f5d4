"""The first operation in which programs differ that were lowered from the same function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from ..capture import file
from ..capture.model import CaptureError
from ..capture.protocol.trace import Place
from ..ir.program import Program as ReadProgram
from ..ir.stage import ParsedStage
from ..links.source_positions import frames_at
from .trace import Program

LOCATION = re.compile(r'\s*\bloc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"[^"]*"|\([^()]*\))*\))*\)')
LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", str(Path(__file__).parents[1]))
"""In the paths of files that are not the user's."""

MAX_TEXT = 160
"""Characters of an operation; constants may have millions."""


class DifferingOperation(NamedTuple):
    """An operation as its program prints it, and the user's line that it comes from."""

    text: str
    place: Place | None


def first_difference(programs: Sequence[Program]) -> tuple[DifferingOperation, ...] | None:
    """In each of these the first operation that one of the others does not have; None if all have the same."""
    stages = [_stage(program) for program in programs]
    texts = [[] if stage is None else _lines(stage) for stage in stages]
    for lines in zip_longest(*texts):
        if len({line and line[0] for line in lines}) > 1:
            width = _common(line[0] if line else "" for line in lines)
            return tuple(
                DifferingOperation("its end", None) if line is None else _operation(stage, line, own, width)
                for stage, line, own in zip(stages, lines, texts, strict=True)
            )
    return None


def _stage(program: Program) -> ParsedStage | None:
    if program.path is None:
        return None
    try:
        return ReadProgram(file.load(program.path)).stage("stablehlo")
    except CaptureError:
        return None


def _lines(stage: ParsedStage) -> list[tuple[str, int]]:
    """The lines of a text without locations, each with its offset."""
    found, offset = [], 0
    for line in stage.source.data.decode("utf-8", "replace").splitlines(keepends=True):
        if line.strip() and not line.startswith("#loc"):
            found.append((LOCATION.sub("", line).strip(), offset + len(line) - len(line.lstrip())))
        offset += len(line.encode())
    return found


def _common(lines: Iterable[str]) -> int:
    """Return the length of the common prefix."""
    least, *_, most = sorted(lines)
    return next((at for at, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most)))


def _operation(
    stage: ParsedStage | None, line: tuple[str, int], lines: Sequence[tuple[str, int]], width: int
) -> DifferingOperation:
    """A long operation is cut so that its difference from the others is seen."""
    assert stage is not None
    text, offset = line
    start = max(width - MAX_TEXT // 2, 0) if len(text) > MAX_TEXT else 0
    shown = f"{'…' if start else ''}{text[start : start + MAX_TEXT]}{'…' if len(text) > start + MAX_TEXT else ''}"
    if "stablehlo.constant" in text:  # it is of no line: where it is used
        name = re.compile(re.escape(text.partition(" = ")[0]) + r"(?![\w#])")
        offset = next((at for other, at in lines if at > offset and name.search(other)), offset)
    own = [frame for frame in frames_at(stage, offset) if not any(folder in frame.file for folder in LIBRARIES)]
    return DifferingOperation(shown, Place(own[0].file, own[0].line) if own else None)
