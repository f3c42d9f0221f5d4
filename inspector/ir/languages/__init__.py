"""The languages that stages are written in, one module each."""

from collections.abc import Mapping

from ..language import Language
from .hlo import HLO
from .jaxpr import JAXPR
from .mlir import MLIR

LANGUAGES: Mapping[str, Language] = {language.name: language for language in (JAXPR, MLIR, HLO)}
