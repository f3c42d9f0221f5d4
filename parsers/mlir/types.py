"""The types of values: tensors, tokens, tuples, functions; types of other dialects are kept as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..grammar import Grammar, several
from .lists import nesting

MAX_DEPTH = 64
"""Types that are nested deeper than this are kept as text."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """`tensor<16x?xf32>`: a size that is not known is None; `encoding`, `#stablehlo.bounds<4>`, is kept as text."""

    dims: tuple[int | None, ...]
    element: str
    encoding: str | None = None

    def __str__(self) -> str:
        dims = "".join("?x" if dim is None else f"{dim}x" for dim in self.dims)
        return f"tensor<{dims}{self.element}{'' if self.encoding is None else f', {self.encoding}'}>"


@dataclass(frozen=True, slots=True)
class TokenType:
    """What orders operations with effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclass(frozen=True, slots=True)
class TupleType:
    """Several values as one."""

    elements: tuple[MlirType, ...]

    def __str__(self) -> str:
        return f"tuple<{_listed(self.elements)}>"


@dataclass(frozen=True, slots=True)
class FunctionType:
    """What a function takes and gives."""

    inputs: tuple[MlirType, ...]
    results: tuple[MlirType, ...]

    def __str__(self) -> str:
        match self.results:
            case (TensorType() | TokenType() | TupleType() | OtherType() as result,):
                return f"({_listed(self.inputs)}) -> {result}"
        return f"({_listed(self.inputs)}) -> ({_listed(self.results)})"


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that is not interpreted, as it is written; empty where the text does not tell the type."""

    text: str

    def __str__(self) -> str:
        return self.text


MlirType = TensorType | TokenType | TupleType | FunctionType | OtherType


_UNDERSTOOD = re.compile(r"tensor<(?!\*)|tuple<|\(")


@lru_cache(maxsize=16384)
def parse_type(text: str) -> MlirType:
    """The type that a text spells; raises ParseError when a type that should be understood is not."""
    if not _UNDERSTOOD.match(text) or nesting(text) > MAX_DEPTH:
        return _other(text)
    parsed: MlirType = _GRAMMAR.parse(text)
    return parsed


def _listed(types: tuple[MlirType, ...]) -> str:
    return ", ".join(map(str, types))


def _tensor(_: str, dims: tuple[int | None, ...] | None, element: str, encoding: str | None) -> TensorType:
    return TensorType(dims or (), element, encoding)


def _other(text: str) -> TokenType | OtherType:
    return TokenType() if text in ("!stablehlo.token", "!mhlo.token") else OtherType(text)


_GRAMMAR = Grammar(
    "mlir_types",
    {
        "start": lambda parsed: parsed,
        "tensor": _tensor,
        "tuple": lambda _, elements: TupleType(elements),
        "function": FunctionType,
        "other": _other,
        "types": several,
        "results": several,
        "DIMS": lambda text: tuple(None if dim.strip() == "?" else int(dim) for dim in text.rstrip()[:-1].split("x")),
        "NAME": str,
        "ENCODING": str.strip,
    },
)
