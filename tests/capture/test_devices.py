"""How many fake devices a script gets."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.environment import child_environment, user_devices
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.worker.needed_devices import wanted
from shardscope.inspector.targets.target import parse_target

from .conftest import Captured

MESH = """
    import jax, numpy as np
    from jax.sharding import Mesh
    {mesh}
    def fn():
        return 1
"""


def device_count(capture: Capture) -> int:
    assert capture.failure is None, capture.failure
    assert capture.complete
    assert capture.subject is not None
    return capture.subject.device_count


@pytest.mark.parametrize(
    ("mesh", "count"),
    [
        ("mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ('a', 'b'))", 4),
        ("mesh = jax.make_mesh((4, 4), ('a', 'b'))", 16),
        ("mesh = Mesh(np.array(jax.devices()).reshape(32, 16), ('a', 'b'))", 512),
        ("mesh = Mesh(np.array(jax.devices()).reshape(-1, 2), ('a', 'b'))", 8),
        ("assert len(jax.devices()) == 6", 6),
        ("if jax.device_count() < 12: raise RuntimeError(f'12 devices wanted, found {jax.device_count()}')", 12),
        ("last = jax.devices()[9]", 10),
        ("mesh = Mesh(np.array(jax.devices()).reshape(2, -1, 4, 3), ('a', 'b', 'c', 'd'))", 24),
        ("import sys; n = jax.device_count()\n    if n % 20: print('no devices'); sys.exit(1)", 20),
    ],
)
def test_as_many_as_the_script_needs(captured: Captured, mesh: str, count: int) -> None:
    assert device_count(captured(MESH.format(mesh=mesh), live=False)) == count


def test_needed_only_by_the_function(captured: Captured) -> None:
    capture = captured("""
        import jax, numpy as np
        from jax.sharding import NamedSharding, PartitionSpec as P
        def fn():
            mesh = jax.make_mesh((16,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
            return jax.lax.with_sharding_constraint(np.ones(16), NamedSharding(mesh, P("x")))
    """)
    assert device_count(capture) == 16
    assert len(capture.subject.device_assignment) == 16 if capture.subject else False


def test_a_failure_says_on_how_many_devices_it_was(captured: Captured) -> None:
    capture = captured("""
        import jax
        mesh = jax.make_mesh((10,), ("x",))
        def fn():
            raise ValueError(f"of {mesh.size}")
    """)
    assert capture.failure is not None
    assert (capture.failure.said, capture.failure.devices) == ("of 10", 10)


def test_the_number_that_was_asked_for(captured: Captured) -> None:
    assert device_count(captured(MESH.format(mesh=""), devices=5, live=False)) == 5


def test_too_few_of_the_number_that_was_asked_for(captured: Captured) -> None:
    capture = captured(MESH.format(mesh="mesh = jax.make_mesh((4, 2), ('a', 'b'))"), devices=4)
    assert capture.failure is not None
    assert capture.failure.kind == "usage"
    assert capture.failure.message.startswith("8 devices are needed, but there are 4:")
    assert capture.failure.hint == "--devices 8"


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=3'",
        "import os; os.environ['XLA_FLAGS'] += ' --xla_force_host_platform_device_count=3'",
        "import jax; jax.config.update('jax_num_cpu_devices', 3)",
    ],
)
def test_the_number_that_the_script_sets(captured: Captured, line: str) -> None:
    assert device_count(captured(f"{line}\nimport jax\ndef fn(): return 1\n", live=False)) == 3


def test_a_demand_that_cannot_be_met_is_told_as_it_first_was(captured: Captured) -> None:
    capture = captured(MESH.format(mesh="raise ValueError(f'{jax.device_count() + 1} devices, please')"))
    assert capture.failure is not None
    assert capture.failure.kind == "function"
    assert capture.failure.message == "ValueError: 9 devices, please"


# Texts of NumPy and of JAX 0.7.1, 0.10.2 and 0.12.0, as they print them.
@pytest.mark.parametrize(
    ("message", "line", "count", "expected"),
    [
        ("cannot reshape array of size 8 into shape (2,2)", "", 8, 4),
        ("cannot reshape array of size 12 into shape (5,)", "x.reshape(5)", 8, None),
        ("Number of devices 8 must be >= the product of mesh_shape (4, 4)", "", 8, 16),
        ("Number of devices 8 must equal the product of mesh_shape (2, 2)", "", 8, 4),
        ("compiling computation that requires 16 logical devices, but only 8 XLA devices are available", "", 8, 16),
        ("", "assert jax.device_count() == 4", 8, 4),
        ("list index out of range", "d = jax.devices()[15]", 8, 16),
        ("list index out of range", "d = layers[15]", 8, None),
        ("not divisible", "x = jax.device_put(np.ones(4), sharding)", 8, None),
        ("incompatible devices for jitted computation. Got device ids [0, 1, 2, 3] and [0, 1]", "", 8, None),
        ("a device error without numbers", "", 8, None),
        ("needs 99999999 devices", "", 8, None),
        ("dot_general requires shapes (8, 4) and (3, 4)", "x @ y", 8, None),
    ],
)
def test_what_errors_say(message: str, line: str, count: int, expected: int | None) -> None:
    assert wanted(message, line, count) == expected


def test_flags_are_added_to() -> None:
    cpu = parse_target("cpu")
    mine = {"XLA_FLAGS": "--xla_dump_to=x", "HOME": "/h"}
    changed = child_environment(mine, cpu, 4)
    assert changed["XLA_FLAGS"] == "--xla_dump_to=x --xla_force_host_platform_device_count=4"
    assert changed["HOME"] == "/h"
    assert "JAX_NUM_CPU_DEVICES" not in changed
    assert child_environment(mine, cpu, None)["XLA_FLAGS"] == "--xla_dump_to=x"
    assert child_environment({"JAX_NUM_CPU_DEVICES": "2"}, cpu, 4)["JAX_NUM_CPU_DEVICES"] == "4"
    assert "JAX_PLATFORMS" not in child_environment({}, parse_target("local"), None)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, None),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=2 --xla_force_host_platform_device_count=6"}, 6),
        ({"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}, None),
        ({"JAX_NUM_CPU_DEVICES": "3", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, 3),
    ],
)
def test_the_users_own_number(environment: dict[str, str], count: int | None) -> None:
    assert user_devices(environment) == count


WHOLE = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(np.array(jax.devices()), ("x",))
    batch = jax.device_put(np.ones(({size}, 8)), NamedSharding(mesh, P("x")))
    fn = jax.jit(lambda: jnp.sum(batch))
    {more}
"""


@pytest.mark.parametrize(("size", "more", "count"), [(4, "", 4), (12, "", 4), (4, "jnp.ones(8)[:, None] + batch", 4)])
def test_fewer_are_tried_where_all_cannot_share_a_dimension(
    captured: Captured, size: int, more: str, count: int
) -> None:
    """What raises then is another error, or none; how many it was with is said, and what all of them raise."""
    capture = captured(WHOLE.format(size=size, more=more), live=False)
    assert capture.subject is None or capture.subject.device_count == count
    assert (capture.failure is not None) is bool(more)
    assert any("with 8 devices the script raises" in each.text for each in capture.messages)


@pytest.mark.parametrize(("size", "more"), [(17, ""), (4, "jax.device_put(jnp.ones(7), NamedSharding(mesh, P('x')))")])
def test_all_are_kept_where_fewer_do_not_help(captured: Captured, size: int, more: str) -> None:
    capture = captured(WHOLE.format(size=size, more=more))
    assert capture.failure is not None
    assert (capture.failure.devices, "8 times" in capture.failure.message) == (8, True)


def test_hints(captured: Captured) -> None:
    capture = captured("import jax\nfn = jax.devices('axon')\n")
    assert capture.failure is not None
    assert "--target local" in (capture.failure.hint or "")


@pytest.mark.once
def test_more_devices_than_jax_compiles_for(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2049,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        def fn():
            return jax.lax.with_sharding_constraint(jnp.ones(2049), NamedSharding(mesh, P("x")))
    """)
    assert capture.failure is not None
    assert "--target gpu:h100:2049" in (capture.failure.hint or ""), capture.failure
