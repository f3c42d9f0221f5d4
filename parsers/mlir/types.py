"""The types of values, and those of operands and results, of which a pretty form writes only as many as are needed.

Sources: the assembly formats in StableHLO, stablehlo/dialect/StablehloOps.td and AssemblyFormat.cpp, and in Shardy,
shardy/dialect/sdy/ir/ops.td.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ..expressions import compiled
from ..grammar import Grammar, several
from ..record import Record
from .lists import nesting

MAX_DEPTH = 64
"""Types that are nested deeper than this are kept as text."""


class TensorType(Record, frozen=True):
    """`tensor<16x?xf32>`: a size that is not known is None; `encoding`, `#stablehlo.bounds<4>`, is kept as text."""

    dims: tuple[int | None, ...]
    element: str
    encoding: str | None = None

    def __str__(self) -> str:
        dims = "".join("?x" if dim is None else f"{dim}x" for dim in self.dims)
        return f"tensor<{dims}{self.element}{'' if self.encoding is None else f', {self.encoding}'}>"


class TokenType(Record, frozen=True):
    """The type of tokens, which order operations with effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


class TupleType(Record, frozen=True):
    """Several values as one."""

    elements: tuple[MlirType, ...]

    def __str__(self) -> str:
        return f"tuple<{_listed(self.elements)}>"


class FunctionType(Record, frozen=True):
    """The types of a function's arguments and results."""

    inputs: tuple[MlirType, ...]
    results: tuple[MlirType, ...]

    def __str__(self) -> str:
        match self.results:
            case (TensorType() | TokenType() | TupleType() | OtherType() as result,):
                return f"({_listed(self.inputs)}) -> {result}"
        return f"({_listed(self.inputs)}) -> ({_listed(self.results)})"


class OtherType(Record, frozen=True):
    """A type that is not interpreted, as it is written; empty where the text does not tell the type."""

    text: str

    def __str__(self) -> str:
        return self.text


MlirType = TensorType | TokenType | TupleType | FunctionType | OtherType


_UNDERSTOOD = compiled(r"tensor<(?!\*)|tuple<|\(")


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
        "ENCODING": str.strip,
    },
)


DIALECTS = frozenset({"builtin", "chlo", "func", "mhlo", "sdy", "stablehlo"})
"""The dialects whose pretty forms are understood. `call`, `return` and `module` are written without theirs."""

ALIKE = frozenset({"arith", "math", "mpmd"})
"""Dialects in whose pretty forms one type is that of all operands and results."""

UNKNOWN = OtherType("")
Types = tuple[MlirType, ...]


def is_understood(name: str) -> bool:
    """Return whether the operation is of a dialect whose pretty forms are understood."""
    return "." not in name or name.partition(".")[0] in DIALECTS


@lru_cache(maxsize=16384)
def signature(
    name: str, operands: int, results: int, written: tuple[str, ...], written_results: tuple[str, ...] | None
) -> tuple[Types, Types]:
    """The types of as many operands and results, from what is written behind the colon and behind the arrow.

    Raises ParseError when a type cannot be read, and ValueError when there are too many or too few. What the form of an
    operation of another dialect does not tell is `UNKNOWN`.
    """
    types = tuple(map(parse_type, written))
    result_types = None if written_results is None else tuple(map(parse_type, written_results))
    found = _fitted(name, operands, results, types, result_types)
    # Results that nothing uses need not have been given names.
    fit = len(found[0]) == operands, not results or len(found[1]) == results
    if not is_understood(name):
        is_known = all(fit) and _tells(name, operands, results, types, result_types)
        return found if is_known else ((UNKNOWN,) * operands, (UNKNOWN,) * results)
    if not all(fit):
        if not written and written_results is None:
            raise ValueError("its types are missing")
        raise ValueError(f"types of {len(found[0])} operands and {len(found[1])} results for {operands} and {results}")
    return found


def _tells(name: str, operands: int, results: int, types: Types, result_types: Types | None) -> bool:
    """Return whether the types are as usual, in an operation of a dialect whose pretty forms are not understood."""
    if result_types is not None or (not results and len(types) == operands):
        return True
    return name.partition(".")[0] in ALIKE and name not in ("arith.cmpf", "arith.cmpi", "arith.select")


def _fitted(name: str, operands: int, results: int, types: Types, result_types: Types | None) -> tuple[Types, Types]:
    if result_types is not None:
        if name == "func.constant":
            return (), (FunctionType(types, result_types),)
        if name in ("call_indirect", "func.call_indirect"):
            return (FunctionType(types, result_types), *types), result_types
        # What one type says of several operands, only the dialect knows.
        return types * operands if len(types) == 1 and is_understood(name) else types, result_types
    match name.partition(".")[2], types:
        case "select", (predicate, branch):
            return (predicate, branch, branch), (branch,)
        case "tuple", (TupleType(elements) as whole,):
            return elements, (whole,)
        case "complex", (TensorType(element=element) as whole,):
            part = replace(whole, element=element.removeprefix("complex<").removesuffix(">"))
            return (part,) * operands, (whole,)
        case _, (single,):
            return (single,) * operands, (single,) * results
        case _:
            return types if operands else (), types if results else ()
