"""Reasons why a capture ends early: the request cannot be carried out, or the user's own code raised."""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ..protocol.bootstrap import FOLDER
from ..protocol.events import Failure, Phase, StackFrame
from ..protocol.request import UsageError
from .script_objects import variable

MAX_CHARACTERS = 20_000
"""Characters of an exception's own text."""

MAX_STORY = 100_000
"""Characters of a traceback, of which the last are kept: a cause may have a cause, thousands of times."""

MAX_FRAMES = 100

OLDEST_JAX = (0, 7, 1)

MAX_CPU_DEVICES = 2048
"""Devices for which JAX's CPU client compiles: it takes those with higher numbers for other processes'."""

HERE = FOLDER + os.sep

_FRAME = r'  File "([^"]+)", line \d+'

_JAX_NOTES = ("For simplicity, JAX has removed its internal frames", "--------------------")

_OUR_PLACE = r"\s+<string>:\d+ "
"""The line in which XLA names the program that starts a capture, among the frames of the Python that called it."""

_XLAS_TAG = r" \[xla::PythonStackTrace='.*?'\]"

HINT = "hint: "
"""The beginning of a note that says what to do about an exception."""

_HEADER = "Traceback (most recent call last):"

CELL = "# In["
"""The beginning of the line before each cell of a notebook that runs as a script."""

_CELLS_LINE = r'  File "([^"]+\.ipynb)", line (\d+)'

_PACKAGES = r"/(?:site|dist)-packages/"

_EXCEPTION = r"[\w.]+(:|$)"

_TOO_MANY = "Multiprocess computations aren't implemented on the CPU backend"

_NO_MESH = (
    r"requires a non-empty mesh in context|context mesh.*empty|when you are not under a mesh context"
    r"|is not found in mesh: \(\)"
)
"""Texts of jax._src.mesh, named_sharding, shard_map and sharding_impls."""

HINTS = {
    _NO_MESH: "--context NAME sets a mesh of the script, --mesh x=4,y=2 a mesh with these axes; "
    "or run the script that calls it: shardscope script.py:function",
    "RESOURCE_EXHAUSTED": "it does not fit on one device: shard it over more devices, or rematerialize more",
    "Unknown backend": "scripts run on fake CPU devices; --target local leaves the choice of devices to JAX",
    _TOO_MANY: f"JAX compiles for at most {MAX_CPU_DEVICES:,} CPU devices; compile for absent chips instead: "
    "--target gpu:h100:{}, or a TPU topology of that size (`shardscope targets`)",
}
"""Hints for errors, by patterns of their texts."""


def hint_of(message: str, *, is_own: bool, is_run: bool = False) -> str | None:
    """The hint for the text of an exception; most are for scripts that we run ourselves, one for functions alone."""
    count = device_count()
    found = (text for pattern, text in HINTS.items() if re.search(pattern, message))
    found = (text for text in found if (count > MAX_CPU_DEVICES if text is HINTS[_TOO_MANY] else is_own))
    found = (text for text in found if not (is_run and text is HINTS[_NO_MESH]))
    return next((text.format(count) for text in found), None)


def device_count() -> int:
    """The number of JAX's devices; 0 where it is not there, or its backend would not start, which is the error then."""
    try:
        return int(sys.modules["jax"].device_count())
    except Exception:
        return 0


def describe(error: BaseException, phase: Phase, *, is_own: bool = False) -> Failure:
    """The failure for an exception that ended the capture in `phase`, whatever its class does when it is looked at."""
    try:
        return _described(error, phase, is_own)
    except BaseException:
        said, kind = text_of(error), type(error).__name__
        message = f"{kind}: {said}"
        story = "".join((f"{_HEADER}\n", *_folded(frames_of(error)).format(), message))
        return Failure("function", message, phase, story, None, said, user_stack(error), type=kind)


def _described(error: BaseException, phase: Phase, is_own: bool) -> Failure:
    if isinstance(error, UsageError):
        return Failure("usage", error.message, phase, hint=error.hint)
    hint = None
    if isinstance(error, SystemExit):
        message = f"the script called sys.exit({'' if error.code is None else repr(error.code)})"
        if phase == "import":
            message += " while it was imported"
            hint = 'code for running the script belongs under `if __name__ == "__main__":`'
            hint += "; what follows `--` are the script's arguments" * (error.code == 2)
        elif error.code == 2:
            hint = "arguments of the script come after it: shardscope script.py:function --layers 4"
    else:
        text = _headline(text_of(error).strip())
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        if _raised_here(error):
            message = f"shardscope itself failed, please report it: {message}"
            if (jax := sys.modules.get("jax")) and jax.__version_info__ < OLDEST_JAX:
                oldest = ".".join(map(str, OLDEST_JAX))
                old = f"JAX {jax.__version__} is older than {oldest}, the oldest that can be captured: {text}"
                return Failure("usage", old, phase, hint="--python names an interpreter with a newer one")
        hint = hint_of(text_of(error), is_own=is_own, is_run=_is_in_script(error))
    notes = [note for note in notes_of(error) if note.startswith(HINT)]
    hint = notes[0].removeprefix(HINT) if notes else hint
    said, stack = text_of(error), user_stack(error)
    return Failure("function", message, phase, story(error), hint, said, stack, type=type(error).__name__)


def _is_in_script(error: BaseException) -> bool:
    """Return whether a script raised an exception, or calls the function that did."""
    calling = ((each.f_code.co_filename, each.f_code.co_name) for each in outwards(sys._getframe()))
    places = itertools.chain(calling, ((each.file, each.function) for each in user_stack(error)))
    return any(is_users(file) and function == "<module>" for file, function in places)


def _headline(text: str) -> str:
    """The first line; of the traceback that a library has made a text of, the exception."""
    first, *rest = text.splitlines() or [""]
    said = (line for line in rest if re.match(_EXCEPTION, line)) if first.endswith(_HEADER) else iter(())
    return next(said, first)


def frames_of(error: BaseException) -> traceback.StackSummary:
    """The frames of an exception's traceback, which its class may hide."""
    return traceback.extract_tb(BaseException.__traceback__.__get__(error))  # type: ignore[union-attr]


def _outside(frames: traceback.StackSummary) -> list[traceback.FrameSummary]:
    """The user's frames around a traceback without one: those of the call in whose place something else is called."""
    return [] if any(map(_is_others, frames)) else [*filter(_is_others, traceback.extract_stack())]


def _is_others(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame is neither JAX's, nor Python's, nor shardscope's."""
    return not is_internal(frame.filename) and not is_pythons_own(frame.filename)


def notes_of(error: BaseException) -> list[str]:
    """The notes of an exception, which may be anything: those that are texts."""
    try:
        return [note for note in error.__notes__ if isinstance(note, str)]
    except Exception:
        return []


def text_of(error: BaseException) -> str:
    """The beginning of an exception's own text; why there is none, where it fails to say it."""
    try:
        return str.__getitem__(str(error), slice(MAX_CHARACTERS))  # a class of its own may be anything
    except BaseException as problem:
        return f"(its __str__ raised {type(problem).__name__})"


def story(error: BaseException) -> str:
    """The traceback as Python prints it, with the frames of JAX and libraries folded, unless shardscope is to blame."""
    return _story(error)[-MAX_STORY:]


def _story(error: BaseException) -> str:
    exception = traceback.TracebackException.from_exception(error)
    for part in _chain(exception):
        part._str = getattr(part, "_str", "")[:MAX_CHARACTERS]  # type: ignore[attr-defined]
    if _raised_here(error):
        return "".join(exception.format())
    if issubclass(type(error), SyntaxError | SystemExit):  # raised by `compile`, argparse and the like
        while len(exception.stack) > 1 and not is_users(exception.stack[-1].filename):
            exception.stack.pop()
    exception.stack[:0] = _outside(exception.stack)
    has_users = any(is_users(frame.filename) for part in _chain(exception) for frame in part.stack)
    for part in _chain(exception):
        part.stack = _folded(part.stack, has_users=has_users)
        if notes := getattr(part, "__notes__", None):
            part.__notes__ = [note for note in notes if not str(note).startswith((*_JAX_NOTES, HINT))]
    text = re.sub(_CELLS_LINE, _with_cell, _without_internal_lines("".join(exception.format())))
    alone = text.removeprefix(f"{_HEADER}\n")
    if alone == text or alone.startswith(" "):
        return text
    # Without a frame of the user's it is the exception's own text, of which the failure's message is the first line.
    return alone.partition("\n")[2].strip("\n")


def _with_cell(line: re.Match[str]) -> str:
    """A line of a notebook, whose cells of code run as one script, with its cell and the line in that."""
    before = linecache.getlines(line[1])[: int(line[2])]
    heads = [number for number, text in enumerate(before, 1) if text.startswith(CELL)]
    return f"{line[0]} (cell {len(heads)}, line {len(before) - heads[-1]})" if heads else line[0]


def user_stack(error: BaseException) -> tuple[StackFrame, ...]:
    """The user's frames of the traceback, innermost first."""
    frames = frames_of(error)
    found = users_of(traceback.StackSummary([*_outside(frames), *frames]))
    # An exception may answer anything to `isinstance`.
    syntax: Any = error if issubclass(type(error), SyntaxError) else None
    if syntax is not None and isinstance(syntax.filename, str):
        found.insert(0, StackFrame(syntax.filename, "<module>", syntax.lineno or 0))
    return tuple(found)


def users_of(frames: traceback.StackSummary) -> list[StackFrame]:
    """The user's frames among those of a stack, innermost first."""
    users = [*filter(_is_others, reversed(frames))]
    return [
        StackFrame(f.filename, f.name, f.lineno or 0, f.end_lineno or 0, f.colno or 0, f.end_colno or 0)
        for f in users[:MAX_FRAMES]
    ]


def files_of_user(error: BaseException | None = None) -> tuple[str, ...]:
    """The source files of the user's that this process has imported, and those that an exception names."""
    modules = (variable(module, "__file__") for module in list(sys.modules.values()))
    files = [file for file in modules if isinstance(file, str) and file.endswith((".py", ".ipynb"))]
    if error is not None:
        files += [frame.file for frame in user_stack(error)]
    return tuple(dict.fromkeys(file for file in files if is_users(file) and os.path.isfile(file)))


def user_line(error: BaseException) -> str:
    """The innermost source line of the user's in the traceback; empty if there is none."""
    lines = [frame.line or "" for frame in frames_of(error) if not is_internal(frame.filename)]
    return lines[-1] if lines else ""


def user_frame(error: BaseException) -> tuple[FrameType | None, int]:
    """The innermost frame of the user's in the traceback, and its line."""
    found: tuple[FrameType | None, int] = (None, 0)
    trace = BaseException.__traceback__.__get__(error)  # type: ignore[union-attr]
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found


def line_being_run() -> str | None:
    """The innermost line of the user's that is being executed, as `file:line`."""
    lines = (f"{each.f_code.co_filename}:{each.f_lineno}" for each in outwards(sys._getframe()) if is_outside(each))
    return next(lines, None)


def users_call(frame: FrameType | None) -> tuple[str, int] | None:
    """The file and line of the innermost frame that is of no library, else of the innermost that is not of JAX."""
    outside = None
    for each in outwards(frame):
        place = each.f_code.co_filename, each.f_lineno
        if is_outside(each):
            if not is_library(place[0]):
                return place
            outside = outside or place
        elif place[0] == "<string>":  # of `python -c`, or of a dataclass
            outside = outside or place
    return outside


def outwards(frame: FrameType | None, most: int = sys.maxsize) -> Iterator[FrameType]:
    """A frame, and those that it was called from, up to so many."""
    while frame is not None and most > 0:
        yield frame
        frame, most = frame.f_back, most - 1


def is_outside(frame: FrameType) -> bool:
    """Return whether a frame is neither of JAX, of Python nor of shardscope: the user's, or a library's."""
    return not is_internal(frame.f_code.co_filename) and not is_pythons_own(frame.f_code.co_filename)


def is_pythons_own(file: str) -> bool:
    """Return whether a source file is of the standard library."""
    folder = os.path.dirname(os.__file__) + os.sep
    return file.startswith(folder) and not file.startswith((f"{folder}site-packages", f"{folder}dist-packages"))


def is_library(file: str) -> bool:
    """Return whether a file belongs to an installed package."""
    return re.search(_PACKAGES, file) is not None


def is_users(file: str) -> bool:
    """Return whether a source file is the user's: not one of JAX, of Python, of a package, or of shardscope."""
    return not (is_internal(file) or is_pythons_own(file) or is_library(file))


def _without_internal_lines(text: str) -> str:
    """Without internal frames that stand in an exception's own text, where XLA quotes the traceback of a callback."""
    lines: list[str] = []
    hiding = False
    for line in text.splitlines(keepends=True):
        frame = re.match(_FRAME, line)
        hiding = is_internal(frame[1]) if frame else hiding and line.startswith("    ")
        is_blank_again = not line.strip() and bool(lines) and not lines[-1].strip()
        if not hiding and not is_blank_again and not re.match(_OUR_PLACE, line):
            lines.append(re.sub(_XLAS_TAG, "", line))
    return "".join(lines)


def _raised_here(error: BaseException) -> bool:
    if type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError"):  # by a compiler that is called from here
        return False
    if any(note.startswith(_JAX_NOTES) for note in notes_of(error)):
        return False  # the frames in which it was raised are JAX's, which has taken them out
    if issubclass(type(error), SyntaxError):  # which a loader of modules raises, be it one from here
        return str(getattr(error, "filename", "")).startswith(HERE)
    frames = frames_of(error)
    return bool(frames) and frames[-1].filename.startswith(HERE)


def is_internal(file: str) -> bool:
    """Return whether a source file is part of JAX, of the import system or of shardscope: not the user's."""
    return is_part_of_jax(file) or file == "<string>"


def is_part_of_jax(file: str) -> bool:
    """Like `is_internal`, but not for what `python -c` and `exec` run: user code, and frames of dataclasses."""
    return file.startswith((HERE, "<frozen ", *_jax_folders()))


def _jax_folders() -> Iterator[str]:
    for name in ("jax", "jaxlib"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path:
            yield _folder_of(path)


@functools.cache
def _folder_of(path: str) -> str:
    return os.path.dirname(path) + os.sep


def _chain(exception: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    waiting, seen = [exception], {id(exception)}
    for part in waiting:
        yield part
        others = (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ()))
        waiting += [each for each in others if each is not None and id(each) not in seen]
        seen.update(map(id, others))


class _Folded(traceback.StackSummary):
    """A stack in which a run of internal frames, or of libraries' around the user's, prints as one line."""

    folds: Callable[[str], bool]

    def format(self, **options: Any) -> list[str]:
        lines: list[str] = []
        for is_hidden, frames in itertools.groupby(self, lambda frame: self.folds(frame.filename)):
            shown = traceback.StackSummary.from_list(frames)
            lines += _fold([each.filename for each in shown]) if is_hidden else shown.format(**options)
        return lines


def _fold(files: list[str]) -> list[str]:
    files = [file for file in files if not file.startswith((HERE, "<"))]
    names = " and ".join(dict.fromkeys(map(_package, files)))
    return [f"  … {len(files)} frame{'s' if len(files) > 1 else ''} of {names}\n"] if files else []


def _package(file: str) -> str:
    if is_internal(file) or is_pythons_own(file):
        return "JAX" if is_internal(file) else "Python"
    return re.split(_PACKAGES, file)[-1].partition("/")[0].removesuffix(".py")


def _folded(stack: traceback.StackSummary, *, has_users: bool = False) -> traceback.StackSummary:
    folded = _Folded(stack)
    folded.folds = (lambda file: not is_users(file)) if has_users else is_internal
    return folded
