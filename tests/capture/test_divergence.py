"""Values that are declared the same on all devices and are not, and where they part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Divergence
from shardscope.inspector.values.probed import divergences

from .conftest import Captured

SCRIPT = """
    from functools import partial

    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    block = jnp.arange(4.0)

    def mapped(f, out, check=True):
        return jax.shard_map(f, mesh=mesh, in_specs=P(("x", "y")), out_specs=out, check_vma=check)

    def varying(value, axis):
        return lax.pcast(value, axis, to="varying") if hasattr(lax, "pcast") else lax.pvary(value, axis)

    def loop(x):
        bound = 2 + lax.axis_index("x") * 3
        grown = lax.fori_loop(0, bound, lambda i, v: v * 2, lax.psum(x, ("x", "y")))
        return grown - 1
    fn_loop = mapped(loop, P())

    def conditional(x):
        shared = lax.psum(x, ("x", "y"))
        chosen = lax.cond(x[0] > 2.5, lambda v: v + 1, lambda v: v, shared)
        return jnp.sin(chosen)
    fn_conditional = mapped(conditional, P())

    def in_a_scan(x):
        shared = lax.psum(x, ("x", "y"))
        def step(carry, time):
            late = (time > 3) & (lax.axis_index("y") == 1)
            return lax.cond(late, lambda v: v * 2, lambda v: v * 1, carry), None
        return lax.scan(step, shared, jnp.arange(6))[0]
    fn_in_a_scan = mapped(in_a_scan, P())

    def late(x):
        def step(carry, time):
            total = lax.psum(carry * x, ("x", "y"))
            taken = jnp.where(time < 2, total, carry * x)
            return carry + taken / 8, total
        return lax.scan(step, jnp.ones(1), jnp.arange(4))[0]
    fn_late = mapped(late, P(), check=False)
    fn_early = mapped(lambda x: lax.scan(lambda c, _: (c + x, None), jnp.ones(1), None, 4)[0], P(), check=False)
    fn_late_inputs = fn_early_inputs = (block,)

    def sign(x):
        zero = x[0] * 0.0
        return lax.cond(x[0] > 0.5, lambda: -0.0, lambda: 0.0)
    fn_sign = mapped(sign, P())

    def nans(x):
        total = lax.psum(x / x, ("x", "y"))
        return total
    fn_nans = mapped(nans, P())

    def unspecified(x):
        return x * 2
    fn_unspecified = mapped(unspecified, P("y"), check=False)

    def gathered(x):
        return lax.all_gather(x, ("x", "y"), tiled=True)
    fn_gathered = mapped(gathered, P(), check=False)

    def one_bit(size, x):
        shared = lax.psum(x, ("x", "y")) + jnp.arange(size, dtype=jnp.float32)
        bits = lax.bitcast_convert_type(shared, jnp.uint32)
        other = (lax.axis_index("y") == 1) & (jnp.arange(size) == size - 2)
        return lax.bitcast_convert_type(bits ^ jnp.where(other, 1, 0).astype(jnp.uint32), jnp.float32)
    fn_one_bit_of_few = mapped(partial(one_bit, 3), P(), check=False)
    fn_one_bit_of_many = mapped(partial(one_bit, 1 << 13), P(), check=False)
    fn_one_bit_of_few_inputs = fn_one_bit_of_many_inputs = (block,)

    fn_loop_inputs = fn_conditional_inputs = fn_in_a_scan_inputs = fn_sign_inputs = (block,)
    fn_nans_inputs = fn_unspecified_inputs = fn_gathered_inputs = (block,)
"""


def first(capture: Capture) -> list[Divergence]:
    assert capture.complete, capture.failure
    probed = [m.text for m in capture.messages if m.phase == "probe" and m.level != "info"]
    assert not [text for text in probed if not text.startswith("NaN begins in ")]
    return [found for found in inspect(capture).divergences if found.is_first]


@pytest.mark.parametrize(
    ("function", "primitive", "devices", "line"),
    [
        ("fn_loop", "while", (0, 2), "fori_loop"),
        ("fn_conditional", "cond", (1, 3), "lax.cond(x[0] > 2.5"),
        ("fn_sign", "cond", (0, 2), "lax.cond(x[0] > 0.5"),
    ],
)
def test_where_they_part(
    function: str, primitive: str, devices: tuple[int, ...], line: str, captured: Captured
) -> None:
    capture = captured(SCRIPT, function)
    found = [each for each in first(capture) if each.axis == "x"]
    assert [(each.primitive, each.declared) for each in found][:1] == [(primitive, "type")]
    frame = found[0].source.frame
    assert frame is not None
    assert capture.script_text is not None
    assert line in capture.script_text.text().splitlines()[frame.line - 1]
    assert found[0].devices == devices


def test_what_follows_is_not_first(captured: Captured) -> None:
    found = inspect(captured(SCRIPT, "fn_conditional")).divergences
    assert [(each.primitive, each.is_first) for each in found if each.axis == "x"] == [("cond", True), ("sin", False)]


def test_the_iteration_in_which_they_part(captured: Captured) -> None:
    capture = captured(SCRIPT, "fn_in_a_scan")
    (found,) = first(capture)
    assert (found.primitive, found.axis, found.iteration, found.devices) == ("cond", "y", (4,), (0, 1))
    report = inspect(capture)
    parts = tuple(replace(each, unreduced=("x", "y")) for each in report.variance)
    assert divergences(capture, report.program.jaxpr, report.variance)
    assert not divergences(capture, report.program.jaxpr, parts), "parts of a sum may differ"


def test_the_iteration_in_which_what_a_loop_carries_out_begins_to_differ(captured: Captured) -> None:
    """By the program: until time 2 all devices add the same sum."""
    capture = captured(SCRIPT, "fn_late", iterations=(0, 1, 2, 3))
    (found,) = [each for each in inspect(capture).findings if each.rule == "SS06"]
    (since,) = {text for label, text in found.evidence if label == "since"}
    assert capture.script_text is not None
    lines = capture.script_text.text().splitlines()
    line = next(number for number, each in enumerate(lines, 1) if "jnp.where(time < 2" in each)
    assert since.startswith("iteration 2, ")
    assert f"line {line} " in f"{since} ".replace(";", " ")
    early = captured(SCRIPT, "fn_early")
    (found,) = [each for each in inspect(early).findings if each.rule == "SS06"]
    assert "since" not in dict(found.evidence)


def test_the_same_nans_are_the_same(captured: Captured) -> None:
    assert first(captured(SCRIPT, "fn_nans")) == []


def test_out_specs_that_say_too_much(captured: Captured) -> None:
    (found,) = first(captured(SCRIPT, "fn_unspecified"))
    assert (found.primitive, found.axis, found.declared) == ("mul", "x", "out_specs")
    assert first(captured(SCRIPT, "fn_gathered")) == []


@pytest.mark.parametrize("function", ["fn_one_bit_of_few", "fn_one_bit_of_many"])
def test_one_bit_of_one_element(function: str, captured: Captured) -> None:
    report = inspect(captured(SCRIPT, function))
    parted = [each for each in report.divergences if each.is_first]
    assert {(each.axis, each.devices) for each in parted} == {("y", (0, 1))}


COUNTING = """
    import pathlib
    import jax, jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    lower = jax.stages.Traced.lower

    def operations(jaxpr):
        inner = [e.params.get("jaxpr") for e in jaxpr.eqns]
        return len(inner) + sum(operations(getattr(j, "jaxpr", j)) for j in inner if j is not None)

    def counted(traced, **options):
        with pathlib.Path(__file__).with_name("counted").open("a") as file:
            print(operations(traced.jaxpr.jaxpr), file=file)
        return lower(traced, **options)
    jax.stages.Traced.lower = counted

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    def fn(x):
        for number in range(40):
            x = jnp.tanh(jax.lax.psum(x, "x") * (number + 1.0))
        return x
    inputs = (jnp.arange(8.0),)
"""


@pytest.mark.once
def test_what_is_compared_costs_little_to_compile(captured: Captured, tmp_path: Path) -> None:
    capture = captured(COUNTING, "fn")
    assert capture.probed is not None, capture.messages
    shown, probed = map(int, next(tmp_path.rglob("counted")).read_text().split())
    assert shown >= 3 * 40
    assert probed <= 3 * shown  # one for the value, one that lifts it out of the shard_map
