"""Arguments that are Refs, the mutable arrays of `jax.new_ref`: JAX makes an argument and a result of each."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.validation import begin_validated
from shardscope.inspector.capture.worker.tagging import Names, named, names_of
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report, ShardedValue

from .conftest import Captured

SCRIPT = """
import jax, jax.numpy as jnp
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
new_ref = getattr(jax, "new_ref", None) or jax.array_ref
def put(value, *spec):
    return jax.device_put(value, jax.NamedSharding(mesh, jax.P(*spec)))
counter = new_ref(put(jnp.zeros(()), ))
def fn(state, unused, x):
    hidden = jax.lax.with_sharding_constraint(x @ state["w1"][...], jax.NamedSharding(mesh, jax.P("x", "y")))
    state["steps"][...] += 1
    state["w2"][...] *= 0.5
    counter[...] += 1
    return (hidden @ state["w2"][...]).sum(), hidden
def fn_inputs():
    w1, w2 = put(jnp.ones((8, 16)), None, "y"), put(jnp.ones((16, 4)), "y")
    state = {"steps": new_ref(put(jnp.zeros(()))), "w1": new_ref(w1), "w2": new_ref(w2)}
    return state, 1.0, put(jnp.ones((32, 8)), "x")
"""


@pytest.fixture
def capture(captured: Captured) -> Capture:
    return captured(SCRIPT)


def borders(report: Report, role: str) -> dict[str, ShardedValue]:
    return {value.name: value for value in report.shardings if value.role == role}


def test_they_have_the_names_of_the_arguments(capture: Capture) -> None:
    report = inspect(capture)
    given = borders(report, "argument")
    # The argument that is not used is none of the program's; the Ref that is closed over has no name.
    assert list(given)[:4] == ["state['steps']", "state['w1']", "state['w2']", "x"]
    assert len(given) == 5
    assert {name: value.requested for name, value in given.items() if value.requested} == {
        "state['steps']": "P()",
        "state['w1']": "P(None, 'y')",
        "state['w2']": "P('y', None)",
        "x": "P('x', None)",
    }
    assert all(value.agrees for value in given.values() if value.requested)
    left = borders(report, "output")
    afterwards = [f"state['{name}'] afterwards" for name in ("steps", "w1", "w2")]
    assert list(left)[:5] == ["result[0]", "result[1]", *afterwards]
    assert left["state['w2'] afterwards"].spec == "P('y', None)"


def test_what_they_hold_afterwards_is_validated(tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(SCRIPT.replace("    counter[...] += 1\n", ""))
    request = Request(f"{tmp_path / 'refs.py'}:fn", live=False)
    validation = deque(begin_validated(request, 60).captures, maxlen=1).pop().validation
    assert validation is not None
    assert (validation.status, validation.reason, len(validation.outputs)) == ("same", "", 5)


def test_what_the_compiler_inserts_is_told_by_their_names(capture: Capture) -> None:
    (stage,) = [stage for stage in capture.stages if stage.name == "hlo"]
    text = stage.source.data.decode()
    for name in ("state['w1']", "state['w2']", "x"):
        assert f'op_name="{name}"' in text.replace("\\'", "'")


def test_each_run_begins_with_what_they_held(capture: Capture) -> None:
    """Every run halves w2: each of 32 × 4 elements is a sum of 16 products of 8 and ½."""
    if jax.__version_info__ < (0, 7, 2):
        pytest.skip("this JAX fails to call what it compiled, with an argument that is not used beside a Ref")
    assert capture.execution is not None
    assert capture.execution.outputs[0].values == f"{32 * 4 * 16 * 8 * 0.5:.0f}."
    assert len(capture.execution.seconds) > 1


def test_values_inside_the_program(captured: Captured) -> None:
    # What a function closes over stays on all devices.
    alone = SCRIPT.replace("    counter[...] += 1\n", "").replace("state, unused, x", "state, x").replace(", 1.0,", ",")
    capture = captured(alone, reference=True, probe="constraints")
    assert not [m.text for m in capture.messages if m.phase == "probe" and m.level != "info"]
    report = inspect(capture)
    constraints = [value.probe for value in report.probes if value.primitive == "sharding_constraint"]
    (constrained,) = [probe for probe in constraints if probe.when == "after"]
    assert [(shard.minimum, shard.maximum) for shard in constrained.shards] == [(8.0, 8.0)] * 8
    assert capture.reference is not None
    assert capture.reference.undefined is None
    assert capture.reference.compared
    assert not capture.reference.differs


MODULE = """\
module @jit_f {
  func.func public @main(%arg0: tensor<8xf32> {a = "%b loc(unknown)"} loc(unknown), %arg1: tensor<f32> loc("y")) -> \
(tensor<f32> {jax.result_info = ""}) {
    return %arg1 : tensor<f32> loc(#loc)
  }
}
"""


def test_names_in_the_text() -> None:
    text = named(MODULE, Names(['say "x"\\', "z"], ["x afterwards"]))
    assert '{a = "%b loc(unknown)"} loc("say \\"x\\"\\\\"), %arg1: tensor<f32> loc("z"))' in text
    assert '{jax.result_info = "x afterwards"}' in text
    assert named(MODULE, Names(["x", "y", "z"], ["x"])) == MODULE
    assert named(MODULE, Names(["", ""], [])) == MODULE


def test_refs_are_results_behind_the_others_or_where_jax_says() -> None:
    """`in_mut` are the arguments that are Refs, `out_mut` for each result the Ref that it is, None for another."""
    changed = SimpleNamespace(in_mut=[1], out_mut=[None, 1, 2])

    def names(mutated: object, kept: set[int] | None = frozenset({0, 1})) -> Names | None:  # type: ignore[assignment]
        args = {"mut": mutated, "kept_var_idx": kept}
        lowered = SimpleNamespace(_lowering=SimpleNamespace(compile_args=args))
        return names_of(lowered, ["x", "ref", "unused"], ["result"])

    assert names(changed) == (["x", "ref", ""], ["result", "ref afterwards", ""])
    assert names(None) == (["x", "ref"], ["result"])
    for less in ({"in_mut": [1]}, {"out_mut": [1]}, {}):
        assert names(SimpleNamespace(**less)) is None
    assert names(None, None) is None
