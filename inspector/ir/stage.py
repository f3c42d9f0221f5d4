"""A stage of a capture with its text read: the one place where text becomes syntax."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from ...parsers.errors import ParseError, Problem
from ...parsers.hlo import HloModule
from ...parsers.hlo import parse_module as parse_hlo
from ...parsers.mlir import MlirModule
from ...parsers.mlir import parse_module as parse_mlir
from ...parsers.source import Source, Span
from ..capture.errors import CaptureError
from ..capture.model import Dialect, Stage
from .jaxpr import read_program
from .jaxpr_text import JaxprText, print_jaxpr

Syntax = HloModule | MlirModule | JaxprText | Problem


class ParsedStage:
    """A stage and all that is read of it; of a growing capture it is the same one all along."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.derived: dict[Hashable, object] = {}

    def __repr__(self) -> str:
        return f"<ParsedStage {self.name}>"

    @property
    def name(self) -> str:
        """Its name, one of `STAGES`."""
        return self.stage.name

    @property
    def dialect(self) -> Dialect:
        """The language of its text."""
        return self.stage.dialect

    @property
    def source(self) -> Source:
        """The text as it was recorded, which for a jaxpr is data."""
        return self.stage.source

    @cached_property
    def syntax(self) -> Syntax:
        """The text as syntax; a Problem if it is not in its language at all."""
        try:
            match self.dialect:
                case "hlo":
                    return parse_hlo(self.source)
                case "mlir":
                    return parse_mlir(self.source)
                case "jaxpr":
                    return print_jaxpr(read_program(self.source))
        except ParseError as error:
            return error.problem
        except CaptureError as error:
            return Problem(str(error), self.source, Span(0, 1))

    @property
    def hlo(self) -> HloModule | None:
        """The module of HLO that it is, if it is one."""
        return self.syntax if self.dialect == "hlo" and isinstance(self.syntax, HloModule) else None

    @property
    def mlir(self) -> MlirModule | None:
        """The module of MLIR that it is, if it is one."""
        return self.syntax if self.dialect == "mlir" and isinstance(self.syntax, MlirModule) else None

    @property
    def jaxpr(self) -> JaxprText | None:
        """The jaxpr that it is, if it is one."""
        return self.syntax if self.dialect == "jaxpr" and isinstance(self.syntax, JaxprText) else None

    @property
    def text(self) -> Source:
        """The text as it is shown; of a jaxpr, how it prints."""
        return self.source if self.jaxpr is None else self.jaxpr.source
