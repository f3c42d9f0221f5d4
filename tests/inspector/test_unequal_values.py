"""Copies that should be equal, and derivatives that should be those of the values."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.protocol.values import Derivative, Gradients, Probe, Shard
from shardscope.inspector.report.elements import copies_differ, unequal_copies
from shardscope.inspector.report.gradients import wrong_gradients


def probe(shards: str, path: tuple[str, ...] = (), type: str = "f32[4]") -> Probe:
    """Of each device the part that it holds, and its bits: `0:2=a 0:2=b`."""
    pairs = [text.split("=") for text in shards.split()]
    held = tuple(Shard(number, (number,), bits, part) for number, (part, bits) in enumerate(pairs))
    return Probe(path, "after" if path else "output", 0, type, "float32", (4,), ("x",), held)


@pytest.mark.parametrize(
    ("shards", "outside", "inside"),
    [
        ("", False, False),
        (":=a", False, False),
        (":=a :=a", False, False),
        (":=a :=b", True, True),
        ("0:2=a 2:4=b", False, False),
        ("0:2=a 2:4=b 0:2=a 2:4=c", True, True),
        ("=a =b", True, False),  # without a part, each device in a shard_map has a value of its own
        ("=a =a", False, False),
    ],
)
def test_copies_of_one_part(shards: str, outside: bool, inside: bool) -> None:
    assert (copies_differ(probe(shards)), copies_differ(probe(shards, ("1.0",)))) == (outside, inside)
    for type in ("f32[4]{U:x}", "f32[4] unreduced"):  # of these each device holds a summand
        assert not copies_differ(probe(shards, type=type))


def test_which_copies_differ() -> None:
    probes = [probe(text) for text in (":=a :=b", ":=a :=a", ":=a :=c")]
    assert [unequal_copies(probes), unequal_copies(probes[1:2])] == [(0, 2), ()]


@pytest.mark.parametrize(
    ("slope", "difference", "spread", "factor"),
    [
        (1.0, 1.0, 0.0, ()),
        (2.0, 1.0, 0.0, (2.0,)),
        (-2.0, -1.0, 0.0, (2.0,)),
        (1.0, -1.0, 0.0, (-1.0,)),
        (1000.0, 999.0, 0.0, ()),  # a thousandth of the larger one
        (1000.0, 998.5, 0.0, (1000.0 / 998.5,)),
        (998.5, 1000.0, 0.0, (0.9985,)),
        (999.0, 1000.0, 0.0, ()),
        (3.0, 1.0, 0.2, ()),  # ten times the spread
        (3.0, 1.0, 0.199, (3.0,)),
        (1.0, 0.0, 0.0, (None,)),
        (1.0, 1e-6, 0.0, (None,)),
        (1.0, 2e-6, 0.0, (5e5,)),
        (0.0, 1.0, 0.0, (0.0,)),
        (1e-9, 0.0, 0.0, (None,)),  # smaller ones are rounding
        (0.9e-9, 0.0, 0.0, ()),
        (0.0, -0.9e-9, 0.0, ()),
        (0.0, -1e-9, 0.0, (0.0,)),
    ],
)
def test_wrong_derivatives(slope: float, difference: float, spread: float, factor: tuple[float | None, ...]) -> None:
    """With how many times the true one they are, where that is not zero."""
    each = Derivative("loss", "w", slope, difference, spread, "m.py", 7)
    found = wrong_gradients(Gradients((each,)))
    assert [wrong.derivative for wrong in found] == [each] * len(factor)
    assert [wrong.factor for wrong in found] == [value if value is None else pytest.approx(value) for value in factor]
