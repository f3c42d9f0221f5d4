"""A stage of a capture with its text read: the one place where text becomes syntax."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from ...parsers.errors import ParseError, Problem
from ...parsers.hlo import HloModule
from ...parsers.mlir import MlirModule
from ...parsers.source import Source
from ..capture.model import Dialect, Stage
from .jaxpr_text import JaxprText
from .language import Embedded, Module
from .languages import LANGUAGES
from .languages.hlo import HloText
from .languages.jaxpr import PrintedJaxpr
from .languages.mlir import MlirText


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
    def _read(self) -> tuple[dict[str, Module], tuple[Problem, ...]]:
        found: dict[str, Module] = {}
        problems = []
        waiting = [Embedded(self.name, self.dialect, self.source)]
        for name, language, source in waiting:
            try:
                found[name] = LANGUAGES[language].read(source)
            except ParseError as error:
                problems.append(error.problem)
            else:
                waiting += found[name].embedded
        return found, tuple(problems)

    @property
    def modules(self) -> Mapping[str, Module]:
        """Its text, under its name, and the modules that are inside of it; without those that cannot be read."""
        return self._read[0]

    @property
    def module(self) -> Module | None:
        """Its text; None if it is not in its language at all."""
        return self.modules.get(self.name)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The parts that could not be read."""
        return (*self._read[1], *(problem for module in self.modules.values() for problem in module.problems))

    @property
    def hlo(self) -> HloModule | None:
        """The module of HLO that it is, if it is one."""
        return self.module.syntax if isinstance(self.module, HloText) else None

    @property
    def mlir(self) -> MlirModule | None:
        """The module of MLIR that it is, if it is one."""
        return self.module.syntax if isinstance(self.module, MlirText) else None

    @property
    def jaxpr(self) -> JaxprText | None:
        """The jaxpr that it is, if it is one."""
        return self.module.syntax if isinstance(self.module, PrintedJaxpr) else None

    @property
    def text(self) -> Source:
        """The text as it is shown; of a jaxpr, how it prints."""
        return self.source if self.module is None else self.module.source
