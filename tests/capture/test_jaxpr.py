"""The recorded jaxpr is the one that JAX prints, with its sources, its axes and its variance."""

from __future__ import annotations

import re
import sys
import textwrap
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.spawn import Request
from shardscope.inspector.capture.worker.program import structure
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table
from shardscope.inspector.ir.jaxpr import Equation, JaxprProgram, read_program
from shardscope.parsers.source import Source

from .conftest import Captured, last

SCRIPT = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))

    def body(a, b):
        with jax.named_scope("inner"):
            c = lax.psum(a @ b, "y")
        i = lax.axis_index("x")
        e = lax.ppermute(c, "x", [(0, 1)])
        return c + i + e, jnp.sum(c, axis=0)

    @jax.custom_jvp
    def own(x):
        return jnp.sin(x)

    own.defjvp(lambda primals, tangents: (own(primals[0]), tangents[0]))

    def checked(x, w):
        mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P("x")))
        out = mapped(own(x), w)
        return lax.cond(out[0][0, 0] > 0, lambda o: o, lambda o: o * 2.0, out[0])

    def unchecked(x, w):
        return jax.shard_map(
            body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P("x"), P("x")), check_vma=False
        )(x, w)

    def printed(x, w):
        print(jax.make_jaxpr(checked)(x, w))
        return checked(x, w)

    checked_inputs = unchecked_inputs = printed_inputs = (jnp.ones((8, 8)), jnp.ones((8, 8)))
"""


def recorded(capture: Capture) -> JaxprProgram:
    assert capture.failure is None, capture.failure
    stage = capture.stage("jaxpr")
    assert stage is not None
    return read_program(stage.source)


def equations(program: JaxprProgram, primitive: str) -> list[Equation]:
    return [e for jaxpr in program.jaxprs for e in jaxpr.equations if e.primitive == primitive]


def body_of(program: JaxprProgram, equation: Equation) -> list[Equation]:
    (index,) = (index for name, index in equation.bodies if name == "jaxpr")
    return list(program.jaxprs[index].equations)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[JaxprProgram, Capture]]:
    path = tmp_path_factory.mktemp("jaxpr") / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    captures = {name: last(Request(f"{path}:{name}", live=False)) for name in ("checked", "unchecked", "printed")}
    return {name: (recorded(capture), capture) for name, capture in captures.items()}


def test_equations_names_and_types_are_those_that_jax_prints(
    programs: dict[str, tuple[JaxprProgram, Capture]],
) -> None:
    program, capture = programs["printed"]
    # `_:i32[] b:f32[8] = psum[...`: each output with its type, then the primitive
    printed = re.findall(r"((?:\w+:[a-z]\w*\[[^\]]*\](?:\{[^}]*\})? )+)= (\w+)", capture.stdout)
    ours = [
        (" ".join(f"{o.name}:{o.type}" for o in e.outputs), e.primitive) for j in program.jaxprs for e in j.equations
    ]
    assert len(printed) > 10
    assert sorted((normal(outputs), primitive) for outputs, primitive in printed) == sorted(
        (normal(outputs), primitive) for outputs, primitive in ours
    )


def normal(outputs: str) -> str:
    """Without names, which depend on the order of printing, and with braces in one order."""
    types = re.sub(r"\b\w+:(?=[a-z]\w*\[)", "", outputs).strip()
    return re.sub(r"\{([^}]*)\}", lambda m: "{" + ",".join(sorted(m[1].split(","))) + "}", types)


def test_variance(programs: dict[str, tuple[JaxprProgram, Capture]]) -> None:
    program, _ = programs["checked"]
    (mapped,) = equations(program, "shard_map")
    assert mapped.outputs[0].varying is None
    inside = {e.primitive: e for e in body_of(program, mapped)}
    assert inside["dot_general"].outputs[0].varying == ("x", "y")
    (reduction,) = (e for e in inside.values() if e.primitive.startswith("psum"))
    assert reduction.outputs[0].varying == ("x",)
    assert reduction.outputs[0].unreduced == ()
    shown = "f32[2,8]{V:x}" if jax.__version_info__ >= (0, 8) else "f32[2,8]{x}"
    assert str(reduction.outputs[0].type) == shown
    unchecked, _ = programs["unchecked"]
    (mapped,) = equations(unchecked, "shard_map")
    assert all(output.varying is None for e in body_of(unchecked, mapped) for output in e.outputs)


def test_axes(programs: dict[str, tuple[JaxprProgram, Capture]]) -> None:
    program, _ = programs["checked"]
    named = {e.primitive: e.axes for jaxpr in program.jaxprs for e in jaxpr.equations}
    assert named["ppermute"] == named["axis_index"] == named["pvary"] == ("x",)
    assert next(axes for primitive, axes in named.items() if primitive.startswith("psum")) == ("y",)
    assert named["reduce_sum"] is None
    assert named["dot_general"] is None


def test_bodies_and_literals(programs: dict[str, tuple[JaxprProgram, Capture]]) -> None:
    program, _ = programs["checked"]
    (choice,) = equations(program, "cond")
    assert [name for name, _ in choice.bodies] == ["branches[0]", "branches[1]"]
    assert "2.0:f32[]" in {name for e in equations(program, "mul") for name in e.inputs}
    (own,) = equations(program, "custom_jvp_call")
    assert not [value for _, value in own.params if " at 0x" in value]


def test_sources(programs: dict[str, tuple[JaxprProgram, Capture]]) -> None:
    program, capture = programs["checked"]
    assert capture.script_text is not None
    lines = capture.script_text.text().splitlines()
    (product,) = equations(program, "dot_general")
    stack = [program.frames[index] for index in product.stack]
    assert [frame.function for frame in stack] == ["body", "checked"]
    assert {frame.file for frame in program.frames} == {capture.script_text.name}
    innermost = stack[0]
    assert lines[innermost.line - 1][innermost.column : innermost.end_column] == "a @ b"
    assert product.name_stack.endswith("inner")


def test_a_body_that_is_shared_is_recorded_once(captured: Captured) -> None:
    program = recorded(
        captured("""
            import jax, jax.numpy as jnp
            @jax.jit
            def helper(x):
                return jnp.tanh(x)
            def fn(x):
                return helper(x) + helper(x + 1)
            fn_inputs = (jnp.ones(3),)
        """)
    )
    calls = [e for e in program.jaxprs[0].equations if e.bodies]
    assert len(calls) == 2
    assert calls[0].bodies == calls[1].bodies
    assert len(equations(program, "tanh")) == 1


WITHOUT_A_BODY = (
    b'{"frames":[],"jaxprs":[{"constants":[],"inputs":[],"outputs":[],"equations":[{"primitive":"shard_map",'
    b'"inputs":[],"outputs":[],"bodies":[],"shard_map":{"axes":[],"checked":true}}]}]}'
)


def test_each_parameter_is_a_text_or_a_body() -> None:
    @jax.custom_vjp
    def own(x: jax.Array) -> jax.Array:
        return x

    own.defvjp(lambda x: (x, None), lambda _, back: (back,))

    def fn(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        total, _ = jax.lax.scan(lambda total, row: (total + row, None), jnp.zeros(4), jnp.cumsum(x, axis=1))
        return jax.lax.cond(total[0] > 0, jnp.sin, jnp.cos, total), jax.jit(own)(total)

    jaxpr = jax.make_jaxpr(fn)(jnp.ones((3, 4)))
    table = Table(jaxpr)
    table.encode()
    known = {id(each): each for each in structure.equations_of(jaxpr)}
    found = [equation for record in table.jaxprs for equation in record["equations"]]
    assert len(found) == len(known) > 8
    written = set()
    for each in found:
        texts, bodies = {name for name, _ in each["params"]}, {name.partition("[")[0] for name, _ in each["bodies"]}
        assert not texts & bodies
        written.add((each["primitive"], frozenset(texts | bodies)))
    assert written == {(each.primitive.name, frozenset(each.params)) for each in known.values()}


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"null", b'{"frames":[],"jaxprs":[1]}', b'{"frames":' + b"[" * 100_000, WITHOUT_A_BODY]
)
def test_what_is_no_jaxpr(text: bytes) -> None:
    with pytest.raises(CaptureError):
        read_program(Source("jaxpr", text))


def lines_executed(count: int) -> int:
    """Lines of the recorder that run while the frames of a function with so many lines are read; they are checked."""
    source = "def fn(x):\n" + "    x = jnp.sin(x)\n" * count + "    return x\n"
    names: dict[str, Any] = {"jnp": jnp}
    exec(compile(source, "long.py", "exec"), names)
    equations = jax.make_jaxpr(names["fn"])(1.0).jaxpr.eqns
    executed = 0

    def line(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal executed
        executed += event == "line"
        return line if frame.f_code.co_filename == structure.__file__ else None

    stacks, before = structure.Stacks(), sys.gettrace()
    sys.settrace(line)
    try:
        found = [stacks.of(equation, []) for equation in equations]
    finally:
        sys.settrace(before)
    innermost = [stacks.frames[stack[0]] for stack in found]
    assert [(frame[0], frame[2], frame[4]) for frame in innermost] == [("long.py", n + 2, 8) for n in range(count)]
    return executed


def test_frames_of_a_long_function_are_read_in_linear_work() -> None:
    assert lines_executed(400) < 5 * lines_executed(100)
