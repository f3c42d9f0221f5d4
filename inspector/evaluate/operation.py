"""An instruction prepared for evaluation: its attributes and types, read once however often it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...parsers.hlo import HloType, Instruction, TupleShape
from .element_types import Value, array_type, numpy_type
from .errors import NotEvaluatedError

Meaning = Callable[..., Value]
"""The result of an instruction on one device, from its operands there."""

Apply = Callable[..., Value]
"""The result of a computation on scalars, by its name, on arrays: element by element."""

_INTEGERS = re.compile(r"-?\d+")


def integers(text: str | None) -> tuple[int, ...]:
    """The integers in a text."""
    return tuple(map(int, _INTEGERS.findall(text or "")))


class Operation:
    """One instruction, with the types of its operands."""

    def __init__(
        self, instruction: Instruction, opcode: str, type: HloType, operand_types: list[HloType], apply: Apply,
        simple: Callable[[str], str | None],
    ) -> None:  # fmt: skip
        self.instruction = instruction
        self.opcode = opcode
        self.type = type
        self.operand_types = operand_types
        self.apply = apply
        self.simple = simple
        """The opcode of a computation that is one instruction of two scalars; None of any other."""
        self.attributes: Mapping[str, str] = instruction.attributes

    @property
    def types(self) -> tuple[HloType, ...]:
        """The types of its results."""
        return self.type.elements if isinstance(self.type, TupleShape) else (self.type,)

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of its first result."""
        return array_type(self.types[0]).dims

    @property
    def dtype(self) -> str:
        """HLO's name of the type of its first result's elements."""
        numpy_type(self.types[0])
        return array_type(self.types[0]).dtype

    def numbers(self, key: str) -> tuple[int, ...]:
        """The integers of an attribute; none where it is absent."""
        return integers(self.attributes.get(key))

    def number(self, key: str, default: int | None = None) -> int:
        """The integer of an attribute."""
        found = self.numbers(key)
        if found:
            return found[0]
        if default is None:
            raise NotEvaluatedError(f"{self.opcode} without {key}")
        return default

    def callee(self, key: str = "to_apply") -> str:
        """The name of the computation that it calls."""
        names = self.instruction.callees.get(key)
        if not names:
            raise NotEvaluatedError(f"{self.opcode} without {key}")
        return names[0]

    def results(self, values: list[Value]) -> Value:
        """Several results as its type has them."""
        return tuple(values) if isinstance(self.type, TupleShape) else values[0]
