"""Transfers between TPU slices: equal to the source as libtpu compiles them, and different where one is changed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from shardscope.inspector.capture.protocol.case import OPTIMIZED
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.evaluate.validate import validate

pytestmark = pytest.mark.once

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("dcn", "x", "y"))
SPEC = P("dcn", "x", "y")

def every(x):
    return (
        lax.psum(x, "dcn") * jnp.ones((2, 1, 1)).repeat(2, 0),
        lax.pmax(x, ("dcn", "x")) + lax.axis_index("dcn"),
        lax.all_gather(x, "dcn", tiled=True),
        lax.psum_scatter(x, "dcn", tiled=True),
        lax.all_to_all(x, "dcn", 1, 0, tiled=True),
        lax.ppermute(x, "dcn", [(0, 1)]) + lax.axis_index("y"),
    )

step = jax.jit(jax.shard_map(every, mesh=mesh, in_specs=SPEC, out_specs=SPEC, check_vma=False))
x = np.random.default_rng(0).standard_normal((8, 16, 8)).astype(np.float32)
step_inputs = lambda: (jax.device_put(x, NamedSharding(mesh, SPEC)),)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("libtpu")
    folder = tmp_path_factory.mktemp("slices")
    (folder / "script.py").write_text(SCRIPT)
    case = folder / "case"
    request = Request(f"{folder}/script.py:step", target="tpu:v5e:2x2*2", live=False, probe="none", case=str(case))
    capture = last_capture(request)
    assert capture.failure is None
    return case


def test_each_kind_of_transfer_is_evaluated(compiled: Path) -> None:
    text = (compiled / OPTIMIZED).read_text()
    kinds = set(re.findall(r'transfer_type="(\w+)"', text))
    assert kinds == {"ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL", "ONE_TO_ONE"}
    assert "SliceId" in text
    found = validate(compiled, 60)
    assert (found.status, found.reason, len(found.outputs)) == ("same", "", 6)
    assert found.error < 1e-12


CHANGES = {
    "another reduction": ('reduce_operation="SUM"', 'reduce_operation="MIN"'),
    "another direction": ("->", "<-"),
    "another order": ("{100000,200000}", "{200000,100000}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_transfer_is_noticed(compiled: Path, tmp_path: Path, change: str) -> None:
    case = Path(shutil.copytree(compiled, tmp_path / "case"))
    before, after = CHANGES[change]
    text = (case / OPTIMIZED).read_text()
    assert before in text
    changed = re.sub(r"\{(\d+)->(\d+)\}", r"{\2->\1}", text) if after == "<-" else text.replace(before, after)
    (case / OPTIMIZED).write_text(changed)
    assert validate(case, 60).status == "differs"


def test_a_value_that_nothing_sends_is_not_guessed(compiled: Path, tmp_path: Path) -> None:
    case = Path(shutil.copytree(compiled, tmp_path / "case"))
    text = (case / OPTIMIZED).read_text()
    (case / OPTIMIZED).write_text(text.replace("_xla_host_transfer_rendezvous", "_other", 1))
    found = validate(case, 60)
    assert (found.status, found.program) == ("not evaluated", "optimized program")
