"""Gradients against differences of values: what is wrong is found with its factor, and nothing else."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import Derivative, Gradients
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.worker.probes import gradients
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report.gradients import wrong_gradients

from tests.findings.test_variants import PROGRAMS

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX gradients are not checked")


def expected() -> dict[tuple[str, str], float]:
    """`@factors(x=4)` of each loss, by its name and the argument's."""
    return {
        (node.name, each.arg or ""): float(ast.literal_eval(each.value))
        for node in ast.parse((PROGRAMS / "gradients.py").read_bytes()).body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for each in decorator.keywords
    }


def test_wrong_gradients_are_found_with_their_factors() -> None:
    capture = last_capture(Request(f"{PROGRAMS / 'gradients'}.py:program", live=False, gradients=True))
    assert capture.complete, capture.failure
    assert capture.gradients is not None
    assert capture.gradients.undefined is None
    assert len(capture.gradients.checked) == 24
    found = {(each.derivative.of, each.derivative.argument): each.factor for each in wrong_gradients(capture.gradients)}
    assert found == pytest.approx(expected() | {("of_a_tree", "both['x']"): 4})
    findings = [each for each in inspect(capture).findings if each.rule == "SS24"]
    assert len(findings) == len(expected()) + 1
    assert {each.severity for each in findings} == {"error"}
    assert all(len(each.message) <= 100 and each.axes for each in findings)


def test_derivatives_inside_of_another_jit() -> None:
    capture = last_capture(Request(f"{PROGRAMS / 'gradients'}.py:inside", live=False, gradients=True))
    assert capture.gradients is not None
    assert [each.argument for each in capture.gradients.checked] == ["x", "w"]
    (wrong,) = wrong_gradients(capture.gradients)
    assert (wrong.derivative.argument, wrong.factor) == ("x", pytest.approx(4))


WRAPPER = """
import jax
def gradient(function):
    def differentiated(_hidden):
        return function(_hidden)
    return lambda *args: jax.grad(differentiated)(*args)
"""

WRAPPED = """
import sys, jax.numpy as jnp
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
from wrapper import gradient

def program(x):
    return gradient(lambda x: (x["w"] ** 2).sum())(x)

inputs = ({"w": jnp.arange(4.0)},)
"""


def test_a_derivative_that_a_library_takes(tmp_path: Path) -> None:
    """Its line is the user's, and the library's own names are not used."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "wrapper.py").write_text(WRAPPER)
    script = tmp_path / "script.py"
    script.write_text(WRAPPED)
    capture = last_capture(Request(f"{script}:program", live=False, gradients=True))
    assert capture.gradients is not None
    (derivative,) = capture.gradients.checked
    line = next(number for number, text in enumerate(WRAPPED.splitlines(), 1) if "return gradient" in text)
    assert (derivative.file, derivative.line) == (str(script), line)
    assert derivative.argument.startswith("argument 0")


EXPLICIT = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4,), ("model",))

@jax.custom_vjp
def summed(x):
    return jax.lax.psum(x @ x, "model")

def backward(x, g):
    return (jax.lax.psum(jnp.ones(()), "model") * jax.lax.psum(g, "model") * 2 * x,)

summed.defvjp(lambda x: (summed(x), x), backward)

def total(x):
    return jax.shard_map(summed, mesh=mesh, in_specs=P("model"), out_specs=P(), check_vma=False)(x)

def program(x):
    return jax.grad(lambda x: total(x) ** 2)(x)

def inputs():
    return (jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, P("model"))),)
"""


def test_explicit_types_are_derived_outside_of_jit_too(tmp_path: Path) -> None:
    """The cotangent comes as a quarter on each of four devices: to count these and to sum as well is once too often."""
    script = tmp_path / "explicit.py"
    script.write_text(EXPLICIT)
    capture = last_capture(Request(f"{script}:program", live=False, gradients=True))
    assert capture.gradients is not None
    assert capture.gradients.undefined is None
    assert [each.factor for each in wrong_gradients(capture.gradients)] == [pytest.approx(4)]


STRICT = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
jax.config.update("jax_numpy_dtype_promotion", "strict")
rows = jnp.arange(8.0, dtype="float32")

def mapped(scale):
    return jax.shard_map(lambda a: jnp.sin(scale * a), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(rows)

def program():
    return jax.vjp(mapped, 0.2)[0], jax.grad(lambda a: jnp.sum(a * a * a))(rows)

program_inputs = ()
"""


def test_numbers_of_python_stay_numbers_and_few_bits_are_moved_far(tmp_path: Path) -> None:
    """An array of float64 would not go with float32; and one of float32 has to be moved by more than its rounding."""
    script = tmp_path / "strict.py"
    script.write_text(STRICT)
    capture = last_capture(Request(f"{script}:program", live=False, gradients=True))
    assert capture.gradients is not None
    assert capture.gradients.undefined is None
    assert len(capture.gradients.checked) == 2
    assert wrong_gradients(capture.gradients) == ()
    assert all(abs(each.slope / each.difference - 1) < 1e-3 for each in capture.gradients.checked)


def test_what_a_decorator_does_is_called() -> None:
    """Python says that the loss is what it wraps, and only it takes a derivative."""

    def loss(x: Any) -> Any:
        return (x**3).sum()

    @functools.wraps(loss)
    def slope(x: Any) -> Any:
        return jax.grad(loss)(x)

    for function in (slope, jax.jit(slope), jax.jit(jax.jit(slope))):
        (derivative,) = gradients.check(function, (np.arange(1.0, 4.0),), {}, 0).checked
        assert derivative.argument == "x"
    assert gradients.check(loss, (np.arange(1.0, 4.0),), {}, 0).checked == ()


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("ratio", [1.0, 1.0 + 1e-6, 1.01, 2.0, 0.0, -1.0])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_a_gradient_is_wrong_where_it_is_another_number(scale: float, ratio: float, spread: float) -> None:
    """Not where differences are rounding alone, nor where they vary as much as they deviate: by numpy's `isclose`."""
    each = Derivative("f", "x", ratio * scale, scale, spread * abs(ratio - 1) * scale, None, 0)
    is_close = np.isclose(each.slope, each.difference, rtol=1e-3, atol=1e-9)
    found = wrong_gradients(Gradients((each,), None))
    assert [wrong.factor for wrong in found] == ([] if is_close or spread else [pytest.approx(ratio)])


def test_the_gradient_of_a_constant_is_rounding() -> None:
    def constant(x: Any) -> Any:
        return (jnp.sin(x) ** 2 + jnp.cos(x) ** 2).sum()

    def slope(x: Any) -> Any:
        return jax.grad(constant)(x)

    found = gradients.check(slope, (np.linspace(0.1, 3, 7),), {}, 0)
    assert len(found.checked) == 1
    assert wrong_gradients(found) == ()
    tripled = replace(found.checked[0], slope=0.0, difference=3.0, spread=0.0)
    (wrong,) = wrong_gradients(Gradients((tripled,), None))
    assert wrong.factor == 0
    (wrong,) = wrong_gradients(Gradients((replace(tripled, slope=3.0, difference=0.0),), None))
    assert wrong.factor is None
