"""The memory that a validation takes, before it begins."""

from __future__ import annotations

from ...parsers.hlo import ArrayShape, HloModule, HloType, TupleShape, parse_module
from ...parsers.source import Source
from ..capture.protocol.memory import available_bytes
from .case import Case
from .element_types import TYPES
from .errors import NotEvaluatedError

PLAIN = ("parameter", "tuple", "get-tuple-element", "bitcast", "broadcast", "reshape", "transpose", "while", "call")
"""Opcodes whose result takes no memory of its own."""


def refuse_large(case: Case) -> None:
    """Refuse a program whose values do not fit into memory.

    Raises:
        NotEvaluatedError: they do not; with the part of the size that would.
    """
    available = available_bytes()
    if available is None:
        return
    source = parse_module(Source("source", case.source.encode()))
    optimized = parse_module(Source("optimized", case.optimized.encode()))
    needed = max(needed_bytes(source), needed_bytes(optimized) * case.devices) + sum(
        each.nbytes for each in case.values
    )
    if needed > available // 2:
        part = available / 2 / needed
        raise NotEvaluatedError(
            f"evaluating it takes about {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are free: "
            f"arrays {1 / part:.1f} times smaller would fit"
        )


def needed_bytes(module: HloModule) -> int:
    """The bytes of all values that are alive at once, at most, in 64 bits each, on one device."""
    known: dict[str, int] = {}
    for computation in module.computations:  # those that are called come first
        last = {
            name: each.name for each in computation.instructions for name in each.operands if each.opcode != "constant"
        }
        ends: dict[str, list[str]] = {}
        for name, user in last.items():
            ends.setdefault(user, []).append(name)
        alive: dict[str, int] = {}
        total = most = 0
        for each in computation.instructions:
            inside = max((known.get(name, 0) for name in each.called), default=0)
            alive[each.name] = 0 if each.opcode in PLAIN else _bytes(each.type)
            total += alive[each.name]
            most = max(most, total + inside)
            for name in ends.get(each.name, ()):
                total -= alive.pop(name, 0)
        known[computation.name] = most
    entry = module.entry
    return 0 if entry is None else known.get(entry.name, 0)


def _bytes(type: HloType) -> int:
    if isinstance(type, TupleShape):
        return sum(map(_bytes, type.elements))
    if not isinstance(type, ArrayShape) or type.dtype not in TYPES:
        return 0
    size = int(TYPES[type.dtype].itemsize)
    for each in type.dims:
        size *= each
    return size
