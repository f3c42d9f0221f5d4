"""Lists of Keras variables' values have the variables' names; a model here has as much of Keras' interface as is read.

Each variable has a value of its own, by which what the report says of a name is compared with what the script prints.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture

KERAS = """
class Variable:
    def __init__(self, path, value):
        self.path, self._value, self.shape = path, value, value.shape

class Optimizer:
    variables = ()

class Model:
    non_trainable_variables, optimizer = [], None
"""

SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import jax, jax.numpy as jnp
import keras

class Net(keras.Model):
    def __init__(self, *sizes):
        self.trainable_variables = [
            keras.Variable(f"net/{{name}}/kernel", jnp.full((size, 2), size))
            for name, size in zip(("up", "down"), sizes)
        ]
        self.metrics_variables = [keras.Variable("mean/total", jnp.zeros(()))]

    def train_step(self, state, data):
        trainable, others, slots, metrics = state
        return {{"loss": data.sum()}}, ([2 * each for each in trainable], others, slots, [each + 1 for each in metrics])

net, other = Net(4, 4), Net(4, 4)
values = [each._value for each in net.trainable_variables]
method = jax.jit(net.train_step)
method_inputs = ((values, [], [], [jnp.zeros(())]), jnp.ones(3))

@jax.jit
def custom(weights, x, plain):
    return [each + x for each in weights], plain

custom_inputs = ([each._value for each in other.trainable_variables], 1.0, [jnp.ones((4, 2)), jnp.ones((4, 2))])
swapped_inputs = (custom_inputs[0][::-1], 1.0, custom_inputs[2])
"""

OF_STEP = [f"[0]['net']['{name}']['kernel']" for name in ("up", "down")] + ["[3]['mean']['total']"]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keras")
    (folder / "keras.py").write_text(KERAS)
    path = folder / "script.py"
    path.write_text(SCRIPT.format(folder=str(folder)))
    return path


def paths(function: str, inputs: str | None = None) -> tuple[list[str], list[str]]:
    final = last_capture(Request(function, inputs=inputs, only_trace=True))
    assert final.failure is None, final.failure
    return [each.path for each in final.arguments], [each.path for each in final.outputs]


def test_the_step_of_a_trainer(script: Path) -> None:
    given, found = paths(f"{script}:method")
    assert given == [*(f"state{keys}" for keys in OF_STEP), "data"]
    assert found == ["result[0]['loss']", *(f"result[1]{keys}" for keys in OF_STEP)]


def test_a_function_that_is_given_values_of_variables(script: Path) -> None:
    """Two models have variables of these names and shapes; `plain` has the shapes too, but not the values."""
    names = [f"['net']['{name}']['kernel']" for name in ("up", "down")]
    given, found = paths(f"{script}:custom")
    assert given == [*(f"weights{keys}" for keys in names), "x", "plain[0]", "plain[1]"]
    assert found == [*(f"result[0]{keys}" for keys in names), "result[1][0]", "result[1][1]"]


def test_values_in_another_order_are_another_list(script: Path) -> None:
    given, _ = paths(f"{script}:custom", "swapped_inputs")
    assert given == ["weights[0]", "weights[1]", "x", "plain[0]", "plain[1]"]
