"""Modules that are no text, printed in a process with jaxlib; this one does without."""

from __future__ import annotations

import subprocess

from ...parsers.text.modules import binary_format, exported_bytecode
from .guardian import run
from .interpreter import NoJaxError, interpreter_with_jax
from .model import CaptureError, UnreadableFileError
from .protocol import bootstrap

TIMEOUT_S = 120.0
_LONGEST_REASON = 500


def text_of(name: str, data: bytes, python: str | None) -> bytes:
    """Return the text of a module that is a protocol buffer or bytecode; all other data as it is.

    `python` is the interpreter whose jaxlib prints it; None is the first one with JAX.

    Raises:
        CaptureError: jaxlib cannot read it, or there is none.
    """
    what = binary_format(data)
    if what is None:
        return data
    try:
        interpreter = interpreter_with_jax(python)
    except NoJaxError as error:
        raise UnreadableFileError(f"{name} is {what}, which jaxlib reads: {error}") from error
    try:
        done = run(bootstrap.command(interpreter, "binaries"), exported_bytecode(data) or data, TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or f"timed out after {TIMEOUT_S:.0f} s"
        raise CaptureError(f"{name} is {what}, and {interpreter} cannot print it: {reason}") from error
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = lines[-1][:_LONGEST_REASON] if lines else f"status {done.returncode}"
    raise UnreadableFileError(
        f"{name} is {what}; the jaxlib of {interpreter} cannot read it ({reason}). --python names another interpreter"
    )
