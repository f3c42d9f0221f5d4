"""Copies of replicated values that differ, beside what the arrays' own shards have."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.overview import attention, in_order
from shardscope.inspector.render.table import plain_text
from shardscope.inspector.render.tables.value_sites import value_sites
from shardscope.inspector.report import Report

SCRIPT = """\
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

def seeded_by_device(shape, spec):
    s = NamedSharding(mesh, spec)
    blocks = [jax.device_put(np.full(s.shard_shape(shape), d.id % 3, np.float32), d) for d in mesh.devices.flat]
    return jax.make_array_from_single_device_arrays(shape, s, blocks)

def equal(shape, spec):
    return jax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, spec))

def inputs():
    return seeded_by_device((4,), P()), equal((8, 4), P("x"))

def good_inputs():
    return equal((4,), P()), equal((8, 4), P("x"))

def step(w, x):
    return x @ w, jnp.sum(w)

def unchecked(w, x):
    total = jax.shard_map(lambda x: jnp.sum(x) * lax.axis_index("x"), mesh=mesh, in_specs=P("x"), out_specs=P(),
                          check_vma=False)(x)
    return total, x + total

def looped(w, x):
    def body(x):
        def once(ema, _):
            ema = 0.9 * ema + lax.axis_index("x")
            return ema, None
        return lax.scan(once, 0.0, None, length=3)[0]
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("copies") / "copies.py"
    path.write_text(SCRIPT)
    return path


def marked(report: Report) -> dict[str, bool]:
    """The rows of the values with a count in the colour of errors, and whether they have the sign of the first."""
    table = value_sites(report)
    return {
        plain_text(row.cells[1]): bool(plain_text(row.cells[0]))
        for row in table.rows
        if any(getattr(cell, "role", "") == "error" for cell in row.cells[2:])
    }


def test_an_argument_whose_copies_differ_is_where_it_begins(script: Path) -> None:
    report = inspect(last_capture(Request(f"{script}:step", inputs="inputs")))
    assert marked(report) == {"argument w": True, "output result[0]": False, "output result[1]": False}
    assert "devices hold different copies of argument w" in map(plain_text, attention(report))
    good = inspect(last_capture(Request(f"{script}:step", inputs="good_inputs")))
    assert marked(good) == {}
    assert not any("copies" in plain_text(line) for line in attention(good))


def test_what_leaves_a_shard_map_unequal_is_marked(script: Path) -> None:
    report = inspect(last_capture(Request(f"{script}:unchecked", inputs="good_inputs")))
    assert marked(report) == {"output result[0]": True}  # the other has another part on each device along x
    assert "no unexpected differences" not in in_order(report)
    assert [finding.rule for finding in report.findings][:1] == ["SS06"]


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 aborts at axis_index in a loop")
def test_the_value_in_the_loop_is_named(script: Path) -> None:
    report = inspect(last_capture(Request(f"{script}:looped", inputs="good_inputs")))
    (found,) = (each for each in report.findings if each.rule == "SS06")
    line = next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if "ema = 0.9" in text)
    assert dict(found.evidence)["in the loop"].endswith(f"add at line {line}")
