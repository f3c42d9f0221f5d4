"""Every stage arrives, for every kind of function, and is what the compiler means."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.model import STAGES, Capture, MeshAxis

from .conftest import Captured

KINDS = ["sharded", "mapped", "looped"]
ALL = list(STAGES)


def names(capture: Capture) -> list[str]:
    assert capture.failure is None
    assert capture.complete
    return [stage.name for stage in capture.stages]


@pytest.mark.parametrize("function", KINDS)
def test_all_stages_of_sharded_programs(program: Captured, function: str) -> None:
    capture = program(f"kinds.py:{function}")
    assert names(capture) == ALL
    assert all(stage.dialect == STAGES[stage.name].dialect for stage in capture.stages)
    assert capture.progress is None
    assert {"import", "trace", "lower", "compile", "run"} <= set(capture.timings)


@pytest.mark.parametrize("function", ["donated", "static", "bound", "model", "model.method", "model.jitted_method"])
def test_one_device_has_no_partitioner(program: Captured, function: str) -> None:
    capture = program(f"kinds.py:{function}")
    assert names(capture) == ["jaxpr", "stablehlo", "hlo"]
    assert any("with one device there is nothing to partition" in message.text for message in capture.messages)


@pytest.mark.parametrize("function", KINDS)
def test_texts_are_what_jaxlib_reads(program: Captured, function: str) -> None:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    capture = program(f"kinds.py:{function}")
    with mlir.make_ir_context():
        for name in ("stablehlo", "sdy"):
            stage = capture.stage(name)
            assert stage is not None
            assert ir.Module.parse(stage.source.data).operation.verify()


def test_what_the_partitioner_does_lies_between_its_stages(program: Captured) -> None:
    capture = program("kinds.py:mapped")
    before, after, final = (capture.stage(name) for name in ("hlo-before", "hlo-spmd", "hlo"))
    assert before is not None
    assert after is not None
    assert final is not None
    assert b"f32[8,16]" in before.source.data
    assert b"f32[8,16]" not in after.source.data.partition(b"entry_computation_layout")[2].partition(b"\n")[2]
    assert b"all-reduce(" in final.source.data
    assert b"is_scheduled=true" in final.source.data


def test_stablehlo_has_locations(program: Captured) -> None:
    stage = program("kinds.py:looped").stage("stablehlo")
    assert stage is not None
    assert 'kinds.py":' in stage.source.text()
    assert "capture/worker" not in stage.source.text()


def test_subject(program: Captured) -> None:
    subject = program("kinds.py:sharded").subject
    assert subject is not None
    assert subject.function == "sharded"
    assert (subject.platform, subject.device_count, subject.target) == ("cpu", 8, "cpu")
    assert (subject.jax, subject.jaxlib) == (jax.__version__, __import__("jaxlib").__version__)
    (mesh,) = subject.meshes
    assert mesh.name == "mesh"
    assert mesh.axes == (MeshAxis("x", 4), MeshAxis("y", 2))
    assert mesh.device_ids == tuple(range(8))
    assert subject.device_assignment == tuple(range(8))


def test_devices_in_the_order_of_the_mesh(captured: Captured) -> None:
    capture = captured("""
        import jax, numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        here = Mesh(np.array(jax.devices())[[3, 1, 0, 2]].reshape(2, 2), ("a", "b"))
        @jax.jit
        def fn(x):
            return x.sum(0)
        fn_inputs = (jax.ShapeDtypeStruct((4, 4), np.float32, sharding=NamedSharding(here, P("a", "b"))),)
    """)
    assert capture.complete
    assert capture.subject is not None
    assert capture.subject.meshes[0].device_ids == (3, 1, 0, 2)
    assert capture.subject.device_assignment == (3, 1, 0, 2)


def test_explicit_meshes_and_types(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
        def fn(a):
            return a * 2
        fn_inputs = (jax.ShapeDtypeStruct((8, 16), jnp.bfloat16, sharding=NamedSharding(mesh, P("x", None))),)
    """)
    assert names(capture) == ALL
    assert capture.arguments[0].type == "bf16[8@x,16]"
    assert capture.outputs[0].type == "bf16[8@x,16]"
    assert capture.subject is not None
    assert capture.subject.meshes[0].axes == (MeshAxis("x", 4, "explicit"), MeshAxis("y", 2, "auto"))


def test_arguments_and_results(program: Captured) -> None:
    capture = program("kinds.py:sharded")
    assert [(v.path, v.type, v.spec) for v in capture.arguments] == [
        ("a", "f32[8,16]", "P('x', None)"),
        ("b", "f32[16,4]", "P(None, 'y')"),
    ]
    assert [(v.path, v.type, v.spec) for v in capture.outputs] == [("result", "f32[8,4]", "P('x', 'y')")]


def test_paths_in_pytrees_and_donation(program: Captured) -> None:
    capture = program("kinds.py:donated")
    assert [(v.path, v.type, v.donated) for v in capture.arguments] == [
        ("state['count']", "i32[]", True),
        ("state['w']", "f32[8,4]", True),
        ("step", "f32[8,4]", False),
    ]
    assert [v.path for v in capture.outputs] == ["result['count']", "result['w']"]
    assert capture.memory is not None
    assert capture.memory.aliased == 8 * 4 * 4 + 4
    assert capture.memory.arguments == 2 * 8 * 4 * 4 + 4


@pytest.mark.parametrize(("function", "expected"), [("static", 1 * 3 + 1), ("bound", 1 + 2 + 1)])
def test_static_and_bound_arguments(program: Captured, function: str, expected: float) -> None:
    capture = program(f"kinds.py:{function}")
    assert [v.path for v in capture.arguments] == ["x", "offset", "rest[0]"]
    assert capture.execution is not None
    assert capture.execution.outputs[0].minimum == capture.execution.outputs[0].maximum == expected


@pytest.mark.parametrize(("function", "expected"), [("model", 1), ("model.method", 2), ("model.jitted_method", -1)])
def test_callable_objects_and_methods(program: Captured, function: str, expected: float) -> None:
    capture = program(f"kinds.py:{function}")
    assert [v.path for v in capture.arguments] == ["x"]
    assert capture.execution is not None
    assert capture.execution.outputs[0].mean == expected


def test_arguments_that_are_no_arrays_are_static(program: Captured) -> None:
    capture = program("kinds.py:with_modes")
    assert [v.path for v in capture.arguments] == ["x"]
    assert capture.execution is not None
    assert capture.execution.outputs[0].values == "[1., 1., 1.]"


def test_compiler_messages(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        from functools import partial
        @partial(jax.jit, donate_argnums=0)
        def fn(x):
            return x.sum()
        fn_inputs = (jnp.ones((4, 4)),)
    """)
    (message,) = [message for message in capture.messages if "donated" in message.text]
    assert (message.level, message.phase) == ("warning", "lower")
    assert "float32[4,4]" in message.text
    assert "donated" not in capture.stderr


def test_the_partitioners_own_words_are_messages(captured: Captured) -> None:
    if jax.__version_info__ < (0, 7, 2):
        pytest.skip("XLA of that time says nothing about this program")
    capture = captured("""
        import jax, numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("x", "y", "z"))
        def fn(a):
            a = jax.lax.with_sharding_constraint(a, NamedSharding(mesh, P(("x", "y", "z"), None)))
            return jax.lax.with_sharding_constraint(jax.numpy.sin(a), NamedSharding(mesh, P(None, ("z", "x"))))
        fn_inputs = (jax.ShapeDtypeStruct((16, 16), np.float32),)
    """)
    (message,) = [message for message in capture.messages if "Involuntary full rematerialization" in message.text]
    assert (message.level, message.phase) == ("warning", "compile")
    assert message.location is not None
    assert message.location.startswith("spmd_partitioner.cc:")
    assert "spmd_partitioner" not in capture.stderr


def test_values_against_numpy(program: Captured) -> None:
    capture = program("kinds.py:mapped")
    assert capture.execution is not None
    (output,) = capture.execution.outputs
    expected = np.arange(8 * 16.0).reshape(8, 16) @ np.arange(16 * 4.0).reshape(16, 4)
    assert (output.path, output.type, output.spec) == ("result", "f32[8,4]", "P('x')")
    assert (output.minimum, output.maximum) == (expected.min(), expected.max())
    assert output.mean == pytest.approx(expected.mean())
    assert output.values is not None
    assert np.array_equal(np.array(eval(output.values)), expected)
    assert len(capture.execution.seconds) >= 1
    assert not capture.execution.seeded_inputs


def test_donated_arguments_survive_repeated_runs(program: Captured) -> None:
    execution = program("kinds.py:donated").execution
    assert execution is not None
    assert len(execution.seconds) > 1
    assert execution.outputs[0].values == "1"


def test_references_are_written_to_anew_in_each_run(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        make = getattr(jax, "new_ref", None) or jax.experimental.mutable_array
        total = make(jax.device_put(jnp.zeros(4), jax.NamedSharding(mesh, jax.P("x"))))
        @jax.jit
        def fn(total, x):
            total[...] += x
            return total[...]
        inputs = (total, jnp.arange(4.0))
    """)
    assert capture.complete, capture.failure
    assert capture.execution is not None
    assert capture.execution.outputs[0].values == "[0., 1., 2., 3.]"


def test_values_that_are_not_finite_and_keys(program: Captured) -> None:
    execution = program("kinds.py:nothing").execution
    assert execution is not None
    whole, infinite, nan, key = execution.outputs
    assert (whole.minimum, whole.mean, whole.maximum, whole.non_finite) == (0, 1, 2, 0)
    assert (infinite.non_finite, infinite.mean, infinite.values) == (1, None, "inf")
    assert (nan.non_finite, nan.maximum) == (1, None)
    assert (key.type, key.minimum, key.values) == ("key<fry>[]", None, None)


def test_no_live_run(captured: Captured) -> None:
    capture = captured("def fn():\n    return 1\n", live=False)
    assert capture.complete
    assert capture.execution is None


def test_a_run_that_would_not_fit_is_not_begun(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        def fn(x):
            return x + 1
        fn_inputs = (jax.ShapeDtypeStruct((1 << 50,), jnp.int8),)
    """)
    assert capture.complete
    assert capture.execution is None
    assert any(message.text.startswith("no live run: it takes 2251799.8 GB") for message in capture.messages)


def test_an_exception_while_it_runs(captured: Captured) -> None:
    capture = captured("""
        import jax
        def broken(x):
            raise ValueError("in the callback")
        def fn():
            return jax.pure_callback(broken, jax.ShapeDtypeStruct((), "float32"), 1.0)
    """)
    assert capture.failure is not None
    assert (capture.failure.kind, capture.failure.phase) == ("function", "run")
    assert "in the callback" in capture.failure.message + capture.failure.details + capture.stderr
    assert {"jaxpr", "stablehlo", "hlo"} <= {stage.name for stage in capture.stages}


def test_seeds(captured: Captured) -> None:
    text = """
        import jax
        def fn(x, i, k):
            return x, i, jax.random.uniform(k)
        fn_inputs = (jax.ShapeDtypeStruct((8,), "bfloat16"), jax.ShapeDtypeStruct((8,), "int8"),
                     jax.ShapeDtypeStruct((), jax.random.key(0).dtype))
    """
    first, again, other = (captured(text, seed=seed).execution for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.seeded_inputs
    assert [output.values for output in first.outputs] == [output.values for output in again.outputs]
    assert all(a.values != b.values for a, b in zip(first.outputs, other.outputs, strict=True))
    assert all(output.non_finite == 0 and output.minimum != output.maximum for output in first.outputs[:2])
