"""Dimensions of arguments, followed to the constraints on what is computed of them, by Shardy's own rules.

A rule says how dimensions of an operation's operands and result correspond:
`#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=2}>`, where a dimension of several is `ij`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from .. import modules
from .lowered import Change, Lowered, Spec

RULE = "sdy.sharding_rule"
MAX_FOLLOWED = 50
"""Operations through which a dimension is followed: the constraints that are meant are near an argument."""

_LISTED = re.compile(r"\[([^\]]*)\]")


class Followed:
    """The dimensions of a module's arguments, each followed once."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._written = set(lowered.constraints)
        self._found: dict[tuple[int, int], dict[int, int]] = {}

    def widened(self, arguments: Iterable[int], now: Spec, spec: Spec) -> list[Change]:
        """The constraints that keep dimensions of these arguments from axes that they get, with these axes."""
        lowered = self._lowered
        found: dict[int, Change] = {}
        for argument, (dim, axes) in itertools.product(arguments, enumerate(spec.dims)):
            added = [axis for axis in axes if axis not in now.dims[dim]]
            for number, place in self._constrained(argument, dim).items() if added and self._written else ():
                asked, shape = lowered.requested(number), lowered.constrained_type(number).shape
                dims = (*asked.dims[:place], (*asked.dims[place], *added), *asked.dims[place + 1 :])
                if not any(set(added) & set(each) for each in asked.dims) and lowered.fits(dims, shape):
                    found[number] = Change("constraint", number, Spec(dims, asked.open))
        return list(found.values())

    def _constrained(self, argument: int, dim: int) -> Mapping[int, int]:
        """The written constraints on what is computed of an argument, and the dimension that its dimension has become.

        Through operations that keep it, and products that do not sum over it.
        """
        lowered, key = self._lowered, (argument, dim)
        if key in self._found:
            return self._found[key]
        found = self._found[key] = {}
        todo = [(modules.body_of(modules.main_of(lowered.module)).arguments[argument], dim)]
        seen: set[int] = set()
        while todo and len(seen) < MAX_FOLLOWED:
            value, place = todo.pop(0)
            for use in value.uses:
                operation = use.owner
                number = lowered.number_of(operation.results[0]) if len(operation.results) == 1 else None
                if number is None or number in seen:
                    continue
                seen.add(number)
                if operation.name == "sdy.sharding_constraint":
                    found |= {number: place} if number in self._written else {}
                elif (after := _dim_after(self._rules.get(number, ""), use.operand_number, place)) is not None:
                    todo.append((operation.results[0], after))
        return found

    @cached_property
    def _rules(self) -> dict[int, str]:
        clone = self._lowered.changed(())
        modules.run(clone, *modules.pass_if_there("sdy-populate-op-sharding-rules"))
        operations = enumerate(modules.find(clone.operation, lambda _: True))
        return {number: str(each.attributes[RULE]) for number, each in operations if RULE in each.attributes}


def _dim_after(rule: str, operand: int, dim: int) -> int | None:
    """The dimension of a single result that one of an operand has become; None where it has not."""
    given, _, made = rule.partition("->")
    operands, results = (_LISTED.findall(each.partition("{")[0]) for each in (given, made))
    if len(results) != 1 or operand >= len(operands):
        return None
    factor, after = operands[operand].split(", ")[dim], results[0].split(", ")
    return next((number for number, each in enumerate(after) if each.startswith(factor)), None)
