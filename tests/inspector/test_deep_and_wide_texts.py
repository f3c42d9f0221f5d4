"""Texts with many loops, branches and calls, beside and inside each other: no recursion, and no quadratic work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from shardscope.inspector.capture.model import STAGES, Capture, Stage
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.source import Source

from tests.capture.mutants import written
from tests.parsers.damage import calls

pytestmark = pytest.mark.once

TYPE = "tensor<8xf32>"
SUM = f"""\
"stablehlo.all_reduce"(%s) <{{replica_groups = dense<[[0,1]]> : tensor<1x2xi64>}}> ({{
  ^bb0(%%l: tensor<f32>, %%r: tensor<f32>):
    %%sum = stablehlo.add %%l, %%r : tensor<f32>
    stablehlo.return %%sum : tensor<f32>
}}) : ({TYPE}) -> {TYPE}
"""
ADD = "%add (l: f32[], r: f32[]) -> f32[] {\n  %l = f32[] parameter(0)\n  %r = f32[] parameter(1)\n"
ADD += "  ROOT %s = f32[] add(%l, %r)\n}\n\n"
ALL_REDUCE = "all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
CONSTANTS = "%i = stablehlo.constant dense<0> : tensor<i32>\n%k = stablehlo.constant dense<3> : tensor<i32>\n"


def mlir(body: str, result: str, functions: str = "") -> str:
    attributes = "mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32"
    main = f"func.func public @main(%x: {TYPE}) -> {TYPE} {{\n{body}return {result} : {TYPE}\n}}\n"
    return f"module @jit_f attributes {{{attributes}}} {{\n{main}{functions}}}\n"


def hlo(computations: str, root: str, tables: str = "") -> str:
    head = f"HloModule f, num_partitions=2\n\n{tables}{ADD}{computations}"
    return f"{head}ENTRY %main (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n{root}}}\n"


def loop(number: int, value: str, body: str, result: str) -> str:
    """A loop of three iterations, from constants that are outside."""
    types = f"tensor<i32>, {TYPE}"
    test = f"%t{number} = stablehlo.compare LT, %n{number}, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    step = f"%one{number} = stablehlo.constant dense<1> : tensor<i32>\n"
    step += f"%m{number} = stablehlo.add %n{number}, %one{number} : tensor<i32>\n"
    return (
        f"%w{number}:2 = stablehlo.while(%n{number} = %i, %v{number} = {value}) : {types}\n"
        f"cond {{\n{test}stablehlo.return %t{number} : tensor<i1>\n}} do {{\n{body}"
        f"{step}stablehlo.return %m{number}, {result} : {types}\n}}\n"
    )


def loops(count: int) -> str:
    bodies = (f"%s{number} = {SUM % f'%v{number}'}" for number in range(count))
    values = ["%x", *(f"%w{number}#1" for number in range(count))]
    return mlir(CONSTANTS + "".join(loop(n, values[n], body, f"%s{n}") for n, body in enumerate(bodies)), values[-1])


def loops_in_loops(count: int) -> str:
    body, result = f"%s = {SUM % f'%v{count - 1}'}", "%s"
    for number in reversed(range(count)):
        body = loop(number, f"%v{number - 1}" if number else "%x", body, result)
        result = f"%w{number}#1"
    return mlir(CONSTANTS + body, result)


def branches(count: int) -> str:
    each = f"{{\n%s = {SUM % '%x'}stablehlo.return %s : {TYPE}\n}}"
    return mlir(f'{CONSTANTS}%y = "stablehlo.case"(%i) ({", ".join([each] * count)}) : (tensor<i32>) -> {TYPE}\n', "%y")


def calls_in_calls(count: int) -> str:
    call = "%%0 = call @f%d(%%x) : (%s) -> %s\n"
    bodies = [*(call % (number + 1, TYPE, TYPE) for number in range(count)), f"%0 = {SUM % '%x'}"]
    head = "func.func private @f%d(%%x: %s) -> %s {\n%sreturn %%0 : %s\n}\n"
    functions = "".join(head % (number, TYPE, TYPE, body, TYPE) for number, body in enumerate(bodies))
    return mlir(call % (0, TYPE, TYPE), "%0", functions)


def calls_in_calls_of_hlo(count: int) -> str:
    bodies = [*(f"call(%p), to_apply=%f{number + 1}" for number in range(count)), ALL_REDUCE]
    head = "%%f%d (p: f32[8]) -> f32[8] {\n  %%p = f32[8]{0} parameter(0)\n  ROOT %%r = f32[8]{0} %s\n}\n\n"
    computations = "".join(head % (number, body) for number, body in reversed([*enumerate(bodies)]))
    return hlo(computations, "  ROOT %r = f32[8]{0} call(%p), to_apply=%f0\n")


def frames_in_frames(count: int) -> str:
    numbers = range(1, count + 1)
    rows = {
        "FileNames": ['1 "f.py"'],
        "FunctionNames": [f'{n} "f{n}"' for n in numbers],
        "FileLocations": [f"{n} {{file_name_id=1 function_name_id={n} line={n} column=1}}" for n in numbers],
        "StackFrames": [f"{n} {{file_location_id={n} parent_frame_id={n}}}" for n in numbers],
    }
    tables = "".join(f"{title}\n" + "".join(f"{row}\n" for row in listed) + "\n" for title, listed in rows.items())
    sums = "".join(f"  %s{n} = f32[8]{{0}} {ALL_REDUCE}, metadata={{stack_frame_id={n}}}\n" for n in numbers)
    return hlo("", f"{sums}  ROOT %r = f32[8]{{0}} copy(%s1)\n", tables)


def program(text: str) -> Capture:
    name = "hlo" if text.startswith("HloModule") else "stablehlo"
    return Capture(stages=(Stage(name, STAGES[name].dialect, Source(name, text.encode())),), complete=True)


@pytest.mark.parametrize("written_as", [loops, loops_in_loops, branches, calls_in_calls, calls_in_calls_of_hlo])
def test_work_grows_with_the_text(written_as: Callable[[int], str]) -> None:
    inspect(program(written_as(8)))  # what is read once and for all
    few, many = (calls(partial(inspect, program(written_as(count)))) for count in (40, 160))
    assert many < 5 * few


@pytest.mark.parametrize("count", [100, 256, 257, 500])
def test_a_stack_has_frames_up_to_a_limit(count: int) -> None:
    stack = inspect(program(frames_in_frames(count))).collectives[-1].source.stack
    assert [frame.line for frame in stack] == [*range(count, max(count - 256, 0), -1)]


@pytest.mark.parametrize("written_as", [loops_in_loops, calls_in_calls, calls_in_calls_of_hlo])
def test_depth_is_no_recursion(written_as: Callable[[int], str]) -> None:
    report = inspect(program(written_as(1500)))
    (found,) = report.collectives
    assert found.executions == (None if written_as is loops_in_loops else 1)


@pytest.mark.parametrize(("count", "runs"), [(1, 3), (39, 3**39), (40, None)])
def test_executions_beyond_belief_are_unknown(count: int, runs: int | None) -> None:
    (found,) = inspect(program(loops_in_loops(count))).collectives
    assert found.executions == runs


@pytest.mark.parametrize(
    "dims",
    ["9" * 18, ",".join(["9" * 18] * 30), "9" * 400, ",".join(["2"] * 2000)],
    ids=["large", "large ones", "long", "many"],
)
def test_arrays_beyond_belief(dims: str) -> None:
    text = hlo("", f"  ROOT %r = f32[8]{{0}} {ALL_REDUCE}\n").replace("[8]", f"[{dims}]")
    report = inspect(program(text))
    assert len(report.collectives) == 1
    assert len(list(written(report))) > 3
