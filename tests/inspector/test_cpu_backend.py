"""What only XLA's CPU backend does: sizes are those of the partitioned program, and calls of its own are named."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.experiments.elsewhere import elsewhere, targets_of
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective, Report
from shardscope.inspector.targets.target import parse_target

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
bf16, f32, f8, i16 = jnp.bfloat16, jnp.float32, jnp.float8_e4m3fn, jnp.int16

def like(shape, dtype, *spec):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

def loss(cast, ws, x):
    for w in ws:
        x = jnp.tanh(x.astype(cast) @ w.astype(cast))
    return (x.astype(f32) ** 2).mean()

weights = [like((256, 256), f32, "data", "model")] * 3
def of(dtype):
    return jax.jit(jax.grad(partial(loss, dtype)), out_shardings=[w.sharding for w in weights])

narrow, wide = of(bf16), of(f32)
gradients = (weights, like((64, 256), bf16, "data", None))

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("data"),) * 4 + (P("data", "model"),),
         out_specs=(P(), P(), P(), P("data"), P("data", "model")), check_vma=False)
def mixed(a, b, c, d, e):
    sums = jax.lax.psum((a, b), "data"), jax.lax.psum(c, "data")
    d, e = jax.lax.ppermute(d, "data", [(0, 1), (1, 0)]), jax.lax.all_to_all(e, "model", 0, 1, tiled=True)
    return *sums, jax.lax.all_gather(d, "model"), d, e

every = (*(like((64, 8), dtype, "data") for dtype in (bf16, f32, i16, f8)), like((64, 32), bf16, "data", "model"))

@jax.jit
def largest(x):
    return jax.lax.top_k(x, 3)

@jax.jit
def largest_and_more(x):
    x = x + 1
    return jax.lax.top_k(x, 3), jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P())) * 2

@jax.jit
def largest_of_gathered(x):
    return jax.lax.top_k(jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P())), 3)

logits = (like((16, 32768), f32, None, ("data", "model")),)
"""


def report_of(folder: Path, function: str, inputs: str, target: str = "cpu") -> Report:
    path = folder / "script.py"
    path.write_text(SCRIPT)
    return inspect(last_capture(Request(f"{path}:{function}", inputs=inputs, target=target, live=False)))


def compiled(report: Report) -> list[Collective]:
    return [each for each in report.collectives if each.stage == "hlo"]


def elements(types: Iterable[str]) -> Counter[str]:
    """How many elements there are of each type, however they are cut up."""
    found: Counter[str] = Counter()
    for dtype, sizes in re.findall(r"(\w+)\[([\d,]*)\]", " ".join(types)):
        found[dtype.replace("i16", "s16")] += math.prod(map(int, filter(None, sizes.split(","))))
    return found


def partitioned_results(report: Report) -> list[str]:
    """The results of the collectives in the text that comes out of the partitioner."""
    stage = report.capture.stage("hlo-spmd")
    assert stage is not None
    kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
    return re.findall(rf" = (\(?[^=]*?\)?) (?:{kinds})\(", stage.source.text())


@pytest.mark.parametrize(("function", "inputs"), [("mixed", "every"), ("narrow", "gradients"), ("wide", "gradients")])
def test_types_are_those_that_the_partitioner_wrote(tmp_path: Path, function: str, inputs: str) -> None:
    report = report_of(tmp_path, function, inputs)
    types = [str(type) for each in compiled(report) for type in each.result_types]
    assert elements(types) == elements(partitioned_results(report))
    assert all(each.widened for each in compiled(report)) is (function == "narrow")


def test_bytes_are_those_that_a_tpu_sends(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    sent = []
    for target in ("cpu", "tpu:v5e:2x4"):
        sizes: Counter[tuple[str, str]] = Counter()
        for each in compiled(report_of(tmp_path, "narrow", "gradients", target)):
            sizes[each.kind, ",".join(map(str, each.axes or ()))] += each.step_bytes or 0
        sent.append(sizes)
    assert sent[0] == sent[1]


def test_a_cast_that_is_dropped_is_a_change(tmp_path: Path) -> None:
    narrow, wide = (report_of(tmp_path, function, "gradients") for function in ("narrow", "wide"))
    before, after = (sum(each.step_bytes or 0 for each in compiled(report)) for report in (narrow, wide))
    assert before < after
    assert diff(narrow, wide).changes


@pytest.mark.parametrize("function", ["largest", "largest_and_more", "largest_of_gathered"])
def test_a_gather_for_a_call_of_the_cpu_alone_is_named(tmp_path: Path, function: str) -> None:
    """One that has another user, or that the program requests, is there on other targets as well."""
    gathers = [each for each in compiled(report_of(tmp_path, function, "logits")) if each.kind == "all-gather"]
    assert gathers
    assert {each.cpu_call for each in gathers} == ({"TopK"} if function == "largest" else {""})


def test_what_is_sent_elsewhere_is_measured(tmp_path: Path) -> None:
    """It is what a capture for that target sends; of a program that is the same there, nothing is measured."""
    pytest.importorskip("libtpu")
    report, same = (report_of(tmp_path, name, "logits") for name in ("largest", "largest_of_gathered"))
    request = Request(f"{tmp_path / 'script.py'}:largest", inputs="logits", live=False)
    found = elsewhere(report, request)
    assert found is not None
    assert found.target == "tpu:v5e:2x4"
    there = compiled(report_of(tmp_path, "largest", "logits", found.target))
    assert found.cost.bytes == sum(each.step_bytes or 0 for each in there)
    assert found.cost.bytes < sum(each.step_bytes or 0 for each in compiled(report))
    assert elsewhere(same, request) is None


@pytest.mark.parametrize("devices", [1, 2, 4, 6, 8, 12, 16, 24, 32, 128, 256])
def test_targets_have_as_many_devices(devices: int) -> None:
    found = [target for _, target in targets_of(devices)]
    assert [parse_target(target).devices for target in found] == [devices] * len(found)
    assert len(found) == 2 or devices.bit_count() > 1
