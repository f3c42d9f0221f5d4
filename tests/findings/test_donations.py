"""Donations that are lost, one finding for each reason, against the memory that JAX's own executable reuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding, Report

STEP = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
sharded, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())

def train(params, image, time, key):
    noise = jax.random.normal(key, image.shape)
    loss = jnp.square(noise - image).mean() + time.mean()
    return loss, jax.tree.map(lambda w: w * 2 + loss, params)

steps = {
    "kept": jax.jit(train, donate_argnums=(0, 1, 2, 3)),
    "moved": jax.jit(train, donate_argnums=0, out_shardings=(None, sharded)),
}
kept, moved = steps["kept"], steps["moved"]
params = {f"w{number}": jax.device_put(jnp.ones((64, SIZE)), whole) for number in range(6)}
inputs = (params, jax.device_put(jnp.ones((4096, 8, 8)), sharded), jnp.ones(4096), jax.random.key(0))
"""


def donations(tmp_path: Path, function: str, size: int) -> tuple[Report, list[Finding]]:
    script = tmp_path / "program.py"
    script.write_text(STEP.replace("SIZE", str(size)))
    *_, final = capture(Request(f"{script}:{function}", live=False))
    report = inspect(final)
    return report, [each for each in report.findings if each.rule == "SS20"]


def test_a_donated_batch_is_one_note(tmp_path: Path) -> None:
    """Nothing replaces image, time and key; all the weights' memory is reused, as the executable says itself."""
    report, found = donations(tmp_path, "kept", 64)
    weights = sum(4 * 64 * 64 for value in report.capture.arguments if value.path.startswith("params"))
    assert report.capture.memory is not None
    assert report.capture.memory.aliased == weights
    assert [(each.severity, each.message) for each in found] == [
        ("info", "no result reuses the memory of 3 donated arguments: none replaces them")
    ]


@pytest.mark.parametrize(("size", "severity"), [(256, "warning"), (1, "info")])
def test_all_that_are_sharded_otherwise_are_one_finding(tmp_path: Path, size: int, severity: str) -> None:
    """A warning where that is much of the program's memory; each result is that of the argument's own path."""
    report, found = donations(tmp_path, "moved", size)
    assert report.capture.memory is not None
    assert not report.capture.memory.aliased
    (only,) = found
    assert only.message == "no result reuses the memory of 6 donated arguments: their results are sharded differently"
    for name, why in only.evidence[:6]:
        assert f"result[1]{name.removeprefix('params')} has its type" in why
    share = sum(4 * 64 * size for _ in range(6)) / (report.peak.bytes if report.peak is not None else 0)
    assert (share >= 0.01) is (severity == "warning")
    assert only.severity == severity
