"""Bounds of what branches execute: beside every choice of branches of generated programs, and with JAX's cond."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.communication.strategies import most_sent
from shardscope.inspector.execution_counts.hlo_executions import HloExecutions
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_report
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

from .complete.kept import kept

Body = list[object]
"""Statements: the bytes of a collective, `("loop", trips, body)`, `("branch", bodies)`, or `("call", 1, body)`."""


def bodies(rng: random.Random, depth: int) -> Body:
    made: Body = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("number", "loop", "branch", "call")) if depth else "number"
        if kind == "number":
            made.append(rng.randint(0, 9))
        elif kind == "branch":
            made.append(("branch", [bodies(rng, depth - 1) for _ in range(rng.randint(1, 3))]))
        else:
            made.append((kind, rng.randint(0, 4) if kind == "loop" else 1, bodies(rng, depth - 1)))
    return made


def run(body: Body, choices: dict[int, int]) -> int:
    """What one run adds up, where each conditional takes the same branch whenever it is reached."""
    total = 0
    for each in body:
        match each:
            case ("branch", branches):
                total += run(branches[choices[id(each)]], choices)
            case (_, times, inner):
                total += times * run(inner, choices)
            case size:
                total += size
    return total


def conditionals(body: Body) -> list[object]:
    found: list[object] = []
    for each in body:
        match each:
            case ("branch", branches):
                found.append(each)
                for branch in branches:
                    found += conditionals(branch)
            case (_, _, inner):
                found += conditionals(inner)
    return found


class Text:
    """The HLO of a program, and the amount of each computation."""

    def __init__(self, body: Body) -> None:
        self.amounts: dict[str, int] = {}
        self.computations: list[str] = []
        self.write(body, "main", "ENTRY ")
        self.text = "HloModule m\n\n" + "\n".join(self.computations)

    def write(self, body: Body, name: str, prefix: str = "") -> str:
        self.amounts[name] = sum(each for each in body if isinstance(each, int))
        lines = ["%p = (s32[], s32[]) parameter(0)", "%i = s32[] get-tuple-element(%p), index=0"]
        for number, each in enumerate(body):
            inner, here = f"{name}_{number}", f"%v{number} = (s32[], s32[])"
            match each:
                case ("branch", branches):
                    names = [self.write(branch, f"{inner}_{index}") for index, branch in enumerate(branches)]
                    listed = ", ".join(f"%{each}" for each in names)
                    operands = ", ".join(["%i", *["%p"] * len(names)])
                    lines.append(f"{here} conditional({operands}), branch_computations={{{listed}}}")
                case ("loop", times, looped):
                    self.loop(looped, inner, times)
                    lines.append(f"{here} while(%begin{number}), condition=%{inner}_test, body=%{inner}")
                    zero = [f"%zero{number} = s32[] constant(0)"]
                    lines[-1:-1] = [*zero, f"%begin{number} = (s32[], s32[]) tuple(%zero{number}, %i)"]
                case ("call", _, called):
                    self.write(called, inner)
                    lines.append(f"{here} call(%p), to_apply=%{inner}")
        lines.append("ROOT %r = (s32[], s32[]) tuple(%i, %i)")
        self.add(f"{prefix}%{name} (p: (s32[], s32[])) -> (s32[], s32[])", lines)
        return name

    def loop(self, body: Body, name: str, times: int) -> None:
        self.write(body, f"{name}_inside")
        step = ["%one = s32[] constant(1)", "%next = s32[] add(%i, %one)"]
        call = f"%c = (s32[], s32[]) call(%p), to_apply=%{name}_inside"
        counter = ["%p = (s32[], s32[]) parameter(0)", "%i = s32[] get-tuple-element(%p), index=0"]
        end = "ROOT %r = (s32[], s32[]) tuple(%next, %i)"
        self.add(f"%{name} (p: (s32[], s32[])) -> (s32[], s32[])", [*counter, *step, call, end])
        test = [f"%bound = s32[] constant({times})", "ROOT %less = pred[] compare(%i, %bound), direction=LT"]
        self.add(f"%{name}_test (p: (s32[], s32[])) -> pred[]", [*counter, *test])

    def add(self, head: str, lines: list[str]) -> None:
        self.computations.append(f"{head} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")


@pytest.mark.parametrize("seed", range(60))
def test_the_most_is_that_of_the_worst_choice(seed: int) -> None:
    program = bodies(random.Random(seed), 3)
    branches = conditionals(program)
    alternatives = [len(each[1]) for each in branches]  # type: ignore[index]
    if prod(alternatives) > 3000:
        pytest.skip("too many choices to try all of them")
    choices = product(*map(range, alternatives))
    worst = max(run(program, dict(zip(map(id, branches), chosen, strict=True))) for chosen in choices)
    written = Text(program)
    executions = HloExecutions(parse_module(Source("m", written.text.encode())))
    assert executions.most_of(written.amounts) == worst
    for name in written.amounts:
        found = executions.of(name)
        assert found.most is not None
        assert found.count in (None, found.most)


def test_a_loop_without_a_bound_has_no_most() -> None:
    written = Text([3, ("loop", 4, [2, ("branch", [[5], [6, 1]])])])
    module = parse_module(Source("m", written.text.replace("direction=LT", "direction=EQ").encode()))
    executions = HloExecutions(module)
    assert executions.most_of(written.amounts) is None
    assert executions.most_of({"main": 3}) == 3
    assert executions.of("main_1_inside_1_1").most is None


def test_calls_in_a_cycle_have_no_most() -> None:
    text = Text([1, ("call", 1, [2, ("call", 1, [3])])]).text.replace("to_apply=%main_1_1", "to_apply=%main_1")
    executions = HloExecutions(parse_module(Source("m", text.encode())))
    assert executions.most_of({"main_1": 2}) is None


SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

def whole(v):
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P()))

@jax.jit
def fn(v, flag):
    kept = jax.lax.cond(flag, lambda v: whole(v) @ v, lambda v: 2 * whole(v) @ v, v)
    return kept + jax.lax.fori_loop(0, 3, lambda _, v: jax.lax.cond(flag, lambda v: whole(v) @ v, jnp.sin, v), v)

def fn_inputs():
    given = jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P("x")))
    return given, jax.ShapeDtypeStruct((), "bool")
"""


def test_conditionals_of_jax(tmp_path: Path) -> None:
    """Either branch gathers 3/4 of the value once; in the loop the compiler gathers before each branch."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    *_, captured = capture(Request(f"{path}:fn", live=False))
    report = inspect(captured)
    gathers = [each for each in report.collectives if each.stage == "hlo" and each.kind == "all-gather"]
    assert {(each.executions, each.most_executions) for each in gathers} == {(None, 1), (3, 3)}
    totals = {(each.wire_bytes, each.most_bytes) for each in report.communication}
    assert totals == {(None, 192), (576, 576)}
    text = io.StringIO()
    print_report(report, Console(file=text, width=160), details=("collectives",))
    assert "at most 768 B sent per device per step" in text.getvalue()
    assert "in a branch" in text.getvalue()
    assert "in a loop" not in text.getvalue()


BRANCHES_APART = (
    SCRIPT.partition("@jax.jit")[0]
    + """
@jax.jit
def fn(v, w, flag):
    return jax.lax.cond(flag, lambda v, w: whole(v) @ v.sum(0), lambda v, w: (w @ v).sum(1), v, w)

def fn_inputs():
    shardings = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
    given = [jax.ShapeDtypeStruct((8, 8), "float32", sharding=each) for each in shardings]
    return *given, jax.ShapeDtypeStruct((), "bool")
"""
)


def test_branches_of_different_strategies(tmp_path: Path) -> None:
    """Each branch has other kinds of collectives: a step takes one of them, and the total is that of the larger one."""
    path = tmp_path / "script.py"
    path.write_text(BRANCHES_APART)
    *_, captured = capture(Request(f"{path}:fn", live=False))
    report = inspect(captured)
    branches: dict[str, int] = {}
    for each in report.collectives:
        if each.stage == "hlo":
            assert (each.executions, each.most_executions) == (None, 1)
            branches[each.computation] = branches.get(each.computation, 0) + (each.wire_bytes or 0)
    assert len(branches) == 2
    assert len(report.communication) > 1
    text = io.StringIO()
    print_report(report, Console(file=text, width=160))
    assert f"at most {max(branches.values())} B sent per device per step" in text.getvalue()


@pytest.mark.parametrize("last", ["stablehlo", "hlo"])
@pytest.mark.parametrize("name", ["div", "ring_attention.attend.tpu", "own_blocks.program"])
def test_the_most_of_a_program_without_branches_is_what_its_loops_send(name: str, last: str) -> None:
    """Each collective's bytes, as often as it runs: whether executions are known of its HLO, or of its calls alone."""
    whole = kept(name)
    stages = tuple(stage for stage in whole.stages if last == "hlo" or stage.name == last)
    report = inspect(replace(whole, stages=stages))
    sent = [each for each in report.collectives if each.stage == last]
    assert max(each.most_executions or 0 for each in sent) > 1
    assert most_sent(report.program, report.collectives) == sum(
        (each.wire_bytes or 0) * (each.most_executions or 0) for each in sent
    )
