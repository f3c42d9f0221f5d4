"""Purposes of collectives in small texts, each with one thing in it that decides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from shardscope.inspector.capture.model import Value
from shardscope.inspector.communication import purposes, strategies
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import inspect

REGIONS = """%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%largest (v: f32[], w: f32[]) -> f32[] {
  %v = f32[] parameter(0)
  %w = f32[] parameter(1)
  ROOT %m = f32[] maximum(%v, %w)
}

"""
ALL = "replica_groups={{0,1,2,3}}"
SUM, LARGEST = f"{ALL}, to_apply=%sum", f"{ALL}, to_apply=%largest"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
RING, HALVES = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", "source_target_pairs={{0,1},{1,2},{2,3}}"
INSERTED = 'frontend_attributes={is_spmd_generated="true"}'
FORWARD, BACKWARD = "jit(f)/jvp(g)", "jit(f)/transpose(jvp(g))"


def named(op_name: str) -> str:
    return f'metadata={{op_name="{op_name}"}}'


def found(
    body: str, computations: str = "", weights: Sequence[str] = (), causes: Sequence[Any] | None = None
) -> dict[str, str]:
    """The strategy of each collective of an entry, by its name; the last line is the root."""
    *lines, last = [line.strip() for line in body.strip().splitlines()]
    text = "\n  ".join([*lines, f"ROOT {last}"])
    result = re.findall(r"^%[\w.]+ = (.*?) [a-z-]+\(", last)[0]
    data = f"HloModule m, num_partitions=4\n\n{REGIONS}{computations}ENTRY %main () -> {result} {{\n  {text}\n}}\n"
    capture = load_bytes("f", data.encode())
    arguments = tuple(Value(path, "f32[4]") for path in weights)
    outputs = tuple(Value(f"result{path[path.index('[') :]}", "f32[4]") for path in weights)
    capture = replace(capture, arguments=arguments, outputs=outputs)
    with pytest.MonkeyPatch.context() as patched:
        if causes is not None:
            for module in purposes, strategies:
                patched.setattr(module, "causes_of", lambda *_: tuple(causes))
        report = inspect(capture)
    assert not report.program.stages[0].problems
    return {each.name.lstrip("%"): total.strategy for total in report.communication for each in total.collectives}


def cause(effect: str, *, needed: bool = False, primitive: str = "dot_general") -> Any:
    return SimpleNamespace(effect=effect, needed=needed, primitive=primitive)


A = f"%a = f32[4,4] parameter(0), {named('x')}\n"
GATHER = f"all-gather(%v), {ALL}, dimensions={{0}}"


@pytest.mark.parametrize(
    ("between", "strategy"),
    [
        ("copy(%a)", "gathers"),
        ("transpose(%a), dimensions={1,0}", "gathers"),
        ("convert(%a)", "gathers"),
        ("negate(%a)", "other"),  # another value than the argument's
        (f"dot(%a, %a), {DOT}", "other"),
        ("sort(%a), dimensions={0}", "other"),
        ("add(%a, %a)", "other"),
        ("iota(), iota_dimension=0", "other"),  # nothing of an argument
    ],
)
@pytest.mark.parametrize("is_weight", [False, True])
def test_gathers_of_arguments_move_them_unchanged(between: str, strategy: str, is_weight: bool) -> None:
    body = f"%a = f32[4,4] parameter(0), {named('p[0]')}\n%n = f32[4,4] sine(%a), {named(BACKWARD + '/sin')}\n"
    body += f"%v = f32[4,4] {between}\n%g = f32[16,4] {GATHER}\n%t = (f32[16,4], f32[4,4]) tuple(%g, %n)"
    expected = {"gathers": "weight gathers" if is_weight else "input gathers"}.get(strategy, strategy)
    assert found(body, weights=["p[0]"] if is_weight else []) == {"g": expected}


@pytest.mark.parametrize(
    ("one", "two", "strategy"),
    [
        ("p[0]", "p[1]", "weight gathers"),
        ("p[0]", "p[0]", "weight gathers"),
        ("p[0]", "x", "input gathers"),
        ("x", "x", "input gathers"),
        ("p[0]", "", "input gathers"),  # the other one has no name
        ("", "", "input gathers"),
    ],
)
@pytest.mark.parametrize("is_differentiated", [False, True])
def test_a_gather_of_weights_moves_nothing_else(one: str, two: str, strategy: str, is_differentiated: bool) -> None:
    """Weights are those that a gradient or an update comes back for, in a program that is differentiated."""
    body = ""
    for number, name in enumerate((one, two)):
        body += f"%a{number} = f32[4] parameter({number}){f', {named(name)}' if name else ''}\n"
    body += f"%n = f32[4] sine(%a0), {named(f'{BACKWARD if is_differentiated else FORWARD}/sin')}\n"
    body += f"%g = (f32[16], f32[16]) all-gather(%a0, %a1), {ALL}, dimensions={{0}}\n"
    body += "%t = ((f32[16], f32[16]), f32[4]) tuple(%g, %n)"
    expected = strategy if is_differentiated else "input gathers"
    assert found(body, weights=["p[0]", "p[1]"]) == {"g": expected}


@pytest.mark.parametrize("second", ["%a", "%n"])
def test_a_gather_of_an_argument_and_of_something_else_is_none_of_arguments(second: str) -> None:
    body = A + "%n = f32[4,4] negate(%a)\n"
    body += f"%g = (f32[16,4], f32[16,4]) all-gather(%a, {second}), {ALL}, dimensions={{0}}\n"
    assert found(body) == {"g": "input gathers" if second == "%a" else "other"}


@pytest.mark.parametrize("mark", ["", INSERTED])
@pytest.mark.parametrize(
    "effects", ["", "reshard", "move", "move reshard", "gather", "reshard gather", "own", "sum move"]
)
@pytest.mark.parametrize(
    "line",
    [f"%c = f32[16,4] {GATHER}", f"%c = f32[4,4] all-to-all(%v), {ALL}, dimensions={{0}}"],
    ids=["all-gather", "all-to-all"],
)
def test_what_the_partitioner_inserts_to_move_values_is_resharding(line: str, effects: str, mark: str) -> None:
    """If all that it serves is a move; of what the program may have written itself nothing is said."""
    body = f"{A}%v = f32[4,4] negate(%a)\n{line}{f', {mark}' if mark else ''}"
    causes = [cause(effect, needed=True) for effect in effects.split()]
    is_moved = effects in ("reshard", "move", "move reshard", "own")
    assert found(body, causes=causes) == {"c": "resharding" if mark and is_moved else "other"}


@pytest.mark.parametrize("kind", ["all_to_all", "dot_general", "transpose", ""])
def test_an_exchange_of_all_with_all_that_the_program_wrote(kind: str) -> None:
    name = f", {named(f'jit(f)/{kind}')}" if kind else ""
    body = f"{A}%v = f32[4,4] negate(%a)\n%c = f32[4,4] all-to-all(%v), {ALL}, dimensions={{0}}{name}"
    assert found(body) == {"c": "all-to-all exchange" if kind == "all_to_all" else "other"}


@pytest.mark.parametrize(
    ("op_name", "strategy"),
    [
        ("jit(f)/slice", "resharding"),
        ("jit(f)/dynamic_slice", "resharding"),
        ("jit(f)/squeeze", "resharding"),
        ("jit(f)/split", "resharding"),
        ("jit(f)/slice;jit(f)/squeeze", "resharding"),
        ("jit(f)/slice;jit(f)/sin", "other"),
        ("jit(f)/sin", "other"),
        ("", "other"),
    ],
)
def test_a_slice_that_one_device_has_is_sent_as_a_sum(op_name: str, strategy: str) -> None:
    body = f"{A}%v = f32[4,4] negate(%a)\n%s = f32[4,4] all-reduce(%v), {SUM}"
    assert found(body + (f", {named(op_name)}" if op_name else "")) == {"s": strategy}


@pytest.mark.parametrize(
    ("line", "type"),
    [
        *(("all-reduce(%v)", type) for type in ("f32[]", "f32[1]", "f32[1,1]", "f32[4]")),
        ("reduce-scatter(%v)", "f32[4]"),
    ],
)
@pytest.mark.parametrize("region", [SUM, LARGEST])
@pytest.mark.parametrize("made", ["", "transposed", "product"])
def test_sums_of_numbers_and_of_products(line: str, region: str, type: str, made: str) -> None:
    """A sum of one number is for no layer; of products a sum is tensor parallelism, and their maximum is not."""
    step = {"": "negate(%a)", "transposed": f"negate(%a), {named(BACKWARD + '/neg')}"}.get(
        made, f"dot(%b, %a), {DOT}, {named('jit(f)/dot_general')}"
    )
    body = f"%a = {type} parameter(0)\n%b = f32[4,4] parameter(1)\n%v = {type} {step}\n"
    scattered = ", dimensions={0}" if "scatter" in line else ""
    result = type if "reduce-scatter" not in line else "f32[1]"
    expected = "other"
    if type != "f32[4]":
        expected = "scalar reductions"
    elif made == "product" and region == SUM:
        expected = "tensor parallelism"
    elif made == "transposed" and region == SUM:
        expected = "gradient sync"
    name = f", {named(BACKWARD + '/neg' if made == 'transposed' else 'jit(f)/dot_general')}" if made else ""
    assert found(f"{body}%s = {result} {line}, {region}{scattered}{name}") == {"s": expected}


ZEROS = {"broadcast(%zero), dimensions={}": True, "broadcast(%one), dimensions={}": False, "copy(%b)": False}


@pytest.mark.parametrize("base", ZEROS)
@pytest.mark.parametrize("part", ["%a", "%n"])
@pytest.mark.parametrize("after", ["copy", "negate"])
def test_parts_that_each_device_writes_into_zeros_are_gathered(base: str, part: str, after: str) -> None:
    """Of an argument that is a gather of it; of another value it is resharded. To be negated is to be computed with."""
    body = f"""{A}%b = f32[16,4] parameter(1)
        %i = s32[] parameter(2)
        %zero = f32[] constant(0)
        %one = f32[] constant(1)
        %n = f32[4,4] negate(%a)
        %z = f32[16,4] {base}
        %u = f32[16,4] dynamic-update-slice(%z, {part}, %i, %i)
        %v = f32[16,4] {after}(%u)
        %s = f32[16,4] all-reduce(%v), {SUM}"""
    is_placed = ZEROS[base] and after == "copy"
    assert found(body) == {"s": "other" if not is_placed else "input gathers" if part == "%a" else "resharding"}


@pytest.mark.parametrize(
    ("taken", "strategy"),
    [
        ("", "gradient sync"),  # an output as it is
        ("sort(%s), dimensions={0}", "other"),
        ("reduce(%s, %k), dimensions={0}, to_apply=%sum", "gradient sync"),  # of a norm's scale over all positions
        ("reduce(%s, %k), dimensions={0}, to_apply=%sum; sort(%d), dimensions={0}", "other"),
        ("reduce(%s, %k), dimensions={0}, to_apply=%sum; sort(%s), dimensions={0}", "other"),
        ("reduce(%s, %k), dimensions={0}, to_apply=%sum; negate(%d)", "gradient sync"),
    ],
)
@pytest.mark.parametrize("causes", [[], [cause("sum", needed=True)], [cause("sum")], [cause("move", needed=True)]])
def test_gradients_that_are_no_products(taken: str, strategy: str, causes: list[Any]) -> None:
    """They go to an output, as they are or reduced, or propagation says that a weight's gradient needs the sum."""
    body = "%a = f32[4,4] parameter(0)\n%k = f32[] parameter(1)\n%v = f32[4,4] sort(%a), dimensions={0}\n"
    body += f"%s = f32[4,4] all-reduce(%v), {SUM}, {named(BACKWARD + '/mul')}\n"
    last = "s"
    for name, step in zip("de", filter(None, taken.split("; ")), strict=False):
        primitive = "reduce_sum" if step.startswith("reduce") else "sort"
        result = "f32[4]" if step.startswith("reduce") or "%d" in step else "f32[4,4]"
        body += f"%{name} = {result} {step}, {named(f'{BACKWARD}/{primitive}')}\n"
        last = name if last == "s" or "%d" in step else f"{last}, %{name}"
    if "," in last:
        body += f"%t = (f32[4], f32[4,4]) tuple(%{last})\n"
    is_needed = causes == [cause("sum", needed=True)]
    assert found(body, causes=causes) == {"s": "gradient sync" if is_needed else strategy}


@pytest.mark.parametrize(
    ("value", "primitive", "strategy"),
    [
        ("reduce(%a, %k), dimensions={0}, to_apply=%sum", "reduce_sum", "reductions"),
        ("reduce(%a, %k), dimensions={0}, to_apply=%largest", "reduce_max", "reductions"),
        ("sort(%b), dimensions={0}", "sort", "other"),
        ("negate(%b)", "neg", "other"),
    ],
)
@pytest.mark.parametrize("region", [SUM, LARGEST])
@pytest.mark.parametrize("between", ["%v", "%w", "%m"])
def test_what_reductions_leave_is_reduced_over_devices(
    value: str, primitive: str, strategy: str, region: str, between: str
) -> None:
    """Also behind elementwise operations, and after another reduction over devices; not beside what is none."""
    body = f"""%a = f32[4,4] parameter(0)
        %k = f32[] parameter(1)
        %b = f32[4] parameter(2)
        %v = f32[4] {value}, {named(f"jit(f)/{primitive}")}
        %w = f32[4] sine(%v)
        %o = f32[4] sort(%b), dimensions={{0}}, {named("jit(f)/sort")}
        %m = f32[4] add(%w, %o)
        %first = f32[4] all-reduce({between}), {region}
        %n = f32[4] negate(%first)
        %second = f32[4] all-reduce(%n), {region}"""
    expected = "other" if between == "%m" else strategy
    assert found(body) == {"first": expected, "second": expected}


COMPLETING = (
    [],
    [cause("sum")],
    [cause("gather")],
    [cause("sum", primitive="argmax")],
    [cause("sum", primitive="argmax"), cause("gather", primitive="argmax")],
)


@pytest.mark.parametrize("dtype", ["f32", "s32", "pred"])
@pytest.mark.parametrize("mark", ["", f", {INSERTED}"])
@pytest.mark.parametrize("causes", COMPLETING)
def test_gathers_beside_products(dtype: str, mark: str, causes: list[Any]) -> None:
    """They complete what is reduced on each device, move indices, or belong to the sums of products."""
    body = f"""%a = f32[4,4] parameter(0)
        %d = f32[4,4] dot(%a, %a), {DOT}, {named("jit(f)/dot_general")}
        %s = f32[4,4] all-reduce(%d), {SUM}, {named("jit(f)/dot_general")}
        %i = {dtype}[4] parameter(1)
        %n = {dtype}[4] sort(%i), dimensions={{0}}
        %g = {dtype}[16] all-gather(%n), {ALL}, dimensions={{0}}{mark}
        %t = (f32[4,4], {dtype}[16]) tuple(%s, %g)"""
    is_completed = [each.effect for each in causes] == ["sum"] and causes[0].primitive == "argmax"
    moved = "resharding" if mark else "other"
    expected = "reductions" if is_completed else "tensor parallelism" if dtype == "f32" else moved
    assert found(body, causes=causes) == {"s": "tensor parallelism", "g": expected}
