"""One program on three targets: the same traffic has one name, whatever collectives a backend makes of it.

The captures hold their script: a step with FSDP over 8 devices and tensor parallelism over 2, for cpu, tpu:v5e:4x4 and
gpu:h100:2x8, with weights large enough for a TPU's compiler to make rings of gathers and sums.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.pipeline import inspect, links
from shardscope.inspector.report import Collective

KEPT = Path(__file__).parent / "targets"
D, FSDP, TP = 4096, 8, 2
BLOCK = 4 * D * D // TP
"""Elements of one weight on the devices along tp."""

PLANNED = {"weight gathers", "gradient sync", "tensor parallelism", "scalar reductions"}


def whole_elements(collective: Collective) -> int:
    """Elements of the values that it gathers or sums; a permute is one of the steps that together do so."""
    sent = sum((type.elements or 0) for type in collective.operand_types) * (collective.executions or 0)
    match collective.kind:
        case "all-gather":
            return sum((type.elements or 0) for type in collective.result_types) * (collective.executions or 0)
        case "collective-permute":
            return sent * FSDP // (FSDP - 1)
    return sent


@pytest.mark.once
@pytest.mark.parametrize(("target", "gathers"), [("cpu", 7), ("gpu", 7), ("tpu", 4)])
def test_traffic_has_one_name(target: str, gathers: int) -> None:
    """CPUs and GPUs gather weights again for the backward pass, all but one; TPUs keep each.

    A TPU's rings for sums take one step more, in which a device adds its own block.
    """
    report = inspect(load(KEPT / f"{target}.shardscope"))
    elements: dict[str, int] = {}
    for total in report.communication:
        assert total.strategy in PLANNED
        elements[total.strategy] = elements.get(total.strategy, 0) + sum(map(whole_elements, total.collectives))
    assert elements["weight gathers"] == pytest.approx(gathers * BLOCK, rel=0.15)
    assert elements["gradient sync"] == pytest.approx(4 * BLOCK, rel=0.3)
    assert {total.axes for total in report.communication if total.strategy == "tensor parallelism"} == {
        axes for total in report.communication for axes in [total.axes] if axes and axes[0].name == "tp"
    }
    if target != "tpu":
        assert sum(total.gradients for total in report.communication) == 4


@pytest.mark.once
def test_what_a_compiler_concatenates_is_judged_part_by_part() -> None:
    """A step with two weights over data=4, whose gradients GPUs sum as one vector with the name of one of them."""
    report = inspect(load(KEPT / "gpu_joined.shardscope"))
    (total,) = (each for each in report.communication if each.strategy == "gradient sync")
    (collective,) = total.collectives
    assert total.gradients == 2
    assert {(part.source.line, part.type.shape) for part in collective.parts} == {(12, (1024, 2048)), (13, (4096, 512))}
    assert [sum(type.elements or 0 for type in collective.result_types)] == [2 * 2048 * 1024]
    parts = [link for link in links(report.program) if link.collective.name == collective.name]
    assert [link.confidence for link in parts] == ["exact"] * 2
