"""Positions in the user's files, and call sites of helpers, which tell apart the operations of one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ...parsers.record import Record
from ...parsers.source import Frame
from ..capture.model import Failure

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
"""A file of an installed package, and that package."""

_PYTHON = os.path.dirname(os.__file__) + os.sep

Confidence = Literal["exact", "name", "shape", "none"]


class SourcePosition(Record, frozen=True):
    """Position in the user's files that something comes from; `stack` is innermost first.

    `confidence`: `exact` where the compiler recorded the position for this very operation, `name` where it was found
    through a name, `shape` where only types and neighbours agree, `none` where nothing is known (and `stack` is empty).
    """

    stack: tuple[Frame, ...] = ()
    confidence: Confidence = "none"

    @classmethod
    def exact(cls, stack: tuple[Frame, ...]) -> SourcePosition:
        """A stack that was recorded for the very operation; no position where it is empty."""
        return cls(stack, "exact" if stack else "none")

    @classmethod
    def of_line(cls, file: str, line: int) -> SourcePosition:
        """A line of a file, which no call stack led to."""
        return cls.exact((Frame(file, "", line),))

    @property
    def frame(self) -> Frame | None:
        """The innermost frame of the user's program: outside of what it has installed."""
        return own_frame(self.stack)

    @property
    def file(self) -> str | None:
        """The file of that frame."""
        return self.frame.file if self.frame else None

    @property
    def line(self) -> int | None:
        """The line of that frame, from 1."""
        return self.frame.line if self.frame else None

    @property
    def function(self) -> str | None:
        """The function of that frame."""
        return self.frame.function if self.frame else None

    @property
    def library(self) -> Frame | None:
        """The innermost frame, where that is in a library which the program calls."""
        return self.stack[0] if self.stack and self.stack[0] is not self.frame else None

    def text(self, script: str | None = None) -> str:
        """`model.py:8`, or `line 8` in `script`; empty where no line is known."""
        frame = self.frame
        if frame is None:
            return ""
        own = script is not None and _same_file(frame.file, script)
        return f"line {frame.line}" if own else file_and_line(frame.file, frame.line)

    def own_text(self, script: str | None = None) -> str:
        """`model.py:8 step`: the position and its function."""
        return "" if self.frame is None else f"{self.text(script)} {short_name(self.frame.function)}".rstrip()

    def function_text(self, script: str | None = None) -> str:
        """The same with the library's line: `model.py:8 step, via flax/nnx/nn/linear.py:434`."""
        own = self.own_text(script)
        return own if self.frame is None or self.library is None else f"{own}, via {library_text(self.library)}"


def short_name(function: str) -> str:
    """`step` of `Trainer.fit.<locals>.step.<locals>.<lambda>`: the innermost function that has a name."""
    parts = function.split(".<locals>.")
    return next((part for part in reversed(parts) if not part.startswith("<")), parts[-1])


def own_frame(stack: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame of the user's program."""
    return next(iter(own_frames(stack)), None)


def own_frames(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The frames outside of installed packages; of a program that is installed, those of the outermost one's."""
    packages = [_INSTALLED.search(frame.file) for frame in stack]
    own = packages[-1][1] if stack and packages[-1] is not None and None not in packages else None
    names = (None if package is None else package[1] for package in packages)
    return tuple(frame for frame, name in zip(stack, names, strict=True) if name == own)


def is_installed(file: str) -> bool:
    """Return whether a file belongs to an installed package, or to Python."""
    return _INSTALLED.search(file) is not None or os.path.normpath(file).startswith(_PYTHON)


def library_text(frame: Frame) -> str:
    """`flax/nnx/nn/linear.py:434`: a line of an installed package."""
    file = _INSTALLED.search(frame.file)
    path = frame.file[file.start(1) :].replace(os.sep, "/") if file is not None else os.path.basename(frame.file)
    return f"{path}:{frame.line}"


def file_and_line(file: str, line: int) -> str:
    """`model.py:8`, without the folder; the file alone where no line is known."""
    name = os.path.basename(file)
    return f"{name}:{line}" if line else name


def _same_file(one: str, other: str) -> bool:
    return os.path.basename(one) == os.path.basename(other) and (
        os.path.abspath(one) == os.path.abspath(other) or not os.path.isabs(one)
    )


ARROW = " ← "

CallSites = Mapping[SourcePosition, SourcePosition]
NO_SITES: CallSites = {}


def call_sites(positions: Iterable[SourcePosition]) -> CallSites:
    """Return, for positions on a line reached by several paths, the line where these diverge: the call of a helper.

    Stacks that lack frames of another one, as those of a checkpoint do, are no other path.
    """
    stacks: dict[tuple[str, int], dict[SourcePosition, tuple[Frame, ...]]] = {}
    for position in positions:
        if frames := own_frames(position.stack):
            stacks.setdefault((frames[0].file, frames[0].line), {})[position] = frames
    found = {}
    for group in stacks.values():
        lines = {position: tuple((frame.file, frame.line) for frame in frames) for position, frames in group.items()}
        every = set(lines.values())
        ways = {each for each in every if not any(_is_part(each, other) for other in every)}
        depth = _parting(ways)
        if depth is not None and _parting(every) is not None:
            for position, frames in group.items():
                if lines[position] in ways:
                    found[position] = SourcePosition.exact(frames[depth:])
    return found


def _parting(ways: Iterable[Sequence[object]]) -> int | None:
    """The number of frames that are the same in all, where others follow."""
    return next((n for n, at in enumerate(zip(*ways, strict=False)) if len(set(at)) > 1), None)


def _is_part(way: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether a longer way leads along all of another one, in its order."""
    rest = iter(other)
    return len(way) < len(other) and all(each in rest for each in way)


def with_call_site(sites: CallSites, position: SourcePosition, text: str, script: str | None) -> str:
    """`line 18 ← line 7 gather`; the text alone where nothing has to be told apart."""
    return called_from(sites.get(position), text, script)


def called_from(site: SourcePosition | None, text: str, script: str | None = None) -> str:
    """A text behind its call site, if it has one."""
    return ARROW.join(filter(None, (site.text(script) if site is not None else "", text)))


def place_of(failure: Failure) -> SourcePosition:
    """Return the position in the user's code at the failure."""
    frames = (Frame(f.file, f.function, f.line, f.end_line, f.column, f.end_column) for f in failure.stack)
    return SourcePosition(tuple(frames), "exact" if failure.stack else "none")


def starts_at(stack: tuple[Frame, ...], frame: Frame | None) -> bool:
    """Return whether the innermost frame, or the user's own frame, of a stack is on a line."""
    ends = (stack[0], own_frame(stack)) if stack and frame is not None else ()
    return any(each is not None and (each.file, each.line) == (frame.file, frame.line) for each in ends if frame)
