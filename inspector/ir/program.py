"""The stages of a capture, read: one place where a stage's text becomes syntax."""

from __future__ import annotations

from functools import lru_cache

from ...parsers.errors import ParseError, Problem
from ...parsers.hlo import HloModule
from ...parsers.hlo import parse_module as parse_hlo
from ...parsers.mlir import MlirModule
from ...parsers.mlir import parse_module as parse_mlir
from ...parsers.source import Span
from ..capture.errors import CaptureError
from ..capture.model import Capture, Stage
from .jaxpr import read_program
from .jaxpr_text import JaxprText, print_jaxpr

Syntax = HloModule | MlirModule | JaxprText | Problem


@lru_cache(maxsize=32)
def read(stage: Stage) -> Syntax:
    """The syntax of a stage; a Problem if it is not in its language at all. The same stage is read once."""
    try:
        match stage.dialect:
            case "hlo":
                return parse_hlo(stage.source)
            case "mlir":
                return parse_mlir(stage.source)
            case "jaxpr":
                return print_jaxpr(read_program(stage.source))
    except ParseError as error:
        return error.problem
    except CaptureError as error:
        return Problem(str(error), stage.source, Span(0, 1))


def jaxpr_of(capture: Capture) -> JaxprText | None:
    """The jaxpr of a capture; None where there is none that can be read."""
    stage = capture.stage("jaxpr")
    text = None if stage is None else read(stage)
    return text if isinstance(text, JaxprText) else None
