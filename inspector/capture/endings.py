"""A description of how a process ended that did not report its own end."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path

from ...parsers.record import Record
from .model import PHASES, Failure, Phase
from .protocol import bootstrap
from .protocol.workspace import COMPILER_LOG, FAULT_LOG, fatal_message

LAST_WORDS = 4000
"""Characters."""


class Ending(Record, frozen=True):
    """The end of a process.

    `status` is its exit status, or a signal's number negated; `peak_bytes` the most memory it used, if that is known;
    `damage` says what was wrong with its frames, where it was ended for that.
    """

    status: int
    peak_bytes: int | None
    stdout: bytes
    stderr: bytes
    damage: str | None = None


_UNCALLED = r"\AJAX compiled no program for |ended without a call of "
"""Messages of the worker about a script in which there is nothing to capture."""

MAX_PRINTED = 4_000
"""Characters of what such a script printed, the last ones."""


def no_python(python: str, ending: Ending) -> Failure:
    """The interpreter did not even start."""
    words = _last((ending.stderr + ending.stdout).decode("utf-8", "replace"), 500)
    message = f"{python} does not run as a Python interpreter"
    return Failure("usage", message, "start", details=words, hint="--python takes the path of one")


def old_python(python: str, version: str) -> Failure:
    """The interpreter is older than any that JAX supports."""
    return Failure("usage", f"{python} is Python {version}: too old", "start", hint="Python 3.11 and later can capture")


def exited(failure: Failure, ending: Ending) -> Failure:
    """Return the failure; of a script that ended by itself, with what it printed, such as why, or its `--help`."""
    if re.search(_UNCALLED, failure.message):
        return replace(failure, details=_last(ending.stdout.decode("utf-8", "replace"), MAX_PRINTED))
    said = _last(ending.stderr.decode("utf-8", "replace"), 500)
    story = failure.details.rstrip()
    if not said or not story.rpartition("\n")[2].startswith("SystemExit"):
        return failure
    return replace(failure, details=f"{story}\n{said}\n")


def timed_out(seconds: float, phase: Phase, ending: Ending, workspace: Path) -> Failure:
    """It was still busy when its time was up."""
    message = f"timed out after {seconds:g} s, while {PHASES[phase]}"
    words = last_words(ending, workspace).replace("Fatal Python error: Aborted", "Stack at the timeout:")
    return Failure("died", message, phase, details=words, hint="allow more with --timeout")


def died(phase: Phase, ending: Ending, workspace: Path) -> Failure:
    """It ended by itself, by a signal or with a status, and left no word."""
    hint = None
    words = last_words(ending, workspace)
    if ending.damage is not None:
        how = f"what it sent could not be read ({ending.damage})"
    elif ending.status == -signal.SIGKILL:
        used = "" if ending.peak_bytes is None else f" when it used {ending.peak_bytes / 1e9:.2g} GB of memory"
        how = f"it was killed (SIGKILL){used}"
        hint = "the system kills processes that way when memory runs out: try smaller shapes, or --no-live"
    elif fatal := fatal_message(words):
        how = f"XLA gave up: {fatal[0]} ({fatal[1]})"
    elif ending.status < 0:
        how = f"{_SIGNALS.get(-ending.status, 'a signal')} ({_name(-ending.status)})"
    else:
        how = f"the process exited with status {ending.status}"
    return Failure("died", f"the capture died while {PHASES[phase]}: {how}", phase, details=words, hint=hint)


# Lines of faulthandler that are not about the user's code.
_INTERNAL = re.compile(
    rf'^(?:  File "(?:<|{re.escape(bootstrap.FOLDER)}|.*/jax/_src/|.*/jaxlib/)|Extension modules:).*\n?', re.MULTILINE
)

_SIGNALS: dict[int, str] = {
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGABRT: "it aborted",
    signal.SIGBUS: "a bus error",
    signal.SIGFPE: "an arithmetic error",
    signal.SIGILL: "an illegal instruction",
    signal.SIGTERM: "it was terminated",
}


def last_words(ending: Ending, workspace: Path) -> str:
    """The end of what it wrote: the compiler's output, standard error, and Python's stack at the crash."""
    stack = _INTERNAL.sub("", _read(workspace / FAULT_LOG))
    texts = [_read(workspace / COMPILER_LOG), ending.stderr.decode("utf-8", "replace"), stack]
    return "\n".join(_last(text) for text in texts if text.strip())


def _last(text: str, longest: int = LAST_WORDS) -> str:
    text = text.strip()
    return text if len(text) <= longest else "…" + text[-longest:]


def _read(path: Path) -> str:
    try:
        return path.read_bytes()[-LAST_WORDS * 4 :].decode("utf-8", "replace")
    except OSError:
        return ""


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
