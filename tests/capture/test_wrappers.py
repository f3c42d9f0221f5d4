"""The program of a function that brings a jit of its own is the one that its own `lower` gives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect

from tests.sweeps import sampled, xla_flags

from .conftest import PROGRAMS, Captured

pytest.importorskip("flax")
pytest.importorskip("equinox")

FUNCTIONS = ("nnx_step", "sgd", "eqx_step", "descend", "mapped", "behind", "trainer.loss", "late")
MARK = "=" * 30

ORACLE = f"""
import sys
sys.path.insert(0, {str(PROGRAMS)!r})
import wrapped
for name in {FUNCTIONS!r}:
    print(wrapped.ORACLES[name]().compile().as_text())
    print({MARK!r})
"""


@pytest.fixture(scope="module")
def oracles() -> dict[str, str]:
    """What JAX compiles for each function without us."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags(8),
    }
    run = [sys.executable, "-W", "ignore", "-c", ORACLE]
    printed = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(zip(FUNCTIONS, map(str.lstrip, printed.split(MARK)), strict=False))


def instructions(hlo: str) -> Counter[str]:
    return Counter(re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = .*? ([\w-]+)\(", hlo, re.MULTILINE))


def aliases(hlo: str) -> list[str]:
    return re.findall(r"\{\d*\}: \(\d+, \{\}", hlo.partition("\n")[0])


def text(capture: Capture) -> str:
    assert capture.failure is None, capture.failure
    stage = capture.stage("hlo")
    assert stage is not None
    return stage.source.text()


@pytest.mark.parametrize("function", sampled(FUNCTIONS, ("nnx_step", "eqx_step", "mapped", "behind"), ("nnx_step",)))
def test_the_compiled_program_is_the_functions_own(program: Captured, oracles: dict[str, str], function: str) -> None:
    mine, theirs = text(program(f"wrapped.py:{function}", live=function == "nnx_step")), oracles[function]
    assert instructions(mine) == instructions(theirs)
    assert instructions(mine)["all-reduce"] or function == "behind"
    assert aliases(mine) == aliases(theirs)


@pytest.mark.once
def test_arguments_and_results_have_the_users_names(program: Captured) -> None:
    names = {"model.up.kernel", "model.up.bias", "model.down.kernel", "model.down.bias"}
    nnx_step = program("wrapped.py:nnx_step")
    assert nnx_step.execution is not None
    assert [output.path for output in nnx_step.execution.outputs] == [value.path for value in nnx_step.outputs]
    assert {value.path for value in nnx_step.arguments} == {*names, "x"}
    assert {value.path for value in nnx_step.outputs} == {*(f"updated {name}" for name in names), "result"}
    gradients = {value.path for value in program("wrapped.py:gradients", live=False).outputs}
    of_parameters = {f"result['{layer}']['{part}']" for layer in ("up", "down") for part in ("kernel", "bias")}
    assert gradients == {*(f"updated {name}" for name in names), *of_parameters}
    eqx_step = program("wrapped.py:eqx_step", live=False)
    layers = {f".layers[{number}].{part}" for number in range(3) for part in ("weight", "bias")}
    assert {value.path for value in eqx_step.arguments} == {*(f"model{layer}" for layer in layers), "x"}
    results = {value.path for value in eqx_step.outputs}
    assert results - {"flag of eqx.filter_jit"} == {*(f"result[0]{layer}" for layer in layers), "result[1]"}
    mapped = inspect(program("wrapped.py:mapped", live=False))
    assert {value.path for value in mapped.capture.outputs} == {f"result{layer}" for layer in layers}
    assert not [each.message.text for each in mapped.messages if each.message.severity == "error"]


@pytest.mark.parametrize("function", ["nnx_step", "eqx_step"])
def test_the_table_of_shardings_has_these_names(program: Captured, function: str) -> None:
    """So that what is requested of each is known, and what it is in the compiled program is compared."""
    found = program(f"wrapped.py:{function}", live=False)
    rows = {(row.role, row.name): row for row in inspect(found).shardings}
    for role, values in (("argument", found.arguments), ("output", found.outputs)):
        for value in values:
            row = rows.get((role, value.path))
            assert row is not None or value.actual is None, value
            assert row is None or (row.requested is None) is (value.spec is None)


@pytest.mark.once
def test_a_function_without_a_jit_is_told_apart(program: Captured) -> None:
    for function, jit in (("sgd", "nnx.jit"), ("descend", "equinox.filter_jit")):
        said = [message.text for message in program(f"wrapped.py:{function}", live=False).messages]
        assert f"{function} has no jit of its own; shown as {jit} of it" in said
    assert not any("jit of its own" in m.text for m in program("wrapped.py:behind", live=False).messages)


def test_a_function_that_returns_nothing_is_refused(captured: Captured) -> None:
    capture = captured(
        """
        import jax, jax.numpy as jnp
        @jax.jit
        def train_step(x):
            return x * 2
        def main():
            x = jnp.ones(8)
            for _ in range(3):
                x = train_step(x)
            print("done", x.sum())
        """,
        function="main",
    )
    assert capture.failure is not None
    assert capture.failure.kind == "usage"
    assert "main returns nothing" in capture.failure.message
    assert (capture.failure.hint or "").startswith("name the step that it calls (train_step) instead, or run")
    assert capture.stage("hlo") is None


@pytest.mark.parametrize("jit", ["", "@jax.jit"])
@pytest.mark.parametrize("use", ["float(x.sum())", "np.asarray(x)", "x.sum() > 0 and 1"])
def test_a_loop_that_looks_at_values_is_several_programs(captured: Captured, jit: str, use: str) -> None:
    failure = captured(
        f"""
        import jax, jax.numpy as jnp, numpy as np
        step = jax.jit(lambda x: x * 2)
        {jit}
        def main():
            x = step(jnp.ones(8))
            return {use}
        """,
        function="main",
    ).failure
    assert failure is not None
    assert failure.kind == "function"
    assert "shardscope" not in failure.details
    assert "Error: " in failure.message
    assert ("if it runs several programs, see them with: shardscope " in (failure.hint or "")) == (not jit)


CLOSED_OVER = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
w, whole = (jax.device_put(np.ones((16, 16), np.float32), NamedSharding(mesh, P(*spec))) for spec in (("x",), ()))
product = jax.jit(lambda v, w: v @ w)
def step(v): return product(v, w)
def harmless(v): return product(v, whole)
inputs = (jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(mesh, P(None, "x"))),)
if __name__ == "__main__":
    print(*("all-reduce" in product.lower(*inputs, held).compile().as_text() for held in (w, whole)))
"""


@pytest.mark.once
def test_closed_over_sharded_arrays_are_not_what_the_script_calls(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CLOSED_OVER)
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags(8),
    }
    run = [sys.executable, str(script)]
    printed = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == "True"
    for function, expected in (("step", ["f32[16,16] as P('x')"]), ("harmless", [])):
        *_, found = capture(Request(f"{script}:{function}", live=False))
        said = [re.search(r"of it: (.*?)\. Called", message.text) for message in found.messages]
        assert [match[1] for match in said if match] == expected


MAPPED = """
    import jax, jax.numpy as jnp
    def update(state, x):
        return {"step": state["step"] + 1, "w": state["w"] - jax.lax.pmean(x, "i")}
    step = jax.pmap(update, in_axes=(None, 0), axis_name="i")
    step_inputs = ({"step": 7, "w": jnp.ones(4)}, jnp.ones((2, 4)))
"""


def test_numbers_among_the_arguments_of_a_mapped_function(captured: Captured) -> None:
    """A count of steps is no array, and `pmap` makes one of it."""
    capture = captured(MAPPED, function="step", live=False, devices=2)
    assert capture.failure is None, capture.failure
    assert sorted(value.path for value in capture.arguments) == ["state['step']", "state['w']", "x"]
