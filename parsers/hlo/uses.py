"""Which instructions use some others, found by one scan over a computation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping

from .computation import Computation
from .instruction import Instruction
from .patterns import NAME

_OPERAND = re.compile(rf"[(,] ?%({NAME})(?=[,)#])".encode(), re.ASCII)


def uses(computation: Computation, names: Collection[str]) -> Mapping[str, tuple[Instruction, ...]]:
    """For each name of an instruction of this computation the instructions with it as an operand, in text order."""
    found: dict[str, list[Instruction]] = {name: [] for name in names}
    instructions = computation.instructions
    if not computation.is_printed:
        for instruction in instructions:
            for name in found.keys() & set(instruction.operands):
                found[name].append(instruction)
        return {name: tuple(users) for name, users in found.items()}
    wanted = {name.encode(): users for name, users in found.items()}
    if not instructions:
        return dict.fromkeys(names, ())
    starts = [instruction.span.start for instruction in instructions]
    for operand in _OPERAND.finditer(computation.module.source.data, starts[0], computation.span.end):
        users = wanted.get(operand[1])
        if users is not None:
            user = instructions[bisect_right(starts, operand.start()) - 1]
            if not users or users[-1] is not user:
                users.append(user)
    return {name: tuple(users) for name, users in found.items()}
