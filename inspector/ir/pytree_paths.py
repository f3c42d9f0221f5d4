"""Leaves of pytrees: which argument a result is the counterpart of, as a gradient is of its parameter."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..units import grouped
from .name_scopes import keys_of_name, without_indices

_STEP = re.compile(r"\[[^\]]*\]|\.\w+")


def steps_of(path: str) -> list[str]:
    """The steps of the path of a leaf behind its root: `['w1']`, `[0]`, `.kernel`."""
    return _STEP.findall(path)


class Leaf(NamedTuple):
    """A leaf of the arguments or results: its path, as `params['w']` or `result.w`, and its type."""

    name: str
    type: Hashable

    @property
    def root(self) -> str:
        """The parameter of the function that it is in; empty where the leaf has no name."""
        return next(iter(keys_of_name(self.name)), "")

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys in that, equal for dicts, attributes and fields of a NamedTuple."""
        return keys_of_name(self.name)[1:]


def counterparts(arguments: Sequence[Leaf], outputs: Sequence[Leaf]) -> Mapping[int, tuple[int, ...]]:
    """Return the arguments that each result may be the counterpart of, by number, best first; without results of none.

    By the end of the path and the type; else, of results without keys, by their order, as of flattened trees; else, of
    a result without any path, by the type alone, if only one argument has it.
    """
    keys = [each.keys for each in arguments]
    by_type = grouped((argument.type, number) for number, argument in enumerate(arguments))
    by_end = grouped(
        ((argument.type, argument.keys[-length:]), number)
        for number, argument in enumerate(arguments)
        for length in range(1, len(argument.keys) + 1)
    )
    found: dict[int, tuple[int, ...]] = {}
    for number, output in enumerate(outputs):
        best: list[int] = []
        for start in range(len(output.keys)):
            end = output.keys[start:]
            # Indices alone count only if they are all of the argument's keys.
            is_enough = any(not key.isdecimal() for key in end)
            alike = by_end.get((output.type, end), ())
            best = [each for each in alike if is_enough or len(keys[each]) == len(end)]
            if best:
                break
        alone = by_type.get(output.type, ())
        if not best and len(alone) == 1 and not keys[alone[0]]:
            best = list(alone)
        if best:
            found[number] = tuple(sorted(best, key=lambda each: len(keys[each])))
    for number, leaf in _in_order(arguments, outputs):
        found.setdefault(number, (leaf,))
    return found


def _in_order(arguments: Sequence[Leaf], outputs: Sequence[Leaf]) -> Iterator[tuple[int, int]]:
    """Results that are the leaves of one parameter of the function, in order, in a tuple or list without keys."""
    flat = [number for number, output in enumerate(outputs) if not without_indices(output.keys) or _is_index(output)]
    types = [outputs[number].type for number in flat]
    for leaves in grouped((argument.root, number) for number, argument in enumerate(arguments)).values():
        wanted = [arguments[each].type for each in leaves]
        fits = [at for at in range(len(types) - len(wanted) + 1) if types[at : at + len(wanted)] == wanted]
        if len(wanted) > 1 and fits:
            yield from zip(flat[fits[0] : fits[0] + len(wanted)], leaves, strict=True)


def _is_index(leaf: Leaf) -> bool:
    return all(key.isdecimal() for key in leaf.keys)
