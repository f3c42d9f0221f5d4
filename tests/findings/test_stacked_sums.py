"""SS40: the first edit gives the gradients of each sample, as vmap has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report.edits import applied

from tests.findings.trying import verified
from tests.sweeps import xla_flags

CAST = """
params = jnp.array([1.0, 2.0])

def one(x):
    return jax.grad(lambda p: jnp.sin(p @ x))(params)
"""

ALSO_WITHOUT = (
    CAST
    + """
one(jnp.ones(2))
"""
)
"""The function is called outside of shard_map, too, where nothing can be cast."""

SCRIPT = """
import json
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
{function}
mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
each = jax.jit(jax.shard_map(jax.vmap(one), mesh=mesh, in_specs=P("d"), out_specs=P("d")))
print(json.dumps(each(jnp.arange(32.0).reshape(16, 2)).tolist()))
"""


@pytest.mark.once
@pytest.mark.parametrize(("function", "text"), [(CAST, "pcast(params"), (ALSO_WITHOUT, "check_vma=False")])
def test_the_first_edit_gives_what_vmap_gives(tmp_path: Path, function: str, text: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(function=function))
    request = Request(str(script), devices=8, fingerprints=True)
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS40")
    source = report.program.file(str(script))
    assert found.advised is not None
    assert source is not None
    changed = applied(source, list(found.advised.edits))
    assert changed is not None
    assert text in changed.decode()
    samples = np.arange(32.0).reshape(16, 2)
    expected = np.cos(samples @ [1.0, 2.0])[:, None] * samples
    script.write_bytes(changed)
    environment = os.environ | {"XLA_FLAGS": xla_flags(8), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, env=environment, check=True)
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-3, atol=1e-3)
