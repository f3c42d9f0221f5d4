"""Collectives of all devices in lock-step, against what each device should have by XLA's definitions."""

from __future__ import annotations

import numpy as np
import pytest
from shardscope.inspector.evaluate.errors import DeadlockError, NotEvaluatedError, OutOfTimeError
from shardscope.inspector.evaluate.interpreter import Interpreter

ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""
VALUES = [np.arange(4.0) + 10 * device for device in range(4)]


def run(body: str, *, devices: int = 4, head: str = ADD, parameter: str = "f32[4]") -> list[object]:
    text = f"HloModule m\n\n{head}\nENTRY main {{\n  p = {parameter} parameter(0)\n{body}\n}}\n"
    return Interpreter(text, devices).run([VALUES[:devices]])


def check(found: list[object], expected: list[object]) -> None:
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_all_reduce_in_groups() -> None:
    found = run("  ROOT r = f32[4] all-reduce(p), replica_groups={{0,2},{1,3}}, to_apply=add")
    pairs = [VALUES[0] + VALUES[2], VALUES[1] + VALUES[3]]
    check(found, [*pairs, *pairs])


def test_asynchronous_all_gather() -> None:
    body = """  s = (f32[4], f32[8]) all-gather-start(p), replica_groups=[2,2]<=[4], dimensions={0}
  ROOT r = f32[8] all-gather-done(s)"""
    rows = [np.concatenate(VALUES[:2]), np.concatenate(VALUES[2:])]
    check(run(body), [rows[0], rows[0], rows[1], rows[1]])


def test_reduce_scatter() -> None:
    found = run("  ROOT r = f32[1] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=add")
    whole = sum(VALUES)
    check(found, [whole[device : device + 1] for device in range(4)])


def test_all_to_all() -> None:
    found = run("  ROOT r = f32[4] all-to-all(p), replica_groups={{0,1,2,3}}, dimensions={0}")
    check(found, [np.array([VALUES[other][device] for other in range(4)]) for device in range(4)])


def test_collective_permute_gives_zeros_to_devices_without_a_source() -> None:
    found = run("  ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,2}}")
    check(found, [np.zeros(4), VALUES[0], VALUES[1], np.zeros(4)])


def test_an_asynchronous_collective_permute_of_several_operands() -> None:
    body = """  q = f32[4] negate(p)
  t = f32[4] add(p, p)
  s = (THREE, THREE) collective-permute-start(p, q, t), source_target_pairs={{0,1}}
  d = THREE collective-permute-done(s)
  ROOT r = f32[4] get-tuple-element(d), index=2"""
    body = body.replace("THREE", "(f32[4], f32[4], f32[4])")
    check(run(body), [np.zeros(4), 2 * VALUES[0], np.zeros(4), np.zeros(4)])


LOOP = """
condition {
  s = (s32[], f32[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  id = u32[] partition-id()
  limit = s32[] convert(id)
  ROOT go = pred[] compare(n, limit), direction=LT
}

body {
  s = (s32[], f32[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  y = f32[4] WHAT
  ROOT t = (s32[], f32[4]) tuple(next, y)
}
"""
WHILE = """  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, p)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1"""


def test_devices_leave_a_loop_one_after_another() -> None:
    found = run(WHILE, head=ADD + LOOP.replace("WHAT", "add(x, x)"))
    check(found, [VALUES[device] * 2**device for device in range(4)])


def test_a_collective_that_some_devices_do_not_reach_is_a_deadlock() -> None:
    head = ADD + LOOP.replace("WHAT", "all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add")
    with pytest.raises(DeadlockError, match=r"devices \[0\] do not take part") as raised:
        run(WHILE, head=head)
    assert raised.value.place == "%y"


def test_devices_stand_where_they_wait_and_others_go_on() -> None:
    pairs = "replica_groups={{0,1},{2,3}}, to_apply=add"
    later = f"later {{\n  a = f32[4] parameter(0)\n  ROOT z = f32[4] all-reduce(a), {pairs}\n}}\n"
    body = WHILE.replace("ROOT r", "l") + "\n  ROOT r = f32[4] call(l), to_apply=later"
    head = ADD + LOOP.replace("WHAT", f"all-reduce(x), {pairs}") + later
    module = Interpreter(f"HloModule m\n\n{head}\nENTRY main {{\n  p = f32[4] parameter(0)\n{body}\n}}\n", 4)
    with pytest.raises(DeadlockError):
        module.run([VALUES])
    inside, after = "all-reduce at %y", "all-reduce at %z"
    assert module.stands == {0: after, 1: inside, 2: after, 3: inside}


def test_an_unknown_instruction_is_named() -> None:
    with pytest.raises(NotEvaluatedError, match="opcode frobnicate") as raised:
        run("  ROOT r = f32[4] frobnicate(p)")
    assert raised.value.place == "%r"


def test_evaluation_stops_at_the_deadline() -> None:
    with pytest.raises(OutOfTimeError):
        Interpreter("HloModule m\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n", 4, deadline=0.0).run([VALUES])
