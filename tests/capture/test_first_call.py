"""The first call of a function by its script is what is captured: its arguments, its mesh, whatever it is called by."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.pipeline import inspect

from tests.sweeps import sampled

from .conftest import last

Captured = Callable[..., Capture]

SCRIPT = """
    import functools, sys
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import PartitionSpec as P, NamedSharding, Mesh
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))

    def put(a, *spec):
        return jax.device_put(a, NamedSharding(mesh, P(*spec)))

    def logged(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)
        return inner

    by_variable = jax.jit(lambda a, b: jnp.sum(a @ b))

    def by_alias(a, b):
        return jnp.sum(a @ b)
    alias = jax.jit(by_alias)

    @logged
    @functools.partial(jax.jit, static_argnames=("n",))
    def decorated(a, b, n=2):
        return jnp.sum((a @ b) ** n)

    def plain(a, b):
        return jnp.sum(a @ b)

    class Model:
        def __init__(self, b):
            self.b = b
        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, a):
            return jnp.sum(a @ self.b)
        @functools.cached_property
        def made(self):
            return jax.jit(lambda a: jnp.sum(a @ jax.device_put(self.b, NamedSharding(mesh, P("x")))))

    def ahead(a, b):
        return jnp.sum(a @ b)

    def mapped(a):
        return jax.lax.psum(jnp.sum(a), "x")

    def part(w, x):
        return jnp.sum(x @ w)

    class Layer:
        def __call__(self, a, b):
            return jnp.sum(a @ b)

    def configured(a, b, config):
        return {"sum": jnp.sum}[config["reduce"]](a @ b)

    def sized(a, b, size):
        return jnp.sum((a @ b).reshape(size))

    by_lambda = lambda a, b: jnp.sum(a @ b)

    @jax.jit
    def whole(w, x):
        return jax.grad(part)(w, x)

    def main():
        a, b = put(jnp.ones((16, 32)), "x", None), put(jnp.ones((32, 8)), None, "y")
        @jax.jit
        def local(a, b):
            return jnp.sum(a @ b)
        by_variable(a, b), alias(a, b), decorated(a, b, n=3), plain(a, b), Model(b).apply(a), local(a, b)
        Model(np.ones((32, 8), np.float32)).made(a)
        jax.jit(ahead).lower(a, b).compile()
        jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=P("x"), out_specs=P()))(a)
        whole(b, a), Layer()(a, b), configured(a, b, {"reduce": "sum"}), sized(a, b, [4, -1])
        jax.jit(jax.vmap(by_lambda))(a[None], b[None])
        with mesh:
            jax.jit(lambda a: jax.lax.with_sharding_constraint(a, P("x")), donate_argnums=0)(a)
        sys.exit(0)

    if __name__ == "__main__":
        main()
"""

KINDS = (
    *("by_variable", "by_alias", "decorated", "plain", "Model.apply", "local", "ahead", "mapped"),
    *("Layer", "configured", "sized", "Model.made"),
)


@pytest.mark.parametrize("function", sampled(KINDS, (*KINDS[::2], "Model.made"), 2))
def test_call_of_any_kind(captured: Captured, function: str) -> None:
    capture = captured(SCRIPT, function, live=False, probe="none")
    assert capture.failure is None
    assert capture.arguments[0].spec == "P('x', None)"
    hlo = capture.stage("hlo")
    assert hlo is not None
    assert b"all-reduce" in hlo.source.data
    assert capture.subject is not None
    assert capture.subject.function == {"Layer": "Layer.__call__"}.get(function, function)


def test_part_of_a_program_is_shown_within_it(captured: Captured) -> None:
    capture = captured(SCRIPT, "part", live=False)
    assert capture.subject is not None
    assert capture.subject.function == "whole"
    assert any("part is called while JAX traces whole" in message.text for message in capture.messages)


def test_lambda_that_only_jax_calls(captured: Captured) -> None:
    capture = captured(SCRIPT, "by_lambda", live=False, probe="none")
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == "by_lambda"
    assert any("by_lambda is called while JAX traces a lambda" in message.text for message in capture.messages)


@pytest.mark.once
def test_lambda_that_pmap_maps_has_its_name(captured: Captured) -> None:
    text = """
        import jax, jax.numpy as jnp
        normalize = lambda x: x / jax.lax.psum(x, "i")
        jax.pmap(normalize, axis_name="i")(jnp.arange(4.0))
    """
    capture = captured(text, "normalize", live=False, probe="none")
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == "normalize"
    assert not [message for message in capture.messages if "while JAX traces" in message.text]


OBJECTS = """
    import functools
    import jax, jax.numpy as jnp

    def logged(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)
        return inner

    class Agent:
        def __init__(self):
            self.update = jax.jit(self.update_by)
            self.scaled = functools.partial(self.scale, by=2.0)
            self.handed = jax.jit(lambda x: x.sum())

        def update_by(self, x):
            return jnp.sin(x)

        @functools.partial(jax.jit, static_argnames=("self", "by"))
        def scale(self, x, by):
            return x * by

        @property
        def made(self):
            return jax.jit(lambda x: jnp.tanh(x))

        @logged
        @functools.partial(jax.jit, static_argnums=0)
        def decorated(self, x):
            return jnp.exp(x)

    def call(function, *args):
        return function(*args)

    def main():
        local, x = Agent(), jnp.ones(5)
        local.update(x)

    other, agent = Agent(), Agent()
    for each, x in (other, jnp.ones(2)), (agent, jnp.ones(3)):
        each.update(x), each.scaled(x), each.made(x), each.decorated(x), call(each.handed, x)
    x = jnp.ones(4)
    agent.update(x), agent.scaled(x), agent.made(x), agent.decorated(x), call(agent.handed, x)
    main()
"""


@pytest.mark.once
@pytest.mark.parametrize(
    ("function", "size"),
    [
        *(("agent.update", 3), ("agent.scaled", 3), ("agent.made", 4), ("agent.decorated", 3), ("agent.handed", 3)),
        *(("local.update", 5), ("Agent.update_by", 2)),
    ],
)
def test_functions_that_objects_of_the_script_hold(captured: Captured, function: str, size: int) -> None:
    """The call on the object that is named, wherever the script keeps it."""
    capture = captured(OBJECTS, function, live=False, probe="none")
    assert capture.failure is None
    assert [each.type for each in capture.arguments] == [f"f32[{size}]"]


def test_values_are_those_of_the_call(captured: Captured) -> None:
    text = """
        import sys
        import jax, jax.numpy as jnp
        @jax.jit
        def fn(x):
            return x * 2
        def main(value):
            for step in range(10**9):
                fn(jnp.float32(value))
        main(float(sys.argv[1]))
    """
    capture = captured(text, argv=("21",))
    assert capture.failure is None
    assert capture.execution is not None
    assert capture.execution.outputs[0].values == "42."
    assert not capture.execution.seeded_inputs


def test_module_and_its_relative_imports(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "model.py").write_text(
        "import jax\n\nclass Model:\n    def step(self, x):\n        return jax.numpy.sin(x)\n"
    )
    (tmp_path / "package" / "train.py").write_text(
        "from .model import Model\nif __name__ == '__main__':\n    Model().step(1.0)\n"
    )
    for function in ("package.train:Model.step", "package/train.py:step"):
        capture = last(Request(function, directory=str(tmp_path), live=False))
        assert capture.failure is None
        jaxpr = capture.stage("jaxpr")
        assert jaxpr is not None
        assert b"sin" in jaxpr.source.data


def test_notebook(tmp_path: Path) -> None:
    cells = [
        "%matplotlib inline\nfiles = !ls\nimport jax\nget_ipython().system('ls')",
        "def fn(x):\n    return jax.numpy.sin(x)",
        "fn?\n%timeit -n 2 -r3 -q (1 + 2)\nfor _ in range(3):\n    y = %time -q fn(2.0)\ndisplay(y)",
    ]
    path = tmp_path / "example.ipynb"
    path.write_text(
        json.dumps(
            {"cells": [{"cell_type": "code", "source": [f"{line}\n" for line in cell.split("\n")]} for cell in cells]}
        )
    )
    capture = last(Request(f"{path}:fn", live=False))
    assert capture.failure is None
    assert capture.stage("hlo") is not None


def test_lines_of_tracebacks_of_a_notebook_have_their_cells(tmp_path: Path) -> None:
    cells = ["import jax", "", "%time\n@jax.jit\ndef fn(x):\n    y = x\n    return y + missing", "1\nfn(2.0)"]
    path = tmp_path / "example.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}))
    capture = last(Request(str(path), live=False))
    assert capture.failure is not None
    told = capture.failure.details.splitlines()
    for line in ("    return y + missing", "fn(2.0)"):
        number, cell = next((number, cell) for number, cell in enumerate(cells, 1) if line in cell)
        head = told[told.index(f"    {line.strip()}") - 1]
        assert f"(cell {number}, line {cell.splitlines().index(line) + 1})" in head


def test_exception_before_the_call(captured: Captured) -> None:
    text = """
        import jax
        def fn(x):
            return x
        def load(path):
            raise FileNotFoundError(path)
        if __name__ == "__main__":
            fn(load("data"))
    """
    capture = captured(text)
    assert capture.failure is not None
    assert (capture.failure.type, capture.failure.phase) == ("FileNotFoundError", "script")
    assert [(frame.function, frame.line) for frame in capture.failure.stack] == [("load", 6), ("<module>", 8)]


def test_going_on(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import jax
        @jax.jit
        def fn(x):
            return x * 2
        for number in range(3):
            print(fn(float(number)))
        raise KeyError("after the call")
    """)
    (tmp_path / "script.py").write_text(script)
    capture = last(Request(f"{tmp_path}/script.py:fn", go_on=True))
    assert capture.stdout.split() == ["0.0", "2.0", "4.0"]
    assert capture.execution is not None
    assert capture.failure is not None
    assert capture.failure.type == "KeyError"
    capture = last(Request(f"{tmp_path}/script.py:fn"))
    assert capture.stdout == ""
    assert capture.failure is None


@pytest.mark.once
@pytest.mark.parametrize("function", ["", "fn"])
def test_help_of_a_script_is_shown(captured: Captured, function: str) -> None:
    text = """
        import argparse
        import jax
        parser = argparse.ArgumentParser(prog="train.py", description="Trains.")
        parser.parse_args()
        fn = jax.jit(lambda x: x)
        fn(1.0)
    """
    capture = captured(text, function, argv=("--help",))
    assert capture.failure is not None
    assert capture.failure.details.splitlines()[:3] == ["usage: train.py [-h]", "", "Trains."]


def test_no_call(captured: Captured) -> None:
    capture = captured("import jax\ndef fn(x):\n    return x\ndef other(x):\n    return x\n", "fn")
    assert capture.failure is not None
    assert "ended without a call of fn" in capture.failure.message
    for owner, kind in (("jax", "module jax"), ("fn", "PjitFunction")):
        capture = captured("import jax\nfn = jax.jit(lambda x: x)\ndef g(x):\n    return fn(x)\ng(1.0)\n", f"{owner}.g")
        assert capture.failure is not None
        assert capture.failure.message.startswith(f"{kind} in ")
        assert capture.failure.message.endswith(" has no 'g'")
    capture = captured("raise SystemExit('was run')\ndef step(x):\n    return x\n", "stepp")
    assert capture.failure is not None
    assert capture.failure.hint == "did you mean step?"


PROGRAMS = """
    import functools
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, P("x"))
    w = jax.jit(lambda key: jax.random.normal(key, (64, 64)), out_shardings=rows)(jax.random.key(0))
    x = jax.device_put(jnp.ones((64, 64)), rows)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(w, x):
        return w - 1e-5 * jax.grad(lambda w: jnp.sum((x @ w) ** 2))(w)

    @jax.jit
    def evaluate(w, x):
        return jnp.sum(x @ w)

    evaluate(w, x)
    for number in range({steps}):
        w = step(w, x)
    {then}
"""


@pytest.mark.once
def test_the_costliest_program(captured: Captured) -> None:
    """The loop is left when it only repeats what it has done; arguments that were donated since have their values."""
    capture = captured(PROGRAMS.format(steps=10**9, then=""), "", name="train.py")
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == "step"
    assert capture.execution is not None
    assert not capture.execution.seeded_inputs
    others = {each.name: each for each in capture.others}
    assert others["evaluate"].calls == 1
    assert others["evaluate"].call is not None
    assert others["evaluate"].call.line == 18


KEYS = """
    import functools
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(key, x):
        key, once = jax.random.split(key)
        return key, x + jax.random.normal(once, x.shape)

    def first():
        return jax.random.key(3), jax.device_put(jnp.zeros(8), NamedSharding(mesh, P("x")))
    step(*first())
"""


def test_a_donated_key_has_its_value_in_each_run(captured: Captured) -> None:
    """JAX hands on the buffers of a key on several devices, even where it may not."""
    capture = captured(KEYS, "step", name="keys.py")
    assert capture.failure is None, capture.failure
    assert capture.execution is not None
    once = jax.random.split(jax.random.key(3))[1]
    (drawn,) = (each for each in capture.execution.outputs if each.path == "result[1]")
    expected = np.asarray(jax.random.normal(once, (8,)))
    assert (drawn.minimum, drawn.maximum) == pytest.approx((expected.min(), expected.max()), rel=1e-6)


LOWERED = """
    import jax, jax.numpy as jnp
    halved = jax.jit(lambda x: jnp.sin(x) / 2)

    @jax.jit
    def step(w, ref):
        ref[...] = jax.grad(lambda w: jnp.sum(jax.checkpoint(halved)(w) ** 2))(w)
        return w - ref[...]

    for _ in range(3):
        step(jnp.ones(8), jax.new_ref(jnp.ones(8)))
"""


@pytest.mark.skipif(not hasattr(jax, "new_ref"), reason="this JAX has none")
def test_what_the_script_has_lowered_is_lowered_again(captured: Captured) -> None:
    """All operations have their equations, as before the script has called it."""
    before, after = (captured(LOWERED, function, live=False) for function in ("step", ""))
    assert before.failure is None
    assert after.equations == before.equations != b""


@pytest.mark.once
def test_a_long_loop_before_the_call(captured: Captured) -> None:
    """Programs that the loop runs ahead do not take the threads that the one before them waits for."""
    capture = captured(PROGRAMS.format(steps=1000, then="last = jax.jit(jnp.sum); last(w)"), "last", live=False)
    assert capture.failure is None
    assert [each.spec for each in capture.arguments] == ["P('x')"]


@pytest.mark.once
@pytest.mark.parametrize("function", ["main", "fit"])
def test_function_that_is_no_program(captured: Captured, function: str) -> None:
    """Of a loop of steps, or of one that reads results, the step is captured, with its own arguments."""
    text = """
        import jax, jax.numpy as jnp
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
        step = jax.jit(lambda x: jnp.sum(x ** 2))
        def fit(x, steps):
            return [float(step(x)) for number in range(steps)]
        def main():
            fit(jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("x"))), 10 ** 9)
        main()
    """
    capture = captured(text, function, live=False)
    assert capture.failure is None
    assert [(each.type, each.spec) for each in capture.arguments] == [("f32[16,8]", "P('x')")]
    assert any("the program in it that" in message.text for message in capture.messages)


@pytest.mark.once
@pytest.mark.parametrize("function", ["jax.vmap(jnp.linalg.cholesky)", "jnp.linalg.cholesky"])
def test_a_function_of_jax_that_the_script_jits_is_its_program(captured: Captured, function: str) -> None:
    text = f"""
        import jax, jax.numpy as jnp
        jax.jit({function})(jnp.stack([jnp.eye(8)] * 4))
    """
    capture = captured(text, "", live=False)
    assert capture.failure is None
    assert [each.type for each in capture.arguments] == ["f32[4,8,8]"]
    assert not [each.text for each in capture.messages if "jitted" in each.text]


OUTSIDE_OF_JIT = """
    import os
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices("gpu"))
    a = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P(None, "x")))
    b = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P("x")))

    def total(a):
        return jax.lax.psum(a.sum(), "x")

    {call}
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("call", "function", "warned"),
    [
        ("jax.shard_map(total, mesh=mesh, in_specs=P('x'), out_specs=P())(b)", "total", False),
        ("jax.pmap(total, axis_name='x')(jnp.ones((8, 16)))", "total", False),
        ("a @ b", "matmul", True),
    ],
)
def test_outside_of_jit(captured: Captured, call: str, function: str, warned: bool) -> None:
    """The shard_map that is called, or the operation that sends most."""
    capture = captured(OUTSIDE_OF_JIT.format(call=call), "", live=False)
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == function
    texts = [message.text for message in capture.messages]
    assert any("sends most" in text for text in texts) is warned
    assert "devices of 'gpu' were asked for: fake CPU devices stand in for them" in texts
    hlo = capture.stage("hlo")
    assert hlo is not None
    assert b"all-reduce" in hlo.source.data


DRIVERS = """
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

    @jax.jit
    def step(w):
        w = jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("x")))
        return w - 0.1 * jnp.tanh(w) * jnp.sum(jnp.sin(w)) + jnp.cos(w) * jnp.exp(-w * w) - jnp.log1p(w * w)

    def epoch(w):
        for _ in range(4):
            w = step(w)
        return w

    def waits(w):
        return step(w).block_until_ready()

    def sets(w):
        with jax.set_mesh(mesh):
            return step(w)

    def initializes():
        jax.distributed.initialize("localhost:1234", 1, 0)
        global mesh
        mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
        return step(jnp.ones((8, 64)))

    def leaves(w):
        step(w)
        raise SystemExit(0)

    def shows(w):
        print(w.shape)

    def twice(w):
        return step(w) + jnp.sin(w) * 2 - jnp.tanh(w) + jnp.cos(w)

    def breaks(w):
        return step(w)[:3] + w

    if "{name}" == "initializes":
        initializes()
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    if "{name}" == "late":
        jnp.ones(8)
        initializes()
    {name}(jnp.ones((8, 64)))
"""


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("epoch", "step"),
        ("waits", "step"),
        pytest.param("sets", "step", marks=pytest.mark.once),
        pytest.param("initializes", "step", marks=pytest.mark.once),
        pytest.param("leaves", "step", marks=pytest.mark.once),
        ("twice", "twice"),
    ],
)
def test_functions_that_run_programs(captured: Captured, name: str, program: str) -> None:
    """Where jit of them would be another program than what runs, or none, the report is of what runs."""
    capture = captured(DRIVERS.format(name=name), name, live=False)
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == program
    assert any(f"{name} " in each.text for each in capture.messages)


@pytest.mark.once
def test_what_a_function_raises_itself_is_told_as_it_is(captured: Captured) -> None:
    late = captured(DRIVERS.format(name="late"), "initializes", live=False)
    assert late.failure is not None
    assert "must be called before any JAX calls" in late.failure.message
    capture = captured(DRIVERS.format(name="breaks"), "breaks", live=False)
    assert capture.failure is not None
    assert "incompatible shapes for broadcasting" in capture.failure.message
    assert "During handling" not in (capture.failure.details or "")
    capture = captured(DRIVERS.format(name="shows"), "shows", live=False)
    assert capture.failure is not None
    assert "shows returns nothing" in capture.failure.message
    assert capture.failure.hint is None  # running the whole script would report no more


TRANSFORMED = """
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    w = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P(None, "y")))
    x = jax.device_put(jnp.ones((16, 64)), NamedSharding(mesh, P("x")))

    @jax.jit
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    def twice(w, x):
        return loss(w, x) + loss(w, 2 * x)

    changed = {call}
    for _ in range(3):
        changed(w, x)
"""


@pytest.mark.parametrize(
    "call", ["jax.grad(loss)", "jax.value_and_grad(twice)", "jax.vmap(loss, in_axes=(None, 0))", "jax.jacrev(loss)"]
)
def test_a_transformation_outside_of_jit_is_one_program(captured: Captured, call: str) -> None:
    """It sends what the same sends as a jitted function, and its arguments have the names of the function's."""
    capture, jitted = (
        captured(TRANSFORMED.format(call=call), "", live=False),
        captured(TRANSFORMED.format(call=f"jax.jit({call})"), "", live=False),
    )
    assert capture.failure is jitted.failure is None
    assert [(each.path, each.spec) for each in capture.arguments] == [("w", "P(None, 'y')"), ("x", "P('x')")]
    assert [each.type for each in capture.outputs] == [each.type for each in jitted.outputs]
    assert not capture.others
    sent = [inspect(each).collectives for each in (capture, jitted)]
    one, other = (Counter((each.kind, each.axes, each.step_bytes) for each in found) for found in sent)
    assert one == other != Counter()


def test_standard_input(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import jax\ndef fn(x):\n    return x\nfn(jax.numpy.ones(int(input())))\n")
    (tmp_path / "input").write_text("5\n")
    capture = last(Request(f"{tmp_path}/script.py:fn", stdin=f"{tmp_path}/input", live=False))
    assert capture.failure is None
    assert capture.arguments[0].type == "f32[5]"


def test_what_raises_wins(captured: Captured) -> None:
    """Over the costliest program: a program that raises, with why, or what the script raises after it."""
    wrong = "jax.jit(lambda a: a @ jnp.ones((3, 3)), out_shardings=rows)(w)"
    capture = captured(PROGRAMS.format(steps=2, then=wrong), "", live=False)
    assert capture.failure is not None
    assert capture.failure.phase == "trace"
    assert capture.failure.stack[-1].line == 21
    assert "During handling" not in capture.failure.details
    assert capture.subject is not None
    assert capture.subject.function == "<lambda>"
    capture = captured(PROGRAMS.format(steps=2, then="open('/missing/file')"), "", live=False)
    assert capture.failure is not None
    assert (capture.failure.type, capture.failure.stack[0].line) == ("FileNotFoundError", 21)
    assert capture.subject is not None
    assert capture.subject.function == "step"
    assert capture.stage("hlo") is not None


def test_a_script_of_a_cluster_runs_as_one_process(captured: Captured) -> None:
    """On as many devices as it needs, with nothing of the first attempt in what it printed."""
    capture = captured(
        """
        import jax, jax.numpy as jnp
        from jax.sharding import NamedSharding, PartitionSpec as P
        jax.distributed.initialize(coordinator_address="10.0.0.1:1234", num_processes=4, process_id=0)
        print("devices", jax.device_count())
        mesh = jax.make_mesh((16,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        fn = jax.jit(lambda x: x.sum())
        fn(jax.device_put(jnp.ones((32, 8)), NamedSharding(mesh, P("d"))))
    """,
        live=False,
    )
    assert capture.failure is None
    assert capture.stdout.splitlines() == ["devices 16"]
    assert capture.stderr == ""
    said = [each for each in capture.messages if "jax.distributed.initialize(num_processes=4) was left" in each.text]
    assert [each.level for each in said] == ["warning"]


MESHES = """
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

    @jax.jit
    def total(a):
        return jnp.sum(jax.lax.with_sharding_constraint(a * 2, P("{axis}")))

    with {context}:
        total(jnp.ones((64, 8)))
    jax.set_mesh(jax.make_mesh((4, 2), ("y", "z"), axis_types=(AxisType.Explicit,) * 2))
    jnp.ones(3) + 1
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("context", ["jax.set_mesh(mesh)", "mesh"])
def test_the_mesh_in_force_is_that_of_the_call(captured: Captured, context: str) -> None:
    """Not the one at the end of the script, where the costliest program is known; nor none, where one has raised."""
    capture = captured(MESHES.format(axis="x", context=context), "", live=False)
    assert capture.failure is None
    assert capture.subject is not None
    assert capture.subject.function == "total"
    assert (hlo := capture.stage("hlo")) is not None
    assert b"all-reduce" in hlo.source.data
    capture = captured(MESHES.format(axis="unknown", context=context), "", live=False)
    assert capture.failure is not None
    assert "unknown" in capture.failure.message
    assert capture.failure.phase == "trace"


DONATED = """
    import equinox, jax, jax.numpy as jnp

    @equinox.filter_jit(donate="all")
    def step(w, x):
        return w + jnp.sum(x)

    w = jnp.ones((8, SIZE))
    for _ in range(3):
        w = step(w, jnp.ones((4,)))
"""


@pytest.mark.once
@pytest.mark.parametrize(("size", "is_copied"), [(8, True), (8_400_000, False)])
def test_what_a_wrapper_donates(captured: Captured, size: int, is_copied: bool) -> None:
    """The arrays of the call are kept by the wrapper, but gone: small ones were copied, others have random values."""
    pytest.importorskip("equinox")
    capture = captured(DONATED.replace("SIZE", str(size)), "")
    assert capture.failure is None
    assert capture.execution is not None
    assert capture.execution.seeded_inputs is not is_copied
    (result,) = (each for each in capture.execution.outputs if each.type == f"f32[8,{size}]")
    assert (result.minimum == result.maximum == 5) is is_copied


def test_functions_of_libraries_with_the_same_name_are_not_meant(captured: Captured) -> None:
    capture = captured(
        """
        import types
        import jax, jax.numpy as jnp

        library = types.ModuleType("library")
        exec("def fn(x):\\n    return x", library.__dict__)

        @jax.jit
        def fn(x):
            return jnp.sum(x)

        library.fn(jnp.ones((4, 4)))
        fn(jnp.ones(8))
        """
    )
    assert capture.failure is None
    assert [each.type for each in capture.arguments] == ["f32[8]"]
