"""Scripts that go on, with an edit that ends their error, for longer than a trial may take."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.render.finding_facts import verdict
from shardscope.inspector.trace_errors import trying
from shardscope.inspector.trace_errors.remedies import explained_run

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older JAX makes meshes of automatic axes")

SCRIPT = """
import time
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
step = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
step(jnp.ones((16, 32)))
time.sleep(600)
"""


def test_a_script_that_goes_on_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(trying, "TIMEOUT_S", 5.0)
    found = explained_run(trying.Command(str(script), devices=8))
    assert found is not None
    assert [edit.text for edit in found.fixes[0].edits if "Auto" in edit.text]
    assert verdict(found.fixes[0]) == "tried: it ends this error; the script then took more than 5 s"
