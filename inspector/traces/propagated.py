"""Captures of a trace's programs with what XLA propagated in them, and where it came from."""

from __future__ import annotations

import os

from ..capture import file
from ..capture.interpreter import NoJaxError, interpreter_with_jax
from ..capture.model import Capture
from ..capture.propagation import Propagated, has_mesh, is_recorded, propagated, with_propagation
from ..capture.protocol.workspace import drop_propagation, kept_propagation
from ..capture.tags import tagged
from .trace import Program, Trace


def capture_of(program: Program, python: str | None) -> Capture:
    """Return the capture of a program, with the origins of its shardings; these need an interpreter with JAX."""
    assert program.path is not None
    capture = file.load(program.path)
    lowered = capture.stage("stablehlo")
    if lowered is None or not has_mesh(lowered.source.data) or is_recorded(capture):
        return capture
    text = tagged(lowered.source.data, lowered.tags)
    try:
        interpreter = interpreter_with_jax(python)
    except NoJaxError as error:
        return with_propagation(capture, Propagated(problem=f"the origins of shardings are not known: {error}"))
    return propagated(capture, text, kept_propagation(program.path), interpreter, os.environ)


def keep_propagated(trace: Trace, python: str) -> None:
    """Write the origins into each capture that has all stages, so that it can be opened where there is no JAX."""
    for program in trace.programs:
        if program.path is not None and program.compiled.captured == "full":
            capture = capture_of(program, python)
            if capture.damage is None:
                file.save(capture, program.path)
                drop_propagation(program.path)
