"""Where the arguments come from, and what is said when they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import UsageError, is_file, split_function
from shardscope.inspector.capture.spawn import Request
from shardscope.inspector.capture.worker.inputs.arguments import read_argument
from shardscope.inspector.capture.worker.inputs.paths import without_only_indices

from .conftest import Captured, last

SCRIPT = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    def fn(a, b={default}):
        return a, b
"""


def types(capture: Capture) -> list[tuple[str, str, str | None]]:
    assert capture.failure is None, capture.failure
    return [(value.path, value.type, value.spec) for value in capture.arguments]


def told(capture: Capture) -> str:
    assert capture.failure is not None
    assert capture.failure.kind == "usage", capture.failure
    return f"{capture.failure.message}\n{capture.failure.hint}"


def test_command_line_before_all_else(captured: Captured) -> None:
    text = SCRIPT.format(default=1) + "    fn_inputs = inputs = ()\n"
    capture = captured(text, args=("f32[8,16]@x,y", '{"w": ["bf16[4]@-", "i32[2]"], "n": 3}'), live=False)
    assert types(capture) == [
        ("a", "f32[8,16]", "P('x', 'y')"),
        ("b['n']", "i32[]", None),
        ("b['w'][0]", "bf16[4]", "P(None)"),
        ("b['w'][1]", "i32[2]", None),
    ]


@pytest.mark.parametrize(
    ("inputs", "lines"),
    [
        ("mine", "mine = (np.ones(3), 2)\nfn_inputs = ()"),
        ("mine", "def mine(): return np.ones(3), 2"),
        ("data.mine", "class data: mine = (np.ones(3), 2)"),
        (None, "fn.shardscope_inputs = lambda: (np.ones(3), 2)\nfn_inputs = ()"),
        (None, "fn_inputs = (np.ones(3), 2)\ninputs = ()"),
        (None, "inputs = (np.ones(3), 2)"),
        (None, "inputs = (np.ones(3),), {'b': 2}"),
        (None, "def fn_inputs(): return jax.ShapeDtypeStruct((3,), 'float64'), 2"),
    ],
)
def test_arguments_of_the_script(captured: Captured, inputs: str | None, lines: str) -> None:
    indented = "".join(f"    {line}\n" for line in lines.splitlines())
    capture = captured(SCRIPT.format(default=1) + indented, inputs=inputs, live=False)
    assert types(capture) == [("a", "f32[3]", None), ("b", "i32[]", None)]


def test_a_pair_is_arguments_where_it_does_not_fit_as_arguments_and_keywords(captured: Captured) -> None:
    capture = captured(SCRIPT.format(default=1) + "    fn_inputs = ((np.ones(3),), {'w': np.ones(2)})\n", live=False)
    assert types(capture) == [("a[0]", "f32[3]", None), ("b['w']", "f32[2]", None)]


def test_no_arguments_given(captured: Captured) -> None:
    text = told(captured("def fn(a, *, scale): return a\n"))
    assert "ended without a call of fn" in text
    assert "fn_inputs" in text
    assert "--arg" in text
    text = told(captured("def fn(a, *, scale): return a\n", inputs="missing"))
    assert "--inputs missing: script has no 'missing'" in text


def test_missing_names(captured: Captured) -> None:
    script = "def loss(): pass\ndef less(): pass\nvalue = 3\n"
    assert "has no 'lose'\ndid you mean loss?" in told(captured(script, function="lose"))
    assert "it has loss, less" in told(captured(script, function="optimize"))
    assert "value in" in told(captured(script, function="value"))
    assert "is not a function but of type int" in told(captured(script, function="value"))
    assert "compiled no program" in told(captured(script, function=""))
    assert "--inputs batch" in told(captured(script, function="loss", inputs="batch"))


def test_missing_file_and_module(tmp_path: Any) -> None:
    (tmp_path / "train.py").write_text("def fn(): pass\n")
    (tmp_path / "act.py").touch()
    for wrong in ("trian.py:fn", "train:fn", "trian"):
        assert told(last(Request(f"{tmp_path}/{wrong}"))).endswith(f"did you mean {tmp_path}/train.py?")
    for wrong in ("train.py::fn", "train.py.fn"):
        for folder in ("", f"{tmp_path}/"):
            refused = last(Request(f"{folder}{wrong}", directory=str(tmp_path)))
            assert f"did you mean {folder}train.py:fn?" in told(refused)
    assert "did you mean train?" in told(last(Request("trian:fn", directory=str(tmp_path))))
    assert "there is no module 'no_such_module'" in told(last(Request("no_such_module.part:fn")))


def test_interpreters_that_cannot(captured: Captured, tmp_path: Any) -> None:
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    script = "def fn(): return 1\n"
    assert "has no jax" in told(captured(script, python=str(empty / "bin/python")))
    assert "cannot run /no/such/python: No such file or directory" in told(captured(script, python="/no/such/python"))
    assert "does not run as a Python interpreter" in told(captured(script, python="/bin/ls"))
    assert "unknown TPU 'v9'" in told(captured(script, target="tpu:v9"))
    assert "cannot run /no/such/folder: No such file" in told(captured(script, directory="/no/such/folder"))


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[8,16]", ((8, 16), jnp.float32, None)),
        ("f32[]", ((), jnp.float32, None)),
        ("bf16[ 4 ]", ((4,), jnp.bfloat16, None)),
        ("s32[2]", ((2,), jnp.int32, None)),
        ("u8[2]", ((2,), jnp.uint8, None)),
        ("pred[2]", ((2,), jnp.bool_, None)),
        ("bool[2]", ((2,), jnp.bool_, None)),
        ("c64[2]", ((2,), jnp.complex64, None)),
        ("f8_e4m3fn[2]", ((2,), jnp.float8_e4m3fn, None)),
        ("float16[2]", ((2,), jnp.float16, None)),
        ("f32[8,16]@x,y", ((8, 16), jnp.float32, ("x", "y"))),
        ("f32[8,16]@-,x+y", ((8, 16), jnp.float32, (None, ("x", "y")))),
        ("f32[8,16]@x", ((8, 16), jnp.float32, ("x",))),
        ("f32[8]@", ((8,), jnp.float32, ())),
    ],
)
def test_types(text: str, expected: tuple[Any, Any, Any], mesh: Mesh) -> None:
    shape, dtype, spec = expected
    argument = read_argument(text, lambda axes: mesh)
    assert (argument.shape, argument.dtype) == (shape, dtype)
    assert (argument.sharding and argument.sharding.spec) == (None if spec is None else PartitionSpec(*spec))


def test_random_keys() -> None:
    argument = read_argument("key<fry>[4]", lambda axes: None)
    assert argument.dtype == jax.random.split(jax.random.key(0), 4).dtype
    assert argument.shape == (4,)


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("0.5", 0.5), ("true", True), ("null", None), ('"adam"', "adam")]
)
def test_plain_values(text: str, value: object) -> None:
    assert read_argument(text, lambda axes: None) == value


@pytest.mark.parametrize("text", ["f99[3]", "f32[3", "f32[3]@x,y", "{'w': 1}", "adam", "", "[" * 100_000])
def test_what_is_no_argument(text: str, mesh: Mesh) -> None:
    with pytest.raises(UsageError):
        read_argument(text, lambda axes: mesh)


def test_only_one_of_several_children_is_counted() -> None:
    """As JAX names the leaves of classes that give no keys."""

    class Pair:
        def __init__(self, *held: object) -> None:
            self.held = held

    jax.tree_util.register_pytree_node(Pair, lambda pair: (pair.held, None), lambda _, held: Pair(*held))
    tree = {"one": Pair(1.0), "two": [Pair(1.0, 2.0)], "in": Pair(Pair(Pair(1.0, 2.0)))}
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    shown = without_only_indices(names)
    assert len(set(shown)) == len(names)
    assert [name.count("flat index") for name in names] == [3, 3, 1, 1, 1]
    assert [name.count("flat index") for name in shown] == [1, 1, 0, 1, 1]
    assert shown[2] == "['one']"


def test_axes_that_no_mesh_has(captured: Captured) -> None:
    text = told(captured(SCRIPT.format(default=1), args=("f32[8]@z",)))
    assert "--arg names the axis z, but the axes of the mesh are (x, y)" in text


@pytest.mark.parametrize(
    "lines",
    [
        "jax.set_mesh(Mesh(np.array(jax.devices()).reshape(2, 4), ('x', 'y')))",
        "fn = jax.jit(jax.shard_map(fn, mesh=Mesh(np.array(jax.devices()).reshape(2, 4), ('x', 'y')),"
        " in_specs=(P('x'), P()), out_specs=P('x')))",
    ],
)
def test_the_mesh_in_force_and_the_functions_own_come_first(captured: Captured, lines: str) -> None:
    if "set_mesh" in lines and not hasattr(jax.sharding, "get_mesh"):
        pytest.skip("this JAX does not tell which mesh is in force")
    capture = captured(SCRIPT.format(default=1) + f"    {lines}\n", args=("f32[8]@x", "f32[8]@x"), live=False)
    assert capture.subject is not None
    assert capture.subject.meshes[0].axes[0].size == 2


def test_requested_shardings_of_a_tree_with_lists(captured: Captured) -> None:
    """`out_shardings` has the tree of the results: `jax.tree.leaves` gives one for each."""
    capture = captured(
        SCRIPT.format(default=1)
        + """
    w, s = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P())
    asked = [{"w": w}, {"w": s, "v": [w, None]}], s, (w, [s, w])
    fn = jax.jit(lambda v: ([{"w": v}, {"w": v, "v": [v, v]}], v, (v, [v, v])), out_shardings=asked)
    inputs = (np.ones((8, 8), "float32"),)
"""
    )
    w, s = "P('x', 'y')", "P()"
    leaves = jax.tree.leaves(([{"w": w}, {"w": s, "v": [w, ""]}], s, (w, [s, w])))
    assert [value.spec or "" for value in capture.outputs] == leaves


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="reduced axes came with JAX 0.10")
def test_reduced_and_unreduced_arguments(captured: Captured) -> None:
    text = """
    import jax, jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    jax.set_mesh(mesh)
    def like(spec):
        return jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(mesh, spec))
    def fn(a, b):
        return jax.sharding.reshard(b, P("x", None)), a * 2
    inputs = (like(P("x", None, reduced={"y"})), like(P("x", None, unreduced={"y"})))
    """
    capture = captured(text)
    assert capture.failure is None, capture.failure
    asked = [value.spec for value in capture.arguments]
    assert asked == ["P('x', None, reduced={'y'})", "P('x', None, unreduced={'y'})"]


UNDER_MESH = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, PartitionSpec as P
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    def fn(a):
        return jax.lax.with_sharding_constraint(a * 2, P("x", "y"))
    def main():
        {around}
            fn(inputs[0])
    inputs = (np.ones((8, 8), np.float32),)
    def make():
        return jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
"""


@pytest.mark.parametrize(
    ("around", "options", "sizes"),
    [
        ("with mesh:", {}, (4, 2)),
        ("with jax.set_mesh(mesh):", {}, (4, 2)),
        ("with open('f'), jax.set_mesh(mesh):", {}, (4, 2)),
        ("jax.set_mesh(mesh)\n        if True:", {}, (4, 2)),
        ("with mesh:", {"mesh": (("x", 2), ("y", 4))}, (2, 4)),
        ("if True:", {"context": "mesh"}, (4, 2)),
        ("if True:", {"context": "make"}, (2, 4)),
    ],
)
def test_mesh_of_the_context(captured: Captured, around: str, options: dict[str, Any], sizes: tuple[int, int]) -> None:
    capture = captured(UNDER_MESH.format(around=around), live=False, **options)
    assert capture.failure is None, capture.failure
    lowered = capture.stage("stablehlo")
    assert lowered is not None
    assert f'["x"={sizes[0]}, "y"={sizes[1]}]'.encode() in lowered.source.data


def test_pjit_finds_the_mesh_of_the_context(captured: Captured) -> None:
    """It looks for that of `with mesh:` alone."""
    text = (
        UNDER_MESH.format(around="if True:")
        + """
    from jax.experimental.pjit import pjit
    fn = pjit(fn, in_shardings=P("x"))
    """
    )
    capture = captured(text, live=False, context="mesh")
    assert capture.failure is None, capture.failure
    assert [value.spec for value in capture.arguments] == ["P('x')"]


def test_a_mesh_that_is_nowhere_is_asked_for(captured: Captured) -> None:
    capture = captured(UNDER_MESH.format(around="with open('f'):"), live=False)
    assert capture.failure is not None
    assert "--context" in (capture.failure.hint or "")


STEP_INSIDE = """
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P
    def main():
        mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        w = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("fsdp", "tp")))
        @jax.jit
        def train_step(w):
            return w - 0.1 * jax.grad(lambda w: (w @ w).sum())(w)
        for _ in range(2):
            w = train_step(w)
    if __name__ == "__main__":
        main()
"""


def test_a_step_that_is_local_to_main(captured: Captured) -> None:
    """`main` alone is dead code for jit: its step is captured in its place."""
    whole = captured(STEP_INSIDE, function="main", live=False)
    assert any("main returns nothing" in message.text for message in whole.messages)
    for name in ("main", "train_step", "main.train_step"):
        step = whole if name == "main" else captured(STEP_INSIDE, function=name, live=False)
        assert step.complete, step.failure
        assert step.subject is not None
        assert [axis.name for axis in step.subject.meshes[0].axes] == ["fsdp", "tp"]


def test_inputs_from_another_file(captured: Captured, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import numpy as np\ndef make(): return np.ones(3), 2\n")
    capture = captured(SCRIPT.format(default=1), inputs=f"{tmp_path / 'other.py'}:make", live=False)
    assert types(capture) == [("a", "f32[3]", None), ("b", "i32[]", None)]
    assert "did you mean make?" in told(captured(SCRIPT.format(default=1), inputs=f"{tmp_path / 'other.py'}:mak"))


BARE = """
    import jax, jax.numpy as jnp
    class State:
        def __init__(self, weights, count):
            self.weights, self.count = weights, count
    jax.tree_util.register_pytree_with_keys(
        State, lambda s: ((("weights", s.weights), (7, s.count)), None), lambda _, parts: State(*parts)
    )
    def fn(state):
        return State(state.weights["w"] * 2, {"n": state.count})
    inputs = (State({"w": jnp.ones((2, 2))}, 1),)
"""


def test_names_that_a_class_gives_its_children(captured: Captured) -> None:
    """JAX runs them together, `stateweights`: a pytree is written as Python gets there."""
    capture = captured(BARE, live=False)
    assert [value.path for value in capture.arguments] == ["state.weights['w']", "state[7]"]
    assert [value.path for value in capture.outputs] == ["result.weights", "result[7]['n']"]


def test_layouts_that_are_asked_for(captured: Captured) -> None:
    """Compared with those of the compiled program's entry, which XLA lists from minor to major."""
    found = captured(
        """
        import jax, jax.numpy as jnp
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        try:
            from jax.experimental.layout import Format, Layout
        except ImportError:
            from jax.layout import Format, Layout
        mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
        rows, columns = (NamedSharding(mesh, spec) for spec in (P("x"), P(None, "x")))
        wanted = rows, {"turned": Format(Layout((1, 0)), columns)}
        given = Format(Layout((1, 0)), rows), None
        fn = jax.jit(lambda a, b: (a * 2, {"turned": b.T}), in_shardings=given, out_shardings=wanted)
        fn_inputs = (jax.ShapeDtypeStruct((16, 32), jnp.float32),) * 2
        """,
        live=False,
    )
    assert found.complete, found.failure
    known = {value.path: (value.spec, value.layout) for value in (*found.arguments, *found.outputs)}
    assert known == {
        "a": ("P('x')", "(1, 0)"),
        "b": (None, None),
        "result[0]": ("P('x')", None),
        "result[1]['turned']": ("P(None, 'x')", "(1, 0)"),
    }
    compiled = found.stage("hlo")
    assert compiled is not None
    entry = compiled.source.text().partition("entry_computation_layout={")[2].partition("\n")[0]
    assert entry.startswith("(f32[2,32]{0,1}, f32[2,32]{1,0})->(f32[2,32]{1,0}, f32[32,2]{0,1})")


@pytest.mark.parametrize(
    ("text", "place", "name"),
    [
        ("a.py:fn", "a.py", "fn"),
        ("a.py", "a.py", ""),
        ("a.b:C.fn", "a.b", "C.fn"),
        ("C:\\x.py", "C:\\x.py", ""),
        ("C:/x.py", "C:/x.py", ""),
        ("C:\\x.py:fn", "C:\\x.py", "fn"),
        ("a/b.py:fn", "a/b.py", "fn"),
        ("", "", ""),
    ],
)
def test_colons(text: str, place: str, name: str) -> None:
    assert split_function(text) == (place, name)


def test_places_that_are_files() -> None:
    assert [is_file(place) for place in ("a.py", "a/b", "a\\b", "./a", "a.b", "a")] == [True] * 4 + [False] * 2
