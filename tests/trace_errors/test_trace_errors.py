"""Functions that do not trace are explained, and what is said to fix them does: JAX traces it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from shardscope.inspector.capture.model import Capture, Failure
from shardscope.inspector.capture.protocol.events import StackFrame
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.finding_facts import verdict
from shardscope.inspector.report import Report, SourcePosition
from shardscope.inspector.report.edits import diff_of
from shardscope.inspector.trace_errors import carries
from shardscope.inspector.trace_errors.explain import explained
from shardscope.inspector.trace_errors.failed import Failed
from shardscope.inspector.trace_errors.table import explainers

from tests.inspector.complete.kept import kept
from tests.sweeps import sampled, xla_flags

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")

BROKEN = Path(__file__).with_name("broken.py")


MESSAGES = """
import json, runpy, sys
import jax

module, said = runpy.run_path(sys.argv[1]), {}
for name in sys.argv[2:]:
    try:
        jax.jit(module[name]).trace(*module[f"{name}_inputs"])
    except Exception as error:
        said[name] = str(error)
print(json.dumps(said))
"""


@cache
def explanation_of(function: str, *, live: bool = False) -> Report:
    request = Request(f"{BROKEN}:{function}", live=live)
    last = last_capture(request)
    assert last.failure is not None
    assert "shardscope itself" not in last.failure.message
    return explained(inspect(last), request)


def line_of(words: str) -> int:
    return next(number for number, line in enumerate(BROKEN.read_text().splitlines(), 1) if words in line)


FIXED = {
    "two_results": (
        "result[1] of two_results varies over x",
        [
            ("x enters by in_specs[0]", None),
            ("mul", "a * jnp.sum(w)"),
            ("sin", "jnp.sin("),
            ("out_specs[1] = P()", None),
        ],
        "+    return scaled, lax.pmean(jnp.mean(jnp.sin(scaled)), 'x')",
    ),
    "only_axis": (
        "result of only_axis varies over x",
        [("x enters by in_specs[0]", None), ("mul", "a * 3"), ("out_specs = P()", "mesh=line")],
        """+@partial(jax.shard_map, mesh=line, in_specs=P("x"), out_specs=P('x'))""",
    ),
    "carried": (
        "a loop carry that starts without x",
        [
            ("x enters by in_specs[0]", None),
            ("reduce_sum", "total + jnp.sum(a)"),
            ("starts as float32[]", "while_loop("),
        ],
        "+    begin = (lax.pcast(jnp.float32(0), ('x',), to='varying'), 0)",
    ),
    "counted": (
        "a loop carry that starts without x",
        [("add", "lax.fori_loop(0"), ("starts as float32[2]", "lax.fori_loop(0")],
        "+    return lax.fori_loop(0, 3, lambda i, c: c + a, lax.pcast(jnp.ones(a.shape), ('x',), to='varying'))",
    ),
    "branched": (
        "false_fun returns a value without x",
        [("true_fun returns float32[2]{V:x}", None), ("false_fun returns float32[2]", "lax.cond(")],
        "+    return lax.cond(a[0] > 0, lambda: a, lambda: lax.pcast(jnp.zeros(a.shape), ('x',), to='varying'))",
    ),
    "reduced_over_too_much": (
        "psum over x, y of a value that varies over x only",
        [("y never entered it", 'lax.psum(a, ("x", "y"))')],
        "+    return a + lax.psum(lax.pcast(a, ('y',), to='varying'), (\"x\", \"y\"))",
    ),
    "misnamed": (
        "xx is not an axis of the mesh here",
        [("the meshes have x, y", 'lax.psum(a, "xx")')],
        "+    return lax.psum(a, 'x')",
    ),
    "cast_twice": (
        "changes nothing",
        [("varying already", "lax.pcast(a * 2")],
        "+    return a * 2",
    ),
    "too_few_dimensions": (
        "1 entries for a result of 0 dimensions",
        [("float32[]{V:x}", None)],
        "+    return (jnp.sum(a) + 1)[None]",
    ),
    "left_open": (
        "the sharding of the product is ambiguous",
        [("in the contracting dimension", "return a @ b")],
        "+    return jax.numpy.matmul(a, b, "
        "out_sharding=jax.NamedSharding(jax.typeof(a).sharding.mesh, jax.P(None, None)))",
    ),
    "other_sums": (
        "makes partial sums over 'x', but out_sharding requests them over 'y'",
        [("over 'x' in the contracting dimension", 'unreduced={"y"}'), ("partial sums over 'y'", 'unreduced={"y"}')],
        '+    return jnp.einsum("ij,jk->ik", a, b, '
        "out_sharding=jax.NamedSharding(explicit, P(None, None, unreduced={'x'})))",
    ),
    "unlike_operands": (
        "the operands of add are sharded differently",
        [("first operand is sharded as P(None, 'x')", "jnp.sin(a) + b"), ("second operand", "jnp.sin(a) + b")],
        "+    return jnp.sin(a) + jax.sharding.reshard(b, "
        "jax.NamedSharding(jax.typeof(b).sharding.mesh, jax.P(None, 'x')))",
    ),
    "illegal_product": (
        "sharded over 'x' in two dimensions",
        [("first operand is sharded as P('x', None)", "a.T @ b.T"), ("second operand", "a.T @ b.T")],
        "+    return a.T @ jax.sharding.reshard(b.T, "
        "jax.NamedSharding(jax.typeof(b).sharding.mesh, jax.P(None, None)))",
    ),
    "joined": (
        "the operands of concatenate are sharded differently",
        [("second operand is sharded as P('x', None)", "jnp.concatenate([a, b])")],
        "+    return jnp.concatenate([a, jax.sharding.reshard(b, "
        "jax.NamedSharding(jax.typeof(b).sharding.mesh, jax.P(None, 'x')))])",
    ),
    "open_lookup": (
        "the sharding of the lookup's result is ambiguous",
        [("indexed array is sharded", "b[a[0]")],
        "+    return b.at[a[0].astype('int32')].get("
        "out_sharding=jax.NamedSharding(jax.typeof(b).sharding.mesh, jax.P('x', None)))",
    ),
    "along": (
        "works along dimension 0, which is sharded over 'x'",
        [("operand is sharded as P('x', None)", "b.cumsum(0)")],
        "+    return jax.sharding.reshard(b, "
        "jax.NamedSharding(jax.typeof(b).sharding.mesh, jax.P(None, None))).cumsum(0)",
    ),
}
"""Words of the title, steps in order with words of their lines, and the line of the first change that traces."""


def test_every_message_is_read() -> None:
    """Each JAX words its errors anew: what is tried of few functions is known of all."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla_flags(8)}
    command = [sys.executable, "-W", "ignore", "-c", MESSAGES, str(BROKEN), *FIXED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert list(said) == list(FIXED)
    assert [name for name, words in said.items() if not any(explainers(words))] == []


@pytest.mark.parametrize(
    "function",
    sampled(
        FIXED,
        (
            "two_results",
            "only_axis",
            "carried",
            "misnamed",
            "unlike_operands",
            "open_lookup",
        ),
        ("two_results", "unlike_operands"),
    ),
)
def test_the_story_and_the_edit_that_fixes_it(function: str) -> None:
    title, steps, line = FIXED[function]
    report = explanation_of(function)
    found = report.explanation
    assert found is not None
    assert title in found.title
    told = iter(found.steps)
    for words, place in steps:
        step = next(each for each in told if words in each.what)
        assert place is None or step.source.frame.line == line_of(place)
    assert found.fixes[0].helps
    assert line in diff_of(report.program, found.fixes[0])


@pytest.mark.once
def test_edits_with_other_values_are_refused() -> None:
    """The function triples its argument: of one device, what numpy says, and no sum or mean over devices."""
    found = explanation_of("only_axis").explanation
    assert found is not None
    good, *others = found.fixes
    assert good.helps
    assert "name 'x' in the out_spec" in good.title
    assert {each.title.split()[0] for each in others} == {"sum", "average"}
    assert all(verdict(each).startswith("tried, refused: ") for each in others)


@pytest.mark.parametrize(
    ("function", "title", "fix"),
    sampled(
        [
            ("unmapped", "a collective over 'x' where no shard_map maps over it", "leave out the collectives"),
            ("not_manual", "a collective over 'y' where no shard_map maps over it", "leave out the collectives"),
            (
                "indivisible",
                "dimension 0 of a has size 9, which the 4 devices along 'x' do not divide",
                "keep dimension 0 unsharded",
            ),
        ],
        2,
        1,
    ),
)
def test_what_else_is_said(function: str, title: str, fix: str) -> None:
    found = explanation_of(function).explanation
    assert found is not None
    assert found.title == title
    assert fix in found.fixes[0].title


@pytest.mark.once
def test_other_errors_are_left_alone() -> None:
    assert explanation_of("something_else").explanation is None


def test_only_scripts_that_raised() -> None:
    said = "Unsupported pcast from=varying, to='varying'"
    for failure in (None, Failure("usage", "no such file", "start", said=said), Failure("function", "no", "run")):
        report = inspect(Capture(failure=failure))
        assert explained(report, Request("x:f")) == report


@pytest.mark.parametrize(
    ("one", "other", "lacking"),
    [
        ("float32[4]{V:x}", "float32[4]", "B x,"),
        ("float32[4]", "float32[4]{V:x}", "A x,"),
        ("float32[4]{V:(x,y)}", "float32[4]{V:y}", "B x,"),
        ("float32[4]", "float32[4]{V:(x,y)}", "A x, y,"),
    ],
)
def test_the_branch_that_lacks_an_axis(one: str, other: str, lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the two it is."""
    monkeypatch.setattr(carries, "_cast_branch", lambda failed, branch, axes: ())
    failed, said = (
        SimpleNamespace(place=SourcePosition.exact(())),
        SimpleNamespace(groups=lambda: ("A", one, "B", other)),
    )
    found = carries.explain_branches(failed, said)  # type: ignore[arg-type]
    assert found.title.replace(" returns a value without", "").startswith(lacking)
    assert not found.fixes


def test_without_a_program_to_follow_there_is_no_story() -> None:
    """Nothing is traced with the checks off, or no shard_map in it, or not with such a result."""
    failure = Failure("function", "it raised", "trace", stack=(StackFrame("f.py", "f", 3),))
    for report, output in (
        (None, 0),
        (inspect(Capture()), 0),
        (inspect(kept("cube")), 0),
        (inspect(kept("missing_reduce_scatter.faulty")), 9),
    ):
        failed = Failed(Program(Capture()), failure, lambda report=report: report)
        assert failed.story("f", output, "x") == failed.story_at(("scan",), "x") == ()
    report = inspect(kept("missing_reduce_scatter.faulty"))
    assert Failed(Program(Capture()), failure, lambda: report).story("f", 0, "x")
