"""An instruction from its opening parenthesis on: operands or literal, then attributes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..expressions import compiled
from ..grammar import unquote
from ..record import Record
from .fields import attributes, bracket_end
from .patterns import ANYWHERE, NAME, OPERANDS

CALLING = (
    "calls",
    "to_apply",
    "body",
    "condition",
    "branch_computations",
    "true_computation",
    "false_computation",
    "called_computations",
    "select",
    "scatter",
)
"""The attributes whose value names computations."""

LITERAL = (b"constant", b"parameter")
"""The opcodes with a literal in their parentheses, and not operands."""

_PARENTHESES = compiled(ANYWHERE.parentheses.encode(), re.DOTALL)
_OPERAND = compiled(rf"(?<![\w.\-])({NAME})((?:#\d{{1,9}})*+)\s*+(?=,|\Z)", re.ASCII)
_OPERANDS = compiled(OPERANDS, re.ASCII)
_NAMES = compiled(rf"[\s{{%,]*+{NAME}(?:[\s,%]++{NAME})*+[\s}}]*+", re.ASCII)
_NAME = compiled(NAME, re.ASCII)


class Operand(Record, frozen=True):
    """An operand: the instruction whose result it is, and which element of that result, if not all of it.

    `%loop#1` is element 1 of `%loop`, and `%loop#1#0` that one's element 0: dumps print it so where other texts have
    get-tuple-element instructions.

    People also write an instruction in place of an operand, `negate(f32[] constant(0))`. It is not among those of the
    computation, and the name here is the one that XLA gives to the first of its kind, `constant.anon`.
    """

    name: str
    index: tuple[int, ...] = ()


class Call(Record, frozen=True):
    """The text in the parentheses, the attributes after them as text by key, and whether nothing else follows."""

    inside: str
    operands: tuple[Operand, ...]
    attributes: Mapping[str, str]
    is_complete: bool

    def computations(self, key: str) -> tuple[str, ...]:
        """The computations that an attribute names."""
        value = self.attributes.get(key, "")
        return tuple(_NAME.findall(value)) if _NAMES.fullmatch(value) else ()


def parse_call(data: bytes, start: int, end: int, *, has_operands: bool = True) -> Call:
    """Split an instruction from its opening parenthesis to its end, as far as it is as printed."""
    parentheses = _PARENTHESES.match(data, start, end)
    close = parentheses.end() if parentheses else bracket_end(data, start, end)
    if close is None:
        return Call(data[start + 1 : end].decode("utf-8", "replace"), (), {}, False)
    found, stop = attributes(data, close, end)
    inside = data[start + 1 : close - 1].decode("utf-8", "replace")
    if not has_operands:
        return Call(inside, (), found, stop == end and parentheses is not None)
    names = _OPERAND.findall(inside)
    operands = tuple(Operand(name, tuple(map(int, index.split("#")[1:]))) for name, index in names)
    return Call(inside, operands, found, stop == end and _OPERANDS.fullmatch(inside) is not None)


def backend_config(text: str) -> Any:
    """The value of a `backend_config`: JSON, bare or in a string; the text itself where it is no JSON."""
    plain = unquote(text) if text[:1] == '"' else text
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return plain
