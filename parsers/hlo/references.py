"""Undefined references of a module: operands, computations, and devices outside of its replica groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from ..errors import Problem, readable
from ..expressions import compiled
from ..sharding_syntax.replica_groups import device_counts, fault_of, parse_replica_groups
from ..source import Span
from .patterns import NAME

if TYPE_CHECKING:
    from .computation import Computation
    from .module import HloModule

_NAME = compiled(rf"%({NAME})".encode(), re.ASCII)
_HEAD = compiled(rf"\n  (?:ROOT )?+%({NAME}) = ".encode(), re.ASCII)
_GROUPS = compiled(  # it begins with a word, for which the search is ten times as fast as for one of several letters
    rb"replica_groups=(\{(?:\{[\d, ]*+\}[, ]*+)*+\}|\[[\d,]++\]<=\[[\d,]++\](?:T\([\d,]++\))?+"
    rb"|mesh\[[^\]\n]*+\](?:, ?device_ids=\((?:[^()\n]|\([^()\n]*+\))*+\))?+,? ?\{[^}\n]*+\})"
)
MAX_UNPRINTED = 1 << 22
"""Bytes; a larger text that no compiler laid out is not looked through."""


def broken_references(module: HloModule) -> Iterator[Problem]:
    """The problems of a module whose every line can be read, each name and each list of groups once."""
    computations = module.computations
    known = {computation.name for computation in computations}
    for computation in computations:
        for name, place in _undefined(computation, known):
            yield Problem(f"there is no instruction or computation {name!r} here", module.source, place)
    yield from _uncovered(module)


def _undefined(computation: Computation, known: set[str]) -> Iterator[tuple[str, Span]]:
    """Yield names in a computation's instructions that are neither one of these nor a computation."""
    data, start, end = computation.module.source.data, computation.body_start, computation.body_end
    if computation.is_printed and data.find(b"%", start, end) >= 0:
        used = set(_NAME.findall(data, start, end)) - set(_HEAD.findall(data, start, end))
        if {name.decode("utf-8", "replace") for name in used} <= known:
            return
    elif len(data) > MAX_UNPRINTED:
        return
    missing: set[str] = set()
    own = {each.name for each in computation.instructions}
    for instruction in computation.instructions:
        operands = readable(partial(getattr, instruction, "operands")) or ()
        called = readable(partial(getattr, instruction, "called")) or ()
        for name in chain((each for each in operands if each not in own), called):
            if name not in known and name not in missing:
                missing.add(name)
                at = data.find(name.encode(), instruction.span.start, instruction.span.end)
                if at >= 0:  # what stands in the place of an operand has a name that nobody wrote
                    yield name, Span(at, at + len(name))


def _uncovered(module: HloModule) -> Iterator[Problem]:
    """Groups that name a device twice, or leave one out (XLA, xla/service/hlo_verifier.cc, CheckReplicaGroups)."""
    counts = _device_counts(module)
    seen = set()
    data = module.source.data
    for found in _GROUPS.finditer(data):
        if found[1] not in seen and data[max(found.start() - 1, 0) : found.start()] in (b",", b" "):
            seen.add(found[1])
            groups = readable(partial(parse_replica_groups, found[1].decode("utf-8", "replace")))
            wrong = None if groups is None else fault_of(groups.members, counts)
            if wrong:
                yield Problem(f"these groups {wrong}", module.source, Span(found.start(1), found.end(1)))


def _device_counts(module: HloModule) -> set[int]:
    """Return the possible total sizes of groups: replicas, partitions, or both; none if the header does not say.

    With one partition and no word of replicas, whoever runs the module says how many there are.
    """
    given = [module.attributes.get(key, "") for key in ("replica_count", "num_partitions")]
    counts = device_counts(*given)
    return counts if counts != {1} else set()
