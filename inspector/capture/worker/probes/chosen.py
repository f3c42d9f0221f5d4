"""Which equations' values are recorded, and how many collectives a program has."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ....catalog.calls import CONSTRAINTS
from ....catalog.spellings import HLO_OPCODES
from ..program.jaxpr_facts import is_collective

COLLECTIVE = re.compile(rf" ({'|'.join(HLO_OPCODES)})(?:-start)?\(")


class Chosen:
    """Which equations' values are recorded: `collectives` (and sharding constraints), `all`, `none`, or their ids."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.ids = {word.strip() for word in asked.split(",")}

    def __call__(self, name: str, equation: Any, manual: bool) -> bool:
        """Whether an equation is one of them."""
        if name in self.ids:
            return True
        if self.asked == "all":
            return manual or equation.primitive.name in CONSTRAINTS
        if self.asked != "collectives":
            return False
        return is_collective(equation) if manual else equation.primitive.name in CONSTRAINTS


def census(text: str) -> dict[str, int]:
    """How many collectives of each opcode a compiled program's text has."""
    return dict(sorted(Counter(match[1] for match in COLLECTIVE.finditer(text)).items()))
