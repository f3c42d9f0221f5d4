"""How long tests take. Of sweeps over many equal cases `make check` tries a sample, `make thorough` all of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case")

FAST = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""Options of XLA: machine code is not what is tested, and what LLVM does for it takes an eighth of the time."""


def xla_flags(devices: int) -> str:
    """XLA's options for a process of a test with so many fake devices."""
    return f"{FAST} --xla_force_host_platform_device_count={devices}"


THOROUGH = bool(os.environ.get("THOROUGH"))
"""True where nothing is left out."""


def sampled(
    cases: Iterable[object], kept: int | Collection[object], newest: int | Collection[object] = 0
) -> list[object]:
    """Parameters of a sweep: those that are `kept` are always tried, and `newest` of them with each version of JAX.

    A number means so many, evenly spread from the first on; else they are names of cases, or their first values.
    """
    every = [each if isinstance(each, ParameterSet) else pytest.param(*_values(each)) for each in cases]
    always = _chosen(every, kept)
    each_version = _chosen([every[number] for number in always], newest)
    rest = {always[number] for number in each_version}
    found: list[object] = []
    for number, case in enumerate(every):
        marks = () if number in rest else (pytest.mark.once,) if number in always else (pytest.mark.thorough,)
        found.append(pytest.param(*case.values, marks=(*case.marks, *marks), id=case.id))
    return found


def fewer(cases: Iterable[Case], count: int) -> list[Case]:
    """`count` of the cases that one test goes through, evenly spread from the first on."""
    every = list(cases)
    return every if THOROUGH else [every[number] for number in _spread(len(every), count)]


def examples(count: int, thorough: int) -> int:
    """Examples that a property is tried with."""
    return thorough if THOROUGH else count


def _values(case: object) -> Sequence[object]:
    return case if isinstance(case, tuple) else (case,)


def _chosen(every: Sequence[ParameterSet], wanted: int | Collection[object]) -> list[int]:
    if isinstance(wanted, int):
        return _spread(len(every), wanted)
    names = [case.values[0] if case.id is None else case.id for case in every]
    assert set(names) >= set(wanted), "a sample names a case that is not in the sweep"
    return [number for number, name in enumerate(names) if name in wanted]


def _spread(length: int, count: int) -> list[int]:
    return sorted({number * length // count for number in range(min(count, length))})
