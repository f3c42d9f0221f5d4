"""StableHLO's `ragged_all_to_all` on TPU targets, against the instruction in the compiled program."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.communication import sent_text
from shardscope.inspector.units import format_bytes

SCRIPT = """
import jax, jax.numpy as jnp
from functools import partial
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("expert", "data"), axis_types=(AxisType.Auto,) * 2)

@partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert"), check_vma=False)
def dispatch(x, sizes):
    starts = jnp.cumsum(sizes[0]) - sizes[0]
    filled = jnp.zeros((2 * x.shape[0], x.shape[1]), x.dtype)
    return lax.ragged_all_to_all(x, filled, starts, sizes[0], starts, sizes[0], axis_name="expert")

inputs = jax.ShapeDtypeStruct((128, 16), jnp.float32), jax.ShapeDtypeStruct((4, 4), jnp.int32)
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
@pytest.mark.parametrize("target", ["tpu:v5p:2x2x2", "tpu:v6e:2x4"])
def test_it_is_read(tmp_path: Path, target: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    *_, final = capture(Request(f"{script}:dispatch", target=target, live=False))
    assert final.complete, final.failure
    compiled = final.stage("hlo")
    assert compiled is not None
    groups = re.findall(r" ragged-all-to-all\(.*?replica_groups=(\S+?), ", compiled.source.text())
    assert groups == ["{{0,2,4,6},{1,3,5,7}}"]
    (found,) = (each for each in inspect(final).collectives if each.stage == "hlo")
    assert (found.kind, found.origin, list(map(str, found.axes or ()))) == ("ragged-all-to-all", "user", ["expert"])
    assert [list(group) for group in found.groups or ()] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    (line,) = (number for number, text in enumerate(SCRIPT.splitlines(), 1) if "lax.ragged_all_to_all(" in text)
    assert found.source.line == line
    # Its sizes are arguments: a device may send all that it has to others, and no more.
    (operand,) = re.findall(r" ragged-all-to-all\(%([\w.-]+),", compiled.source.text())
    (dims,) = re.findall(rf"^ *(?:ROOT )?%{re.escape(operand)} = f32\[([\d,]+)\]", compiled.source.text(), re.MULTILINE)
    assert found.wire_bytes == 4 * math.prod(map(int, dims.split(",")))
    report = inspect(final)
    assert sent_text(report, is_complete=True) == f"at most {format_bytes(found.wire_bytes)}"
