"""What holds of every cost, whatever the figures: on the samples, as if on machines of several kinds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.collectives.context import AnalysisContext, context_of
from shardscope.inspector.collectives.hlo import hlo_collectives
from shardscope.inspector.collectives.stage import collectives_in_context
from shardscope.inspector.cost.collectives import with_estimates
from shardscope.inspector.cost.function import cost_of
from shardscope.inspector.cost.places import Machine, machine_of
from shardscope.inspector.cost.schedule import Schedule
from shardscope.inspector.ir.program import Program
from shardscope.inspector.report import Collective
from shardscope.inspector.targets.chips import Figure
from shardscope.parsers.hlo import HloModule

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

from .test_collectives import nodes, torus
from .test_work import module

pytestmark = pytest.mark.once

MACHINES = {
    "v5p": torus("v5p", 2, 2, 2),
    "v5e": torus("v5e", 2, 4, 1),
    "two slices": torus("v5p", 2, 2, 1, slices=2),
    "h100": nodes("h100", 4, 2),
}

FASTER = ("link_bandwidth", "hbm_bandwidth", "flops", "flops_int8", "network_bandwidth")

KEPT = Path(__file__).parents[1] / "command" / "approved"

SLACK = 1 + 1e-9


def total(found: HloModule, collectives: list[Collective], machine: Machine) -> float:
    return cost_of(Schedule(found, collectives, machine)).total


def faster(machine: Machine, figure: str) -> Machine:
    chip = machine.chip
    known = {name: Figure(value.value * (2 if name == figure else 1), "") for name, value in chip.figures.items()}
    return replace(machine, chip=replace(chip, figures=known))


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_of_samples(sample: SampleCapture, function: str) -> None:
    program = Program(sample(function))
    for machine in MACHINES.values():
        check(program, machine)


@pytest.mark.parametrize("name", ["counted_on_chips", "target"])
def test_of_programs_for_their_target(name: str) -> None:
    """With what TPUs' compiler begins early and ends late."""
    program = Program(load(KEPT / f"{name}.capture"))
    machine = machine_of(program)
    assert machine is not None
    check(program, machine)


@pytest.mark.parametrize("place", [-1, 1 << 12, 1 << 31])
def test_places_that_no_torus_has(place: int) -> None:
    """The links of a torus are followed one by one: what a damaged file says of it must not decide how many."""
    capture = load(KEPT / "target.capture")
    assert capture.subject is not None
    first, *others = capture.subject.devices
    corner = ((1 << 12) - 1,) * len(first.coords)
    for moved in (
        replace(first, coords=(place, *first.coords[1:])),
        replace(first, core=place),
        replace(first, coords=corner),
    ):
        damaged = replace(capture, subject=replace(capture.subject, devices=(moved, *others)))
        assert machine_of(Program(damaged)) is None


@pytest.mark.parametrize(("place", "core"), [(0, 0), ((1 << 12) - 1, 0), (0, 63), (0, 64), (1 << 12, 0)])
def test_places_that_a_torus_may_have(place: int, core: int) -> None:
    capture = load(KEPT / "target.capture")
    assert capture.subject is not None
    first, *others = (replace(each, coords=(0,) * len(each.coords)) for each in capture.subject.devices)
    moved = replace(first, coords=(place, *first.coords[1:]), core=core)
    machine = machine_of(Program(replace(capture, subject=replace(capture.subject, devices=(moved, *others)))))
    assert (machine is not None) == (place < 1 << 12 and core < 64)
    assert machine is None or machine.shape == (place + 1, *(1 for _ in first.coords[1:]))


@pytest.mark.parametrize(("shape", "is_one"), [((256, 256), True), ((257, 256), False), ((4095, 17), False)])
def test_a_torus_has_chips_up_to_a_limit(shape: tuple[int, int], is_one: bool) -> None:
    """Each place may be one of a torus, and all of them together none."""
    capture = load(KEPT / "target.capture")
    assert capture.subject is not None
    first, *others = (replace(each, coords=(0,) * len(each.coords)) for each in capture.subject.devices)
    moved = replace(first, coords=(shape[0] - 1, shape[1] - 1, *first.coords[2:]))
    machine = machine_of(Program(replace(capture, subject=replace(capture.subject, devices=(moved, *others)))))
    assert (machine is not None) == is_one


def check(program: Program, machine: Machine) -> None:
    stage = program.stage("hlo")
    assert stage is not None
    assert stage.hlo is not None
    there = collectives_in_context(stage, context_of(program))
    estimated = list(with_estimates(there, machine))
    cost = cost_of(Schedule(stage.hlo, estimated, machine))
    known = [each for each in estimated if each.estimate is not None]
    assert cost.waiting <= cost.total * SLACK
    assert all(cost.total * SLACK >= each.estimate.seconds for each in known if each.estimate is not None)
    assert cost.total * SLACK >= cost.communication or any(each.is_async for each in known)
    for removed in known[:4]:
        assert removed.estimate is not None
        # In no time: an instruction that is no collective would be one that copies.
        free = replace(removed, estimate=replace(removed.estimate, seconds=0.0, transmitting=0.0))
        without = [free if each is removed else each for each in estimated]
        assert total(stage.hlo, without, machine) <= cost.total * SLACK
    for figure in FASTER:
        if figure in machine.chip.figures:
            quick = faster(machine, figure)
            assert total(stage.hlo, list(with_estimates(there, quick)), quick) <= cost.total * SLACK


def permutes(*parts: tuple[int, str]) -> float:
    """The time of permutes around a ring of eight that are all begun before the first one ends."""
    up = "{{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}"
    down = "{{1,0},{2,1},{3,2},{4,3},{5,4},{6,5},{7,6},{0,7}}"
    begun, done = [], []
    for number, (size, way) in enumerate(parts):
        type = f"f32[{size}]{{0}}"
        begun.append(
            f"  %s{number} = ({type}, {type}) collective-permute-start(%p{number}), channel_id={number + 1},"
            f" source_target_pairs={up if way == 'up' else down}"
        )
        done.append(f"  %d{number} = {type} collective-permute-done(%s{number})")
    given = [f"  %p{number} = f32[{size}]{{0}} parameter({number})" for number, (size, _) in enumerate(parts)]
    results = ", ".join(f"f32[{size}]{{0}}" for size, _ in parts)
    root = f"  ROOT %t = ({results}) tuple({', '.join(f'%d{number}' for number in range(len(parts)))})"
    lines = "\n".join([*given, *begun, *done, root])
    found = module(f"HloModule m, num_partitions=8\n\nENTRY %main {{\n{lines}\n}}\n")
    machine = torus("v5p", 8, 1, 1)
    return total(
        found,
        list(with_estimates(hlo_collectives("hlo", found, AnalysisContext((), 8, None, False)), machine)),
        machine,
    )


def test_opposite_directions_do_not_take_turns() -> None:
    whole = 1 << 24
    one = permutes((whole, "up"))
    assert permutes((whole, "up"), (whole, "down")) == pytest.approx(one)
    assert permutes((whole // 2, "up"), (whole // 2, "down")) == pytest.approx(one / 2)
    assert permutes((whole, "up"), (whole, "up")) == pytest.approx(2 * one)


def test_hops_of_small_transfers_do_not_take_turns() -> None:
    """The next one begins when the last byte of the first has left, and not when it has arrived."""
    one = permutes((8, "up"))
    assert permutes((8, "up"), (8, "up"), (8, "up")) == pytest.approx(one, rel=1e-3)


ASYNCHRONOUS = {
    "call": 'async_execution_thread="sparsecore", to_apply=%called',
    "async": "calls=%called",
    "fusion": "kind=kCustom, calls=%called",  # GPUs since JAX 0.12
}


@pytest.mark.parametrize("machine", ["v5p", "h100"])
@pytest.mark.parametrize("spelling", ASYNCHRONOUS)
def test_a_computation_that_is_called_asynchronously_has_its_collectives_in_the_total(
    spelling: str, machine: str
) -> None:
    text = """HloModule m, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%called (x: f32[8388608]) -> f32[1048576] {
  %x = f32[8388608]{0} parameter(0)
  ROOT %rs = f32[1048576]{0} reduce-scatter(%x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}, to_apply=%add
}

ENTRY %main {
  %p = f32[8388608]{0} parameter(0)
  %start = ((f32[8388608]{0}), f32[1048576]{0}) SPELLING-start(%p), CALLED
  ROOT %done = f32[1048576]{0} SPELLING-done(%start)
}
"""  # noqa: E501
    found = module(text.replace("SPELLING", spelling).replace("CALLED", ASYNCHRONOUS[spelling]))
    places = MACHINES[machine]
    (collective,) = with_estimates(hlo_collectives("hlo", found, AnalysisContext((), 8, None, False)), places)
    assert collective.estimate is not None
    assert collective.is_async
    assert total(found, [collective], places) == pytest.approx(collective.estimate.seconds)
