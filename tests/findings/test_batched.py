"""Lookups in each element of a batch, and loops of each: what is offered communicates nothing and gives the same."""

from __future__ import annotations

import ast
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.model import Capture, Source
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.findings.fixes.batched import vmapped_lookups
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report, SourcePosition
from shardscope.inspector.report.edits import applied
from shardscope.parsers.source import Frame

from tests.findings.trying import verified

IMPORTS = "import jax, jax.numpy as jnp\n"
SPELLED = [
    "x[rows, i]",
    "x[jnp.arange(6), i, :2]",
    "x[jnp.arange(6)[:, None], two]",
    "x[rows, i, -1]",
    "x[rows, i, i - 1]",
    "x[rows[:, None], two, two]",
    "x.at[rows, i].set(u)",
    "x.at[rows, i].add(u[i - 3])",
    "x.at[rows, i, 1].multiply(i)",
    "x.at[rows[:, None], two].set(0)",
    'x.at[rows, i].get(mode="clip")',
]
"""Expressions of a batch of 6, `rows` being an arange."""


@pytest.mark.parametrize("text", SPELLED)
def test_by_vmap_a_lookup_is_the_same(text: str) -> None:
    lines = f"{IMPORTS}rows = jnp.arange(6)\nresult = {text}\n"
    file = "lookups.py"
    program = Program(Capture(script_text=Source(file, lines.encode())))
    offered = [edits for edits in vmapped_lookups(program, SourcePosition.exact((Frame(file, "f", 3),))) if edits]
    if ".get(" in text:
        assert offered == []
        return
    random = np.random.default_rng(7)
    given = {"x": random.normal(size=(6, 7, 9)), "u": random.normal(size=(6, 9))}
    given |= {"i": random.integers(0, 7, 6), "two": random.integers(0, 7, (6, 2))}
    source = program.file(file)
    assert source is not None
    (edits,) = offered
    changed = applied(source, list(edits))
    assert changed is not None
    results = []
    for each in (lines, changed.decode()):
        names = {name: jnp.asarray(value) for name, value in given.items()}
        exec(compile(ast.parse(each), file, "exec"), names)
        results.append(names["result"])
    assert b"vmap" in changed
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("text", ["x[order, i]", "x[i, rows]", "x[rows]", "x[rows, 1:]"])
def test_what_may_be_no_number_of_a_row_is_left_alone(text: str) -> None:
    lines = f"{IMPORTS}rows, order = jnp.arange(6), jax.random.permutation(key, 6)\nresult = {text}\n"
    program = Program(Capture(script_text=Source("lookups.py", lines.encode())))
    place = SourcePosition.exact((Frame("lookups.py", "f", 3),))
    assert not [edits for edits in vmapped_lookups(program, place) if edits]


SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

def until_small(x, least):
    return jax.lax.while_loop(lambda s: s[0] > least, lambda s: (s[0] * 0.9, s[1] + 1), (x, 0))

@jax.jit
@jax.vmap
def decorated(x):
    return until_small(x, 1e-3)

mesh = jax.make_mesh((4, 2), ("b", "m"), axis_types=(AxisType.Auto,) * 2)
split = NamedSharding(mesh, P("b"))

@jax.jit
def cached(cache, position, new):
    rows = jnp.arange(cache.shape[0])
    cache = cache.at[rows, position].set(new)
    return cache, cache[rows, position - 1].sum(-1)

called = jax.jit(jax.vmap(until_small, in_axes=(0, None)))
numbers = jax.device_put(np.linspace(1, 9, 64, dtype=np.float32), split)
decorated(numbers)
called(numbers, 1e-3)
cached(*jax.device_put((np.ones((16, 32, 8), np.float32), np.arange(16) + 3, np.ones((16, 8), np.float32)), split))
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    script = tmp_path_factory.mktemp("batched") / "script.py"
    script.write_text(SCRIPT)

    def measure(function: str) -> Report:
        request = Request(f"{script}:{function}", probe="none", devices=8, target="cpu", fingerprints=True)
        return verified(inspect(last_capture(request)), request, inspect)

    return measure


@pytest.mark.once
@pytest.mark.parametrize(
    ("function", "rule"), [("cached", "SS23"), ("decorated", "SS26"), ("called", "SS26")], ids=lambda each: each
)
def test_what_is_offered_communicates_nothing(measured: Callable[[str], Report], function: str, rule: str) -> None:
    report = measured(function)
    (found,) = (each for each in report.findings if each.rule == rule and each.severity == "warning")
    done = found.fixes[0].experiment
    assert done is not None
    assert (done.state, done.after.bytes, done.after.collectives) == ("tried", 0, ())
    assert done.values == "equal"
