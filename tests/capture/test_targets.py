"""Captures for devices that are not there: a compiler's package is all that is needed."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective

from .conftest import Captured

libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
cuda = pytest.mark.skipif(
    importlib.util.find_spec("jax_plugins.xla_cuda13") is None if importlib.util.find_spec("jax_plugins") else True,
    reason="jax-cuda13-plugin is not installed",
)

# The four moves of the block matrices, each at the size at which TPUs fuse the last one.
MOVES = """
    import jax, jax.numpy as jnp
    from jax import NamedSharding, P
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    print(jax.default_backend())

    def sharding(*spec):
        return NamedSharding(mesh, P(*spec))

    def zeros(rows, columns, *spec):
        return jnp.zeros((rows, columns), jnp.bfloat16, device=sharding(*spec))

    def fn(a, b, c, d):
        with jax.named_scope("gather"):
            gathered = jax.sharding.reshard(a, sharding("x", None))
        with jax.named_scope("exchange"):
            exchanged = jax.sharding.reshard(b, sharding(None, "x"))
        with jax.named_scope("reduce"):
            gram = jnp.dot(c, c.mT, out_sharding=sharding())
        with jax.named_scope("scatter"):
            product = jnp.dot(a, d, out_sharding=sharding("x", "y"))
        return gathered, exchanged, gram, product

    fn_inputs = (zeros(2048, 8192, "x", "y"), zeros(2048, 8192, "x", None), zeros(2048, 8192, None, "x"),
                 zeros(8192, 1024, "y", None))
"""


def compiled(capture: Capture) -> tuple[Collective, ...]:
    assert capture.complete, capture.failure
    return tuple(collective for collective in inspect(capture).collectives if collective.stage == "hlo")


def axes_of(collective: Collective) -> tuple[str, ...]:
    return tuple(map(str, collective.axes or ()))


@libtpu
def test_block_matrices_on_a_tpu(captured: Captured) -> None:
    capture = captured(MOVES, target="tpu:v4:2x2x1")
    found = compiled(capture)
    assert sorted((c.kind, axes_of(c)) for c in found) == [
        ("all-gather", ("y",)),
        ("all-reduce", ("x",)),
        ("all-to-all", ("x",)),
        ("reduce-scatter", ("y",)),
    ]
    assert {axes_of(c): c.groups for c in found} == {("x",): ((0, 2), (1, 3)), ("y",): ((0, 1), (2, 3))}
    (scattered,) = [c for c in found if c.kind == "reduce-scatter"]
    assert scattered.fused_form == "all-reduce-scatter"
    subject = capture.subject
    assert subject is not None
    assert (subject.platform, subject.device_kind, subject.device_count) == ("tpu", "TPU v4", 4)
    assert [device.coords for device in subject.devices] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    assert capture.stdout == "tpu\n"
    assert [message.text for message in capture.messages] == [
        "fn has no jit of its own; shown as jax.jit of it",
        "jax.default_backend() returned 'tpu'",
    ]
    assert capture.execution is None
    assert capture.stderr == ""
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo"]
    assert capture.peak is not None


ORDERED = """
    import jax, numpy as np
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    made = jax.make_mesh({shape}, ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    utils = Mesh(mesh_utils.create_device_mesh({shape}), ("c", "d"))
    plain = Mesh(np.array(jax.devices()).reshape({shape}), ("e", "f"))

    @jax.jit
    def fn(x):
        return jax.lax.with_sharding_constraint(x * 2, NamedSharding(made, P("b")))

    fn_inputs = (jax.device_put(np.ones(64, np.float32), NamedSharding(made, P("a"))),)
"""

THERE = """
    import jax, json, numpy as np
    from jax.experimental import mesh_utils, topologies
    devices = topologies.get_topology_desc("{name}", platform="tpu", **{options}).devices
    splits = {splits}
    ordered = mesh_utils.create_device_mesh({shape}, devices, allow_split_physical_axes=splits)
    print(json.dumps([[int(d.id) for d in ordered.flat], [int(d.id) for d in devices]]))
"""


@libtpu
@pytest.mark.parametrize(
    ("target", "name", "options", "shape", "splits"),
    [
        ("tpu:v5p:2x2x4", "v5p:2x2x4", {"chip_config_name": "megacore"}, (4, 4), False),
        ("tpu:v5e:4x4", "v5e:4x4", {}, (8, 2), True),
    ],
)
def test_meshes_are_ordered_as_jax_orders_them_there(
    captured: Captured, target: str, name: str, options: dict[str, str], shape: tuple[int, int], splits: bool
) -> None:
    import json
    import os
    import subprocess
    import sys
    import textwrap

    script = ORDERED.format(shape=shape)
    if splits:  # mesh_utils itself does not split the axes of the torus, unless it is told to.
        script = script.replace(f"mesh_utils.create_device_mesh({shape})", f"np.array(jax.devices()).reshape({shape})")
    capture = captured(script, target=target)
    assert capture.complete, capture.failure
    truth = textwrap.dedent(THERE.format(name=name, options=options, shape=shape, splits=splits))
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    told = subprocess.run([sys.executable, "-c", truth], capture_output=True, env=environment, check=True)
    ordered, listed = json.loads(told.stdout)
    assert capture.subject is not None
    meshes = {tuple(axis.name for axis in mesh.axes): list(mesh.device_ids) for mesh in capture.subject.meshes}
    assert meshes["a", "b"] == ordered == list(capture.subject.device_assignment)
    assert meshes["e", "f"] == listed != ordered
    if not splits:
        assert meshes["c", "d"] == ordered


@libtpu
def test_two_captures_side_by_side(captured: Captured) -> None:
    script = "def fn(x):\n    return x * 2\nimport jax\nfn_inputs = (jax.ShapeDtypeStruct((8,), 'float32'),)\n"
    with ThreadPoolExecutor() as pool:
        captures = list(
            pool.map(
                lambda number: captured(script, name=f"script{number}.py", target="tpu:v5e:2x2"), range(2), timeout=120
            )
        )
    assert all(capture.complete for capture in captures), [capture.failure for capture in captures]


@libtpu
def test_what_the_platform_decides_is_told(captured: Captured) -> None:
    capture = captured(
        """
        import jax
        def fn(x):
            y = jax.lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x * 3)
            return jax.lax.platform_dependent(y, cpu=lambda x: x + 1, default=lambda x: x - 5)
        fn_inputs = (jax.ShapeDtypeStruct((8,), "float32"),)
        """,
        target="tpu:v5e:2x2",
    )
    assert capture.complete, capture.failure
    told = [(message.text, (message.location or "").rpartition(":")[2]) for message in capture.messages]
    assert ("lax.platform_dependent: the branch for tpu was taken", "4") in told
    assert ("lax.platform_dependent: the default was taken: there is no branch for tpu", "5") in told
    hlo = capture.stage("hlo")
    assert hlo is not None
    assert b"multiply" in hlo.source.data


@libtpu
def test_what_the_host_would_do_is_left_out_and_told(captured: Captured) -> None:
    capture = captured(
        """
        import jax, numpy as np
        def fn(x):
            def body(c, _):
                jax.debug.print("c {}", c.sum())
                return c * 2, None
            x, _ = jax.lax.scan(body, x, None, length=3)
            return x + jax.pure_callback(np.sin, jax.ShapeDtypeStruct((8,), "float32"), x)
        fn_inputs = (jax.ShapeDtypeStruct((8,), "float32"),)
        """,
        target="tpu:v5e:2x2",
    )
    assert capture.complete, capture.failure
    told = {(message.location or "").rpartition(":")[2]: message.text for message in capture.messages}
    assert told["5"].startswith("debug_")
    assert "was removed" in told["5"]
    assert "it returns zeros" in told["8"]


@libtpu
def test_too_many_devices_for_the_target(captured: Captured) -> None:
    capture = captured(
        "import jax\nmesh = jax.make_mesh((4, 4), ('a', 'b'))\ndef fn(): return 1\n", target="tpu:v4:2x2x1"
    )
    assert capture.failure is not None
    assert capture.failure.kind == "usage"
    assert "16 devices are needed, but there are 4" in capture.failure.message
    assert "a target of 16 devices" in (capture.failure.hint or "")


@libtpu
def test_a_shape_that_is_not_built(captured: Captured) -> None:
    capture = captured(
        "import jax\nmesh = jax.make_mesh((3, 3), ('a', 'b'))\ndef fn(): return 1\n", target="tpu:v5p:3x3x1"
    )
    assert capture.failure is not None
    assert capture.failure.kind == "usage"
    assert "3x3x1" in capture.failure.message


@cuda
def test_gpus(captured: Captured) -> None:
    capture = captured(MOVES, target="gpu:h100:4")
    assert sorted((c.kind, axes_of(c)) for c in compiled(capture)) == [
        ("all-gather", ("y",)),
        ("all-reduce", ("x",)),
        ("all-to-all", ("x",)),
        ("reduce-scatter", ("y",)),
    ]
    assert capture.subject is not None
    assert (capture.subject.platform, capture.subject.device_kind) == ("gpu", "NVIDIA H100 80GB HBM3")
    assert capture.stdout == "gpu\n"


@cuda
def test_nodes_are_told_apart(captured: Captured) -> None:
    script = """
        import jax
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2, 2), ("node", "gpu"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        fn = jax.jit(lambda x: (x.sum(0), x.sum(1)))
        fn_inputs = jax.ShapeDtypeStruct((64, 64), "float32", sharding=NamedSharding(mesh, P("node", "gpu")))
    """
    capture = captured(script, target="gpu:h100:2x2")
    assert capture.subject is not None
    assert [device.slice for device in capture.subject.devices] == [0, 0, 1, 1]
    links = {axes_of(collective): collective.estimate and collective.estimate.link for collective in compiled(capture)}
    assert links == {("node",): "network", ("gpu",): "node"}


@pytest.mark.cold
def test_a_target_without_its_compiler(captured: Captured) -> None:
    script = """
        import os, sys
        os.environ.pop("TPU_LIBRARY_PATH", None)  # what another JAX, in the tests' own process, has set
        sys.modules["libtpu"] = None
        import jax
        mesh = jax.make_mesh((2, 2), ("x", "y"))
        def fn(): return 1
    """
    capture = captured(script, target="tpu:v4:2x2x1")
    assert capture.failure is not None
    assert capture.failure.kind == "usage"
    assert "shardscope targets" in (capture.failure.hint or ""), capture.failure


def test_targets_that_contradict_the_options(captured: Captured) -> None:
    capture = captured("def fn(): return 1\n", target="cpu:4", devices=8)
    assert capture.failure is not None
    assert "cpu:4 has 4 devices" in capture.failure.message
    capture = captured("import jax\ndef fn(): return jax.device_count()\n", target="cpu:4", live=False)
    assert capture.subject is not None
    assert capture.subject.device_count == 4
