"""Integers that partitions compute, as XLA computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from shardscope.inspector.dataflow.hlo import HloFlow, HloValue
from shardscope.inspector.dataflow.integers import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_EVALUATED,
    PartitionNumbers,
)
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

PARTITIONS = 16

OPERATIONS: dict[str, Callable[..., Any]] = {
    "negate(%a)": lambda a, b, c: lax.neg(a),
    "add(%a, %b)": lambda a, b, c: lax.add(a, b),
    "subtract(%a, %b)": lambda a, b, c: lax.sub(a, b),
    "multiply(%a, %b)": lambda a, b, c: lax.mul(a, b),
    "maximum(%a, %b)": lambda a, b, c: lax.max(a, b),
    "minimum(%a, %b)": lambda a, b, c: lax.min(a, b),
    "and(%a, %b)": lambda a, b, c: lax.bitwise_and(a, b),
    "or(%a, %b)": lambda a, b, c: lax.bitwise_or(a, b),
    "xor(%a, %b)": lambda a, b, c: lax.bitwise_xor(a, b),
    "divide(%a, %b)": lambda a, b, c: lax.div(a, b),
    "remainder(%a, %b)": lambda a, b, c: lax.rem(a, b),
    "shift-left(%a, %b)": lambda a, b, c: lax.shift_left(a, b),
    "shift-right-logical(%a, %b)": lambda a, b, c: lax.shift_right_logical(a, b),
    "shift-right-arithmetic(%a, %b)": lambda a, b, c: lax.shift_right_arithmetic(a, b),
    "clamp(%b, %a, %c)": lambda a, b, c: lax.clamp(b, a, c),
    "copy(%a)": lambda a, b, c: a,
}
COMPARED = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def evaluated(lines: str, partitions: int = PARTITIONS) -> dict[str, tuple[int, ...] | None]:
    """The scalar that each instruction has on each partition."""
    text = f"HloModule m, num_partitions={partitions}\n\nENTRY %main (p: f32[]) -> f32[] {{\n{lines}}}\n"
    module = parse_module(Source("f", text.encode()))
    assert module.entry is not None
    numbers = PartitionNumbers(HloFlow(module), partitions)
    return {each.name: numbers.scalar(HloValue(each)) for each in module.entry.instructions}


@pytest.mark.parametrize("dtype", ["s32", "u32", "s8"])
def test_operations(dtype: str) -> None:
    kind = np.dtype({"s": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    a = np.array([least, least, most, most, 7, 7, 7, 0, 0, 1, 100, 3, 5, most, least + 1, 6], kind)
    b = np.array([1, most, 1, 31, 0, 2, 7, 0, 3, most, 9, 33, 8, most, 7, 4], kind)
    c = np.array([3, most, 2, 32, 5, 2, 9, 0, 4, most, 100, 34, 9, most, 8, 5], kind)
    if dtype[0] == "s":
        a, b, c = (np.concatenate([each[:8], -each[8:]]) for each in (a, b, c))
    lines = "  %id = u32[] partition-id()\n"
    for name, numbers in (("a", a), ("b", b), ("c", c)):
        listed = ", ".join(map(str, numbers.tolist()))
        lines += f"  %t{name} = {dtype}[{PARTITIONS}] constant({{{listed}}})\n"
        lines += f"  %s{name} = {dtype}[1] dynamic-slice(%t{name}, %id), dynamic_slice_sizes={{1}}\n"
        lines += f"  %{name} = {dtype}[] reshape(%s{name})\n"
    lines += "".join(f"  %r{n} = {dtype}[] {call}\n" for n, call in enumerate(OPERATIONS))
    for name in COMPARED:
        lines += f"  %{name} = pred[] compare(%a, %b), direction={name}\n"
        lines += f"  %s{name} = {dtype}[] select(%{name}, %a, %c)\n"
    lines += "  %p = pred[] convert(%a)\n  %w = s8[] convert(%a)\n  %v = u8[] convert(%a)\n"
    found = evaluated(lines)
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        expected = jax.jit(lambda *each: [apply(*each) for apply in OPERATIONS.values()])(a, b, c)
    for number, (call, result) in enumerate(zip(OPERATIONS, expected, strict=True)):
        assert found[f"r{number}"] == tuple(result.tolist()), call
    for name, apply in COMPARED.items():
        which = apply(a, b)
        assert found[name] == tuple(map(int, which)), name
        assert found[f"s{name}"] == tuple(np.where(which, a, c).tolist()), name
    assert found["p"] == tuple((a != 0).astype(int).tolist())
    assert found["w"] == tuple(a.astype(np.int8).tolist())
    assert found["v"] == tuple(a.astype(np.uint8).tolist())


def test_arrays() -> None:
    """Each partition takes the third of its own three, limited by one number for all of them."""
    lines = """\
  %id = u32[] partition-id()
  %three = u32[] constant(3)
  %i = u32[] multiply(%id, %three)
  %n = s32[48] iota(), iota_dimension=0
  %t = s32[3] dynamic-slice(%n, %i), dynamic_slice_sizes={3}
  %one = s32[] constant(1)
  %ones = s32[3] broadcast(%one), dimensions={}
  %u = s32[3] add(%t, %ones)
  %low = s32[] constant(5)
  %high = s32[] constant(40)
  %w = s32[3] clamp(%low, %u, %high)
  %yes = pred[] constant(true)
  %x = s32[3] select(%yes, %w, %t)
  %two = s32[] constant(2)
  %far = s32[1] dynamic-slice(%x, %two), dynamic_slice_sizes={1}
  %last = s32[1] dynamic-slice(%x, %high), dynamic_slice_sizes={1}
  %before = s32[] negate(%two)
  %first = s32[1] dynamic-slice(%x, %before), dynamic_slice_sizes={1}
"""
    found = evaluated(lines)
    taken = np.clip(np.arange(48).reshape(PARTITIONS, 3) + 1, 5, 40)
    assert found["far"] == found["last"] == tuple(taken[:, 2].tolist())
    assert found["first"] == tuple(taken[:, 0].tolist())
    assert found["x"] is None, "it is no scalar"


@pytest.mark.parametrize(
    ("lines", "of_how_many"),
    [
        ("  %r = s32[1] iota(), iota_dimension=0\n", PARTITIONS),
        ("  %a = f32[] constant(3)\n  %r = f32[] negate(%a)\n", None),
        ("  %a = f32[] constant(3)\n  %r = s32[] convert(%a)\n", None),
        ("  %a = s32[2] constant({1, 2})\n  %r = s32[1] negate(%a)\n", None),
        ("  %a = s32[2] constant({1, 2})\n  %b = s32[] constant(1)\n  %r = s32[] add(%b, %a)\n", None),
        ("  %a = s32[2] constant({1, 2})\n  %r = s32[] copy(%a)\n", None),
        ("  %a = s32[2] constant({1, 2, 3})\n  %b = s32[] constant(0)\n  %r = s32[1] dynamic-slice(%a, %b)\n", None),
        ("  %a = s32[] constant(1)\n  %r = s32[] add(%a)\n", None),
        ("  %a = s32[] constant(1)\n  %r = pred[] compare(%a, %a)\n", None),
        ("  %a = s32[] constant(1)\n  %r = s32[] select(%a, %a)\n", None),
        ("  %r = s32[] add()\n", None),
        ("  %r = s32[] constant(a)\n", None),
        ("  %r = s32[] constant(1)\n", MAX_ELEMENTS),
        ("  %r = s32[] constant(1)\n", MAX_ELEMENTS + 1),
        ("  %a = s32[0] constant({})\n  %b = s32[] constant(0)\n  %r = s32[1] dynamic-slice(%a, %b)\n", None),
        ("  %r = s32[] parameter(0)\n", None),
        ("  %r = (s32[]) parameter(0)\n", None),
    ],
)
def test_what_is_and_what_is_not_known(lines: str, of_how_many: int | None) -> None:
    """Of one of another type, a wrong number of operands, or of elements, nothing is known."""
    found = evaluated(lines, of_how_many or PARTITIONS)["r"]
    assert (found and len(found)) == (of_how_many if of_how_many is None or of_how_many <= MAX_ELEMENTS else None)


@pytest.mark.parametrize("steps", [1, MAX_DEPTH - 1, MAX_DEPTH, 5 * MAX_DEPTH])
def test_one_instruction_behind_the_other(steps: int) -> None:
    """Python's own stack holds a few times as many."""
    lines = "  %n0 = s32[] constant(1)\n"
    lines += "".join(f"  %n{number} = s32[] negate(%n{number - 1})\n" for number in range(1, steps + 1))
    assert last(lines) == ((-1) ** steps if steps < MAX_DEPTH else None)


@pytest.mark.parametrize("leaves", [1, 8, MAX_EVALUATED // 2, MAX_EVALUATED // 2 + 1, 2 * MAX_EVALUATED])
def test_one_beside_the_other(leaves: int) -> None:
    """A sum of pairs, and of pairs of these: one sum less than there are numbers."""
    lines = "".join(f"  %n{number} = s32[] constant({number})\n" for number in range(leaves))
    waiting = [f"n{number}" for number in range(leaves)]
    while len(waiting) > 1:
        one, other, *waiting = waiting
        lines += f"  %{one}_ = s32[] add(%{one}, %{other})\n"
        waiting.append(f"{one}_")
    assert last(lines) == (sum(range(leaves)) if 2 * leaves - 1 <= MAX_EVALUATED else None)


def last(lines: str) -> int | None:
    """The scalar that the last instruction has everywhere, asked for alone."""
    text = f"HloModule m, num_partitions=2\n\nENTRY %main (p: f32[]) -> f32[] {{\n{lines}}}\n"
    module = parse_module(Source("f", text.encode()))
    assert module.entry is not None
    found = PartitionNumbers(HloFlow(module), 2).scalar(HloValue(module.entry.instructions[-1]))
    return None if found is None or found[0] != found[1] else found[0]
