"""SS14 of axes that trade dimensions: what it saves is what the changed program sends less."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

from tests.findings.trying import verified

SCRIPT = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh({sizes}, ("x", "y"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def there_and_back(a):
    a = lax.with_sharding_constraint(a, NamedSharding(mesh, P("x", "y")))
    b = lax.with_sharding_constraint(jnp.sin(a), NamedSharding(mesh, P("y", "x")))
    return lax.with_sharding_constraint(jnp.cos(b) * 2, NamedSharding(mesh, P("x", "y")))

inputs = (jnp.arange(4096.0).reshape(64, 64),)
"""


@pytest.mark.once
@pytest.mark.parametrize(
    ("sizes", "kinds"), [((2, 2), {"collective-permute"}), ((4, 2), {"collective-permute", "all-to-all"})]
)
def test_both_axes_are_one_finding(sizes: tuple[int, int], kinds: set[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(sizes=sizes))
    request = Request(f"{script}:there_and_back", probe="none", fingerprints=True)
    report = verified(inspect(last_capture(request)), request, inspect)
    assert {each.kind for each in report.collectives if each.stage == "hlo"} == kinds
    (found,) = (each for each in report.findings if each.rule == "SS14")
    assert {each.name for each in found.axes} == {"x", "y"}
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    assert found.saved_bytes == found.experiment.before.bytes
    assert found.experiment.after.bytes == 0
