"""Results in trees of classes, sharded by a constraint where they are returned: what the changed program gives."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report
from shardscope.inspector.report.policy import Policy

from tests.findings.trying import verified

PROGRAM = """
from dataclasses import dataclass
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

@jax.tree_util.register_dataclass
@dataclass
class Layer:
    kernel: jax.Array
    bias: jax.Array

@jax.tree_util.register_dataclass
@dataclass
class Model:
    layers: list[Layer]

@jax.jit
def classes(x):
    def layer(scale):
        return Layer(jnp.tanh(x) * scale, jnp.sin(x[0]))
    if x.ndim == 2:
        model = Model([layer(1), layer(2)])
    return {"model": model, "loss": jnp.sum(x)}

@jax.jit
def several(x):
    if x.ndim == 1:
        return Model([])
    return Model([Layer(jnp.tanh(x), jnp.sin(x[0]))])

classes_inputs = several_inputs = (jax.device_put(jnp.ones((256, 128)), NamedSharding(mesh, P())),)
"""


def large(capture: Capture) -> Report:
    return inspect(capture, Policy(rules=frozenset({"SS12"}), thresholds={"SS12": 1 << 16}))


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="compares values of the changed program")
def test_a_leaf_of_a_class_is_sharded_where_it_is_returned(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    request = Request(f"{script}:classes", live=False, probe="none", fingerprints=True)
    report = large(last_capture(request))
    names = [each.subject for each in report.findings if each.subject.startswith("result")]
    assert names == [f"result['model'].layers[{number}].kernel" for number in range(2)]
    found = next(each for each in verified(report, request, large).findings if each.subject == names[0])
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    (edit,) = found.proposal.edits
    lines = PROGRAM.splitlines()
    assert lines[edit.line - 1].strip().startswith("return {")

    changed = lines[edit.line - 1][: edit.column] + edit.text
    ast.parse(changed.strip().removeprefix("return "))
    script.write_text("\n".join([*lines[: edit.line - 1], changed, *lines[edit.line :]]))
    specs = {value.name: value.spec for value in large(last_capture(request)).shardings if value.role == "output"}
    assert specs[names[0]] == "P('x', None)"
    assert specs["result['model'].layers[0].bias"] != "P('x',)"


def test_which_of_several_returns_is_not_guessed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    report = large(last_capture(Request(f"{script}:several", live=False, probe="none")))
    (found,) = (each for each in report.findings if each.subject.startswith("result"))
    assert not any(fix.edits for fix in found.fixes)
