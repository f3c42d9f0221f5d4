"""Fixes of one program in many spellings: what is offered gives the numbers of the program as it is."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.experiments.edited import captured_with
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Fix
from shardscope.inspector.report.edits import diff_of

from tests.findings.test_variants import libtpu
from tests.findings.trying import verified
from tests.sweeps import sampled

PROGRAM = """\
import functools
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.lax import all_gather as gathered, psum
from jax.sharding import Mesh, PartitionSpec as P
import spelled

mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
rows = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)

@rows
def total(a):
    return jnp.sum(lax.all_gather(a, "x", tiled=True))

@rows
def mean(a):
    whole = lax.all_gather(a, "x", tiled=True)
    return whole.mean(0)

@rows
def changed_before(a):
    return jnp.sum(jnp.exp(gathered(a, "x", tiled=True)) * 2, axis=(0,), keepdims=True)

@rows
def of_numbers(a):
    everything = lax.all_gather(a.sum(), axis_name="x")
    return everything.mean()

@rows
def stacked(a):
    return lax.all_gather(a, "x").max()

@rows
def by_helper(a):
    return jnp.min(spelled.whole(a * 2), axis=0)

@functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()), check_vma=False)
def one_of_two_callers(a):
    own, whole = spelled.whole(a), spelled.whole(jnp.sin(a))
    return lax.dynamic_slice_in_dim(own * 3, lax.axis_index("x") * 2, 2), whole

@functools.partial(jax.shard_map, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
def mean_of_one_value(w):
    return psum(w ** 2, "x") / lax.axis_size("x")

every = (total, mean, changed_before, of_numbers, stacked, by_helper, one_of_two_callers)
all_of_them = jax.jit(lambda a, w: [mean_of_one_value(w), *(function(a / n) for n, function in enumerate(every, 1))])
all_of_them_inputs = (jnp.arange(64.0).reshape(8, 8) / 64, jnp.arange(8.0))
"""

HELPER = """\
from jax.lax import all_gather, psum, axis_index, dynamic_slice_in_dim

def whole(v):
    return all_gather(v, "x", tiled=True)

def reduced(a):
    return dynamic_slice_in_dim(psum(a, "x"), axis_index("x") * 2, 2)
"""

CALLER = """\
import functools
import jax, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from spelled import reduced

mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
scattered = jax.shard_map(reduced, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x"), check_vma=False)
scattered_inputs = (np.arange(64.0, dtype=np.float32).reshape(8, 8),)
"""


LINES = (
    "+    return lax.psum(jnp.sum(a), 'x')",
    "+    return lax.pmean(whole.mean(0), 'x')",
    "+    return lax.psum(jnp.sum(jnp.exp(a) * 2, axis=(0,), keepdims=True), 'x')",
    "+    everything = lax.pmean(a.sum(), 'x')",
    "+    return lax.pmax(a[None].max(), 'x')",
    "+    return lax.pmin(jnp.min((a * 2), axis=0), 'x')",
    "+    own, whole = a, spelled.whole(jnp.sin(a))",
    "+    return (w ** 2)",
)


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="the spellings are those of newer JAX")
@pytest.mark.parametrize(
    ("program", "function", "rules", "lines"),
    [
        (PROGRAM, "all_of_them", ["SS02", "SS04"] + 6 * ["SS22"], LINES),
        (CALLER, "scattered", ["SS01"], ["+from jax import lax"]),
    ],
    ids=["many", "imported"],
)
def test_what_is_offered_keeps_the_numbers(
    tmp_path: Path, program: str, function: str, rules: list[str], lines: list[str]
) -> None:
    """The fixes as they are printed, made all at once: no other collective, and results as before."""
    (tmp_path / "spelled.py").write_text(HELPER)
    path = tmp_path / "program.py"
    path.write_text(program)
    request = Request(f"{path}:{function}", probe="none", fingerprints=True)
    before = last_capture(request)
    report = inspect(before)
    assert sorted(each.rule for each in report.findings) == rules, [each.message for each in report.findings]
    assert "error" not in {each.severity for each in report.findings}
    edits = tuple(edit for each in report.findings for edit in each.fixes[0].edits)
    assert set(lines) <= set(diff_of(report.program, Fix("all of them", edits)))
    after = captured_with(report.program, request, edits)
    assert after is not None
    assert after.complete, after.failure
    for one, other in zip(before.execution.outputs, after.execution.outputs, strict=True):
        assert one.type == other.type
        assert one.projections == pytest.approx(other.projections, rel=1e-5)
    assert not [each for each in inspect(after).findings if each.rule in rules]


RESHARDED = """\
import functools
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))
whole, other_order = NamedSharding(mesh, P()), P(("y", "x"))

def exactly(v, spec):
    return lax.with_sharding_constraint(v, NamedSharding(mesh, spec))

@functools.partial(jax.jit, out_shardings={"all": whole, "some": NamedSharding(mesh, P())})
def gathered(a):
    return {"all": jnp.sin(a), "some": jnp.float32(2)}

@jax.jit
def reordered(a):
    there = lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P(("x", "y"))))
    return lax.with_sharding_constraint(there + 1, NamedSharding(mesh, other_order))

@jax.jit
def by_helper(a):
    return exactly(jnp.sin(a), P(("y", "x")))

@jax.jit
def gradients(params, a):
    return jax.value_and_grad(lambda params: jnp.mean((jnp.tanh(a @ params["w"]) @ params["v"]) ** 2))(params)

def by_rows(*shape):
    return jax.device_put(jnp.ones(shape), NamedSharding(mesh, P("x")))

gathered_inputs = (by_rows(64, 32),)
over_both = jax.device_put(jnp.arange(64.0 * 8).reshape(64, 8), NamedSharding(mesh, P(("x", "y"))))
reordered_inputs = by_helper_inputs = (over_both,)
gradients_inputs = ({"w": by_rows(256, 512), "v": by_rows(512, 128)}, by_rows(1024, 256))
"""


@pytest.mark.parametrize(
    ("function", "line"),
    sampled(
        [
            (
                "gathered",
                """+@functools.partial(jax.jit, out_shardings={"all": NamedSharding(mesh, P('x', None)), "some":"""
                " NamedSharding(mesh, P())})",
            ),
            (
                "reordered",
                "+    return lax.with_sharding_constraint(there + 1, NamedSharding(mesh, P(('x', 'y'))))",
            ),
            pytest.param(
                *("by_helper", "+    return lax.with_sharding_constraint(v, NamedSharding(mesh, P(('x', 'y'))))"),
                marks=pytest.mark.skipif(
                    jax.__version_info__ < (0, 8), reason="JAX 0.7 leaves frames out of some stacks"
                ),
            ),
        ],
        2,
        1,
    ),
)
def test_specs_that_reshard(tmp_path: Path, function: str, line: str) -> None:
    """The only collective is gone in the program that is compiled with the fix, and the results are as before."""
    path = tmp_path / "program.py"
    path.write_text(RESHARDED)
    request = Request(f"{path}:{function}", probe="none", fingerprints=True)
    report = tried(inspect(last_capture(request)), request, seconds=600)
    found = report.findings[0]
    assert found.rule in ("SS23", "SS37")
    assert found.experiment is not None
    assert (found.experiment.helps, found.experiment.values) == (True, "equal"), found.experiment
    assert (sum(dict(found.experiment.before.collectives).values()), found.experiment.after.collectives) == (1, ())
    assert line in diff_of(report.program, found.proposal)


@libtpu
def test_gradients_that_are_returned_whole_become_reduce_scatters(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(RESHARDED)
    request = Request(f"{path}:gradients", probe="none", target="tpu:v5p:2x2x2", live=False)
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = [each for each in report.findings if each.rule == "SS01"]
    assert found.experiment is not None
    assert (found.experiment.state, found.experiment.why) == ("not helping", "the step is slower on the target")
    before, after = dict(found.experiment.before.collectives), dict(found.experiment.after.collectives)
    assert ("reduce-scatter x" in before, "reduce-scatter x" in after) == (False, True)
    assert 0 < found.experiment.before.bytes - found.experiment.after.bytes <= found.expected[0]
    specs = "{'v': NamedSharding(mesh, P('x', None)), 'w': NamedSharding(mesh, P('x', None))}"
    assert f"+@jax.jit(out_shardings=(None, {specs}))" in diff_of(report.program, found.proposal)
