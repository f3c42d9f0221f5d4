"""What is said of collectives beyond their text: how often, who asked, which pass, from which line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.samples import catalogue

from tests.conftest import SampleCapture

SOURCES = {sample.name: sample.path.read_text().splitlines() for sample in catalogue.samples()}


@pytest.fixture(params=["hlo", "stablehlo"])
def stage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def collectives(sample: SampleCapture, function: str, stage: str = "hlo") -> list[Collective]:
    return [collective for collective in inspect(sample(function)).collectives if collective.stage == stage]


def test_loops_multiply(sample: SampleCapture, stage: str) -> None:
    """A pipeline of 4 stages and 6 microbatches takes 9 ticks, forward and backward."""
    assert [c.executions for c in collectives(sample, "pipeline:loss", stage) if c.kind == "collective-permute"] == [9]
    assert [c.executions for c in collectives(sample, "pipeline:grad", stage) if c.kind == "collective-permute"] == [
        9,
        9,
    ]
    (permute,) = [c for c in collectives(sample, "pipeline:loss", stage) if c.kind == "collective-permute"]
    assert len(permute.loops) == 1


@pytest.mark.skipif(jax.__version_info__ < (0, 7, 2), reason="JAX leaves the transformations out of shard_map's names")
def test_passes_of_checkpointed_layers(sample: SampleCapture) -> None:
    """StableHLO has every gather of the forward pass, and those that the policy does not keep once more."""
    found = Counter((c.kind, c.direction) for c in collectives(sample, "fsdp_tp:grad"))
    assert found["reduce-scatter", "forward"] == 3
    assert found["all-gather", "forward"] == 6
    assert found["reduce-scatter", "backward"] == 6
    assert found["all-gather", "backward"] == 3


def test_hand_written_collectives_are_the_users(sample: SampleCapture) -> None:
    for function in ("fsdp_tp:grad", "moe:grad", "psum_2d:over_both", "ring_attention:grad"):
        for each in collectives(sample, function):
            assert each.origin == ("autodiff" if each.direction == "backward" else "user"), (function, each.name)


def test_what_jit_needs_is_the_partitioners(sample: SampleCapture) -> None:
    for function in ("transformer:train_step", "matmul_psum:automatic"):
        assert {c.origin for c in collectives(sample, function)} == {"partitioner"}, function


def test_what_a_reshard_asks_for_is_explicit(sample: SampleCapture) -> None:
    assert {c.origin for c in collectives(sample, "block_matrices:all_to_all")} == {"explicit"}


def test_what_a_partitioning_of_ones_own_holds_is_the_users(sample: SampleCapture) -> None:
    (written,) = collectives(sample, "custom_partitioning:product")
    assert (written.kind, written.axes, written.origin) == ("all-reduce", (AxisRef("y"),), "user")


UNREDUCED = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))

@jax.jit
def step(a, b):
    parts = jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))
    return jax.reshard(parts + parts, P(None, None))

step_inputs = (
    jax.ShapeDtypeStruct((8, 16), "float32", sharding=NamedSharding(mesh, P(None, "x"))),
    jax.ShapeDtypeStruct((16, 8), "float32", sharding=NamedSharding(mesh, P("x", None))))
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older JAX adds no partial sums")
def test_a_sum_of_what_the_types_leave_open_is_explicit(tmp_path: Path) -> None:
    """Shardy names the all-reduce after the addition, whose type says that it is not reduced; `reshard` asks for it."""
    script = tmp_path / "unreduced.py"
    script.write_text(UNREDUCED)
    *_, final = capture(Request(f"{script}:step", live=False, context="mesh"))
    assert final.failure is None, final.failure
    report = inspect(final)
    (found,) = (each for each in report.collectives if each.stage == "hlo")
    assert (found.kind, found.origin, report.findings) == ("all-reduce", "explicit", ())


EXCHANGED = """
import jax
from jax import NamedSharding, P, lax
from jax.experimental.custom_partitioning import custom_partitioning

mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

@custom_partitioning
def transposed(a):
    return a

def partition(mesh, operands, result):
    def local(a):
        return lax.all_to_all(a, "x", 1, 0, tiled=True)
    return mesh, local, NamedSharding(mesh, P(None, "x")), (NamedSharding(mesh, P("x", None)),)

transposed.def_partition(
    partition, sharding_rule="i j -> i j",
    infer_sharding_from_operands=lambda mesh, operands, result: NamedSharding(mesh, P(None, "x")))

step = jax.jit(lambda a: transposed(2 * a))
step_inputs = (jax.ShapeDtypeStruct((8, 16), "float32", sharding=NamedSharding(mesh, P("x"))),)
"""


def test_also_where_the_compiler_names_it_anew(tmp_path: Path) -> None:
    """CPUs' compiler takes an all-to-all apart; its channel is left."""
    script = tmp_path / "exchanged.py"
    script.write_text(EXCHANGED)
    *_, final = capture(Request(f"{script}:step", live=False))
    assert final.failure is None, final.failure
    found = [each for each in inspect(final).collectives if each.kind == "all-to-all" and each.stage == "hlo"]
    assert [each.name.startswith("all-to-all") for each in found if each.origin == "user"] == [True]


def test_both_in_one_program(sample: SampleCapture) -> None:
    """The layers' reduce-scatters are written by hand; what the loss outside sums is the partitioner's."""
    found = Counter((c.kind, c.origin) for c in collectives(sample, "tensor_parallel:loss"))
    assert found["reduce-scatter", "user"] >= 1
    assert found["all-reduce", "partitioner"] == 1
    assert {origin for _, origin in found} == {"user", "partitioner"}


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        ("psum:psum", "all-reduce", "psum("),
        ("all_gather:tiled", "all-gather", "all_gather("),
        ("psum_scatter:psum_scatter", "reduce-scatter", "psum_scatter("),
        ("ppermute:shift", "collective-permute", "ppermute("),
        ("all_to_all:all_to_all", "all-to-all", "all_to_all("),
        ("fsdp_tp:loss", "reduce-scatter", "psum_scatter("),
    ],
)
def test_source_lines(sample: SampleCapture, function: str, kind: str, words: str, stage: str) -> None:
    """The line that is named is one on which the collective is called."""
    lines = SOURCES[function.partition(":")[0]]
    for collective in collectives(sample, function, stage):
        if collective.kind == kind and collective.source.stack:
            frame = collective.source.frame
            assert frame is not None
            assert words in " ".join(lines[frame.line - 1 : max(frame.end_line, frame.line)])


def test_reductions_by_name(sample: SampleCapture) -> None:
    found = Counter(c.reduction for c in collectives(sample, "transformer:train_step") if c.kind == "all-reduce")
    assert found["max"] == 1
    assert set(found) == {"sum", "max"}
