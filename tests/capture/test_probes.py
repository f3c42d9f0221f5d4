"""Values on each device are those that the program has there."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.values import Probe
from shardscope.inspector.capture.worker.probes import keeping, probing
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.elements import shard_elements

from tests.sweeps import sampled

from .conftest import Captured

TUTORIAL = """
    import jax, jax.numpy as jnp, numpy as np
    from functools import partial
    from jax.sharding import Mesh, PartitionSpec as P

    mesh1d = Mesh(np.array(jax.devices()[:4]), ("i",))
    mesh2d = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("i", "j"))
    digits = jnp.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2])
    few = jnp.array([3, 9, 5, 2])
    square = jnp.arange(16).reshape(4, 4)

    def mapped(f, out=P("i"), mesh=mesh1d, spec=P("i")):
        return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=out)

    psum, psum_inputs = mapped(lambda x: jax.lax.psum(x, "i"), P(None)), (digits,)
    psum_i = mapped(lambda x: jax.lax.psum(x, "i"), P(None, "j"), mesh2d, P("i", "j"))
    psum_ij = mapped(lambda x: jax.lax.psum(x, ("i", "j")), P(None, None), mesh2d, P("i", "j"))
    psum_i_inputs = psum_ij_inputs = (square,)
    gathered, gathered_inputs = mapped(lambda x: jax.lax.all_gather(x, "i", tiled=True)), (few,)
    stacked, stacked_inputs = mapped(lambda x: jax.lax.all_gather(x, "i", tiled=False)), (few,)
    scattered, scattered_inputs = mapped(lambda x: jax.lax.psum_scatter(x, "i", tiled=True)), (digits,)
    permuted = mapped(lambda x: jax.lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]))
    permuted_inputs = (jnp.arange(8),)
    exchanged, exchanged_inputs = mapped(lambda x: jax.lax.all_to_all(x, "i", 0, 0, tiled=True)), (digits,)
"""

BLOCKS = [[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8], [9, 7, 1, 2]]
SQUARES = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
TUTORIAL_PRINTS = {
    "psum": (BLOCKS, [[22, 20, 12, 17]] * 4),
    "psum_i": (SQUARES, [[8, 10, 16, 18], [12, 14, 20, 22]] * 2),
    "psum_ij": (SQUARES, [[20, 24, 36, 40]] * 4),
    "gathered": ([[3], [9], [5], [2]], [[3, 9, 5, 2]] * 4),
    "stacked": ([[3], [9], [5], [2]], [[3, 9, 5, 2]] * 4),
    "scattered": (BLOCKS, [[22], [20], [12], [17]]),
    "permuted": ([[0, 1], [2, 3], [4, 5], [6, 7]], [[6, 7], [0, 1], [2, 3], [4, 5]]),
    "exchanged": (BLOCKS, [[3, 5, 5, 9], [1, 9, 3, 7], [4, 2, 5, 1], [1, 6, 8, 2]]),
}
"""What the shard_map tutorial prints on TFRT_CPU_0 to TFRT_CPU_3, BEFORE and AFTER."""


def probes(capture: Capture, primitive: str, when: str) -> list[Probe]:
    assert capture.complete, capture.failure
    found = [value.probe for value in inspect(capture).probes if re.fullmatch(primitive, value.primitive)]
    said = [message for message in capture.messages if message.phase == "probe" and message.level != "info"]
    assert not said, said
    return [probe for probe in found if probe.when == when]


def held(probe: Probe) -> list[list[object]]:
    """The elements on each device, in mesh order."""
    return [list(shard_elements(probe, number) or ()) for number in range(len(probe.shards))]


COMMUNICATION = "psum.*|all_gather|reduce_scatter|ppermute|all_to_all"


@pytest.mark.parametrize("function", sampled(TUTORIAL_PRINTS, 8, 3))
def test_the_tutorials_numbers(function: str, captured: Captured) -> None:
    capture = captured(TUTORIAL, function)
    (before,), (after,) = (probes(capture, COMMUNICATION, when) for when in ("before", "after"))
    assert (held(before), held(after)) == TUTORIAL_PRINTS[function]
    for probe in (before, after):
        assert [shard.device for shard in probe.shards] == [0, 1, 2, 3]
        two = function in ("psum_i", "psum_ij")
        places = [(0, 0), (0, 1), (1, 0), (1, 1)] if two else [(0,), (1,), (2,), (3,)]
        assert [shard.coordinates for shard in probe.shards] == places
        assert probe.axes == (("i", "j") if two else ("i",))
    assert capture.probed is not None
    assert capture.probed.shown == capture.probed.probed  # nothing is communicated for the probes


NESTED = """
    import jax, jax.numpy as jnp, numpy as np
    from functools import partial
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    block = jnp.arange(4.0)

    def varying(value):
        return lax.pcast(value, "x", to="varying") if hasattr(lax, "pcast") else lax.pvary(value, "x")

    def mapped(**options):
        return partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), **options)

    @mapped()
    def scan(x):
        def step(carry, time):
            return lax.ppermute(carry, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]), time
        return lax.scan(step, x, jnp.arange(20))[0]

    @mapped()
    def nested_scans(x):
        def inner(carry, _):
            return carry + varying(lax.psum(carry, "x")), None
        def outer(carry, _):
            return lax.scan(inner, carry, None, 2)[0], None
        return lax.scan(outer, x, None, 3)[0]

    @mapped(check_vma=False)
    def while_varying(x):
        return lax.while_loop(lambda c: c[0] < 2.5, lambda c: c + 1, x)

    @mapped()
    def while_shared(x):
        def body(state):
            n, v = state
            return n + 1, v + varying(lax.pmax(v, "x"))
        return lax.while_loop(lambda s: s[0] < 3, body, (0, x))[1]

    @mapped()
    def until_all_are_there(x):
        def condition(v):
            return lax.pmin(v, "x")[0] < 2.5
        return lax.while_loop(condition, lambda v: v + 1, x)

    @mapped()
    def branch(x):
        total = lax.psum(x, "x")
        return lax.cond(total[0] > 5, lambda v: varying(lax.pmax(v, "x")), lambda v: varying(lax.pmin(v, "x")), x)

    @jax.custom_vjp
    def doubled(x):
        return lax.psum(x, "x")
    doubled.defvjp(lambda x: (doubled(x), x), lambda x, g: (varying(g) * jnp.cos(x) * 3,))

    @jax.grad
    def custom(x):
        return jnp.sum(jax.shard_map(lambda x: doubled(x), mesh=mesh, in_specs=P("x"), out_specs=P())(x))

    @jax.grad
    def remat(x):
        @jax.checkpoint
        def layer(x):
            return jnp.sin(lax.all_gather(jnp.sin(x), "x", tiled=True))
        return jnp.sum(jax.shard_map(layer, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x))

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())
    def remat_in_scan(x):
        def layer(h, w):
            return jnp.sin(h * w), None
        def loss(w):
            return lax.psum(lax.scan(jax.checkpoint(layer), x, w)[0].sum(), "x")
        return jax.value_and_grad(loss)(jnp.arange(1.0, 4.0))

    @jax.jit
    def constraint(x):
        return lax.with_sharding_constraint(x * 2, jax.NamedSharding(mesh, P("x"))) + 1

    scan_inputs = nested_scans_inputs = while_varying_inputs = while_shared_inputs = (block,)
    until_all_are_there_inputs = (block,)
    branch_inputs = custom_inputs = remat_inputs = remat_in_scan_inputs = constraint_inputs = (block,)
"""


def test_scan(captured: Captured) -> None:
    capture = captured(NESTED, "scan", iterations=(0, 3, 18))
    before = probes(capture, "ppermute", "before")
    assert [probe.iteration for probe in before] == [(0,), (3,), (18,), (19,)]  # those asked for, and the last
    for probe in before:
        assert held(probe) == [[float(n)] for n in np.roll(np.arange(4), probe.iteration[0] % 4)]


def test_nested_scans(captured: Captured) -> None:
    before = probes(captured(NESTED, "nested_scans"), "psum.*", "before")
    assert [probe.iteration for probe in before] == [(i, j) for i in range(3) for j in range(2)]
    value = np.arange(4.0, dtype=np.float32)
    for probe in before:
        assert held(probe) == [[float(n)] for n in value]
        value = value + value.sum()


def test_while_whose_bound_varies(captured: Captured) -> None:
    capture = captured(NESTED, "while_varying", probe="all", iterations=(0,))
    added = {probe.iteration: probe for probe in probes(capture, "add", "after")}
    assert {key: [s.coordinates for s in probe.shards] for key, probe in added.items()} == {
        (0,): [(0,), (1,), (2,)],  # 3.0 is not less than 2.5: that device does not run at all
        (1,): [(1,)],
        (2,): [(0,)],
    }
    assert held(added[(0,)]) == [[1.0], [2.0], [3.0]]
    assert held(added[(2,)]) == [[3.0]]


def test_while(captured: Captured) -> None:
    before = probes(captured(NESTED, "while_shared"), "pmax", "before")
    assert [probe.iteration for probe in before] == [(0,), (1,), (2,)]
    assert held(before[2]) == [[9.0], [10.0], [11.0], [12.0]]


def test_condition_of_a_while(captured: Captured) -> None:
    capture = captured(NESTED, "until_all_are_there")
    before, after = probes(capture, "pmin", "before"), probes(capture, "pmin", "after")
    assert [probe.iteration for probe in before] == [(0,), (1,), (2,), (3,)]  # 0, 1 and 2 are less than 2.5; 3 ends it
    assert held(before[2]) == [[2.0], [3.0], [4.0], [5.0]]
    assert [held(probe)[0] for probe in after] == [[0.0], [1.0], [2.0], [3.0]]


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="written with the names of JAX 0.10")
def test_summands(captured: Captured) -> None:
    """Of an unreduced value each device holds a summand; `x` squared is read as one, and summed, in a loop."""
    capture = captured(
        NESTED
        + """
    @mapped()
    def summed(x):
        def step(carry, _):
            return carry + varying(lax.psum(lax.pcast(carry, "x", to="unreduced"), "x")), None
        return lax.scan(step, x * x, None, 2)[0]

    summed_inputs = (block,)
""",
        "summed",
    )
    before, after = probes(capture, "unreduced_psum", "before"), probes(capture, "unreduced_psum", "after")
    assert [held(probe) for probe in before] == [[[0.0], [1.0], [4.0], [9.0]], [[14.0], [15.0], [18.0], [23.0]]]
    assert [held(probe) for probe in after] == [[[14.0]] * 4, [[70.0]] * 4]
    assert before[0].type == "f32[1]{U:x}"


def test_only_the_branch_that_was_taken(captured: Captured) -> None:
    capture = captured(NESTED, "branch")
    (probe,) = probes(capture, "pmax", "after")
    assert held(probe) == [[3.0]] * 4
    assert not probes(capture, "pmin", "after")


def test_custom_derivative(captured: Captured) -> None:
    (before,) = probes(captured(NESTED, "custom", probe="all"), "cos", "before")
    assert held(before) == [[0.0], [1.0], [2.0], [3.0]]


def test_backward_and_recomputed(captured: Captured) -> None:
    capture = captured(NESTED, "remat")
    gathered, scattered = probes(capture, "all_gather", "before"), probes(capture, "reduce_scatter", "after")
    assert len(gathered) == 2  # forward, and once more for the backward pass
    assert held(gathered[0]) == held(gathered[1])
    x = np.arange(4.0)
    assert np.allclose(np.array(held(scattered[0])).ravel(), 4 * np.cos(np.sin(x)), rtol=1e-6)


def test_what_is_recomputed_keeps_the_axes_of_each_value(captured: Captured) -> None:
    """The gradient of a parameter that all devices share is summed where it is not varying."""
    capture = captured(NESTED, "remat_in_scan")
    total = probes(capture, "psum.*", "after")[0]
    x = np.arange(4.0)
    assert np.allclose(held(total)[0], np.sin(np.sin(np.sin(x) * 2) * 3).sum(), rtol=1e-6)


def test_constraint_of_a_jitted_function(captured: Captured) -> None:
    (probe,) = probes(captured(NESTED, "constraint", probe="constraints"), "sharding_constraint", "after")
    assert held(probe) == [[0.0], [2.0], [4.0], [6.0]]
    assert [shard.part for shard in probe.shards] == ["0:1", "1:2", "2:3", "3:4"]


def test_shard_maps_in_one_another_over_explicit_axes(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        from jax import lax
        from jax.sharding import PartitionSpec as P, AxisType, NamedSharding
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
        jax.set_mesh(mesh)
        reshard = getattr(jax, "reshard", None) or jax.sharding.reshard
        def outer(a):
            inner = jax.shard_map(lambda b: lax.psum(b, "y"), in_specs=P("y"), out_specs=P(), axis_names={"y"})
            return inner(reshard(lax.psum(a, "x"), P("y", None)))
        fn = jax.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
        fn_inputs = (jax.device_put(jnp.arange(8.0).reshape(4, 2), NamedSharding(mesh, P("x", None))),)
    """)
    first, second = probes(capture, "psum.*", "before")
    assert (first.axes, second.axes) == (("x",), ("x", "y"))
    assert held(first) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert held(second) == [[4, 6], [8, 10]] * 2
    assert [shard.coordinates for shard in second.shards] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    last = probes(capture, "psum.*", "after")[-1]
    assert held(last) == [[12, 16]] * 4


def test_shard_map_of_the_mesh_in_the_context(captured: Captured) -> None:
    """In the jaxpr the mesh is abstract: it has axes and no devices. The branch without a shard_map has none of it."""
    capture = captured("""
        import jax, jax.numpy as jnp
        from jax import lax
        from jax.sharding import PartitionSpec as P, NamedSharding
        mesh = jax.make_mesh((4,), ("x",))
        jax.set_mesh(mesh)
        mapped = jax.shard_map(lambda a: lax.psum(a * lax.axis_index("x"), "x"), in_specs=P("x"), out_specs=P())
        fn = jax.jit(lambda flag, a: lax.cond(flag, mapped, lambda a: jnp.zeros(1), a))
        fn_inputs = True, jax.device_put(jnp.arange(1.0, 5.0), NamedSharding(mesh, P("x")))
    """)
    said = [message.text for message in capture.messages if message.phase == "probe"]
    assert not [text for text in said if not text.startswith("collectives are not timed")]
    (before,) = probes(capture, "psum.*", "before")
    assert held(before) == [[0.0], [2.0], [6.0], [12.0]]
    assert [shard.device for shard in before.shards] == [0, 1, 2, 3]


def test_of_too_many_values_those_that_leave_a_shard_map_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_SITES", 2)
    mesh = jax.make_mesh((1,), ("x",))

    def body(value: jax.Array) -> tuple[jax.Array, jax.Array]:
        most = jnp.exp(jnp.cos(jnp.sin(jnp.tan(value))))
        return most, jnp.tanh(most)

    mapped = jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    value = jnp.ones(4)
    prober = probing.Prober({}, lambda *_: False, True, ())
    results, kept = prober.run(jax.jit(mapped).trace(value).jaxpr, [value])
    whole = probing.Prober({}, lambda *_: False, True, ())
    monkeypatch.setattr(keeping, "MAX_SITES", 2000)
    _, every = whole.run(jax.jit(mapped).trace(value).jaxpr, [value])
    assert list(kept) == [*list(every)[:2], *list(every)[-2:]]
    assert prober.left_out == {*every} - {*kept}
    assert prober.left_out
    assert [bool((kept[key] == every[key]).all()) for key in kept] == [True] * 4
    assert np.allclose(results[0], np.exp(np.cos(np.sin(np.tan(1.0)))))


def test_a_death_while_looking_loses_nothing_else(captured: Captured) -> None:
    capture = captured(
        """
        import itertools, os, signal, jax, numpy as np
        calls = itertools.count()
        def counted(x):
            if next(calls) > 5:  # after the warm-up and five runs
                os.kill(os.getpid(), signal.SIGKILL)
            return x
        def fn(x):
            return jax.pure_callback(counted, jax.ShapeDtypeStruct((), np.float32), x)
        fn_inputs = (np.float32(1),)
    """,
        reference=True,
    )
    assert capture.complete
    assert capture.failure is None
    assert capture.execution is not None
    (message,) = [message for message in capture.messages if message.phase == "probe" and message.level != "info"]
    assert "SIGKILL" in message.text


def test_bits(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        fn = jax.shard_map(lambda *a: tuple(jax.lax.ppermute(x, "x", [(0, 1), (1, 0)]) for x in a),
                           mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        odd = [-0.0, 1.5, float("nan"), float("-inf")]
        fn_inputs = tuple(jnp.array(odd, d) for d in (jnp.float32, jnp.bfloat16, jnp.float16, jnp.float8_e5m2)) + (
            jnp.array([1 + 2j, -1j]), jnp.array([-7, 5], jnp.int8), jnp.array([True, False]))
    """)
    after = probes(capture, "ppermute", "after")
    assert [probe.dtype for probe in after] == [
        "float32", "bfloat16", "float16", "float8_e5m2", "complex64", "int8", "bool"
    ]  # fmt: skip
    for probe in after[:4]:
        (nan, infinite), (zero, half) = held(probe)
        assert np.isnan(float(str(nan)))
        assert (infinite, str(zero), half) == (float("-inf"), "-0.0", 1.5)
    assert [held(probe) for probe in after[4:]] == [[[-1j], [1 + 2j]], [[5], [-7]], [[False], [True]]]


def test_large_arrays_are_summarised(captured: Captured) -> None:
    capture = captured(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        fn = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
        fn_inputs = (jnp.arange(2 * 512 * 300.0).reshape(1024, 300).at[0, 0].set(jnp.inf),)
        """,
        window=(500, 200),
    )
    (before,) = probes(capture, "psum.*", "before")
    assert (before.shape, before.start, before.extent) == ((512, 300), (448, 200), (64, 64))
    second = before.shards[1]
    assert (second.minimum, second.maximum, second.non_finite) == (512 * 300.0, 2 * 512 * 300.0 - 1, 0)
    assert before.shards[0].non_finite == 1
    assert held(before)[1][:2] == [(512 + 448) * 300.0 + 200, (512 + 448) * 300.0 + 201]
