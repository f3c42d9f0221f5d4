"""Edits for operands with explicit types that do not fit: with each of them, JAX traces the function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.model import Capture, Failure, Stage
from shardscope.inspector.capture.worker.failures import user_stack
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Explanation, Report
from shardscope.inspector.report.edits import edited
from shardscope.inspector.trace_errors.failed import Failed
from shardscope.inspector.trace_errors.table import EXPLAINERS
from shardscope.parsers.source import Source

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")

MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

CALLS = {
    "add": "a + b",
    "multiply": "jnp.multiply(a, b)",
    "maximum": "jnp.maximum(a, 2 * b)",
    "concatenate": "jnp.concatenate([a, b], axis=1)",
    "select": "lax.select(c, a, b)",
    "dot_general": "jnp.tanh(a) @ b",
}

SPECS = {
    "other axes in the first dimension": (("x", None), ("y", None), 0),
    "other axes in the second dimension": ((None, "x"), (None, "y"), 1),
    "one axis in two dimensions": (("x", None), (None, "x"), None),
    "both in either": (("x", "y"), ("y", "x"), 0),
}


def function(text: str) -> Any:
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax}
    exec(compile(text, "script.py", "exec"), names)
    return names["function"]


def traced(text: str, specs: Sequence[Any]) -> None:
    kinds = (*((spec, jnp.float32) for spec in specs), ((None, None), jnp.bool))
    arguments = [jax.ShapeDtypeStruct((8, 8), dtype, sharding=NamedSharding(MESH, P(*spec))) for spec, dtype in kinds]
    with jax.sharding.use_abstract_mesh(MESH):
        jax.make_jaxpr(function(text))(*arguments)


def explained(call: str, specs: Sequence[Any]) -> tuple[Explanation | None, int, int]:
    """The explanation of a failing call; with how many edits it traces, and how many there are."""
    text = f"import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\ndef function(a, b, c):\n    return {call}\n"
    return explained_of(text, lambda text: traced(text, specs))


def explained_of(
    text: str, trace: Callable[[str], object], unchecked: Callable[[], Report | None] = lambda: None
) -> tuple[Explanation | None, int, int]:
    """The same of a script that is traced in some way."""
    try:
        trace(text)
    except Exception as error:
        said, stack = str(error), user_stack(error)
    else:
        return None, 0, 0
    program = Program(Capture(script_text=Source("script.py", text.encode())))
    failed = Failed(program, Failure("function", said, "trace", said=said, stack=stack), unchecked)
    pattern, explain = next((pattern, explain) for pattern, explain in EXPLAINERS if pattern.search(said))
    match = pattern.search(said)
    assert match is not None
    found = explain(failed, match)
    assert found is not None
    good, edits = 0, [fix.edits for fix in found.fixes if fix.edits]
    for each in edits:
        changed = edited(program, each)
        assert changed is not None
        with suppress(Exception):
            trace(changed["script.py"].decode())
            good += 1
    return found, good, len(edits)


@pytest.mark.parametrize("which", SPECS)
@pytest.mark.parametrize("name", CALLS)
def test_with_an_edit_it_traces(name: str, which: str) -> None:
    *specs, dim = SPECS[which]
    found, good, count = explained(CALLS[name], specs)
    if found is None:
        assert name == "dot_general"
        return
    assert good == count > 0
    if name != "dot_general":
        assert re.findall(r" in dimension (\d+)$", found.title) == ([] if dim is None else [str(dim)])
        assert [step.what for step in found.steps] == [
            f"the {word} operand is sharded as {P(*spec)}".replace("PartitionSpec", "P")
            for word, spec in zip(("first", "second"), specs, strict=True)
        ]


ALONG = "the operation works along dimension 0, which is sharded over 'x'"
CARRIED = "is a loop carry whose sharding an iteration changes"

OTHERS = {
    "jnp.cumsum(a, axis=0)": (2, ALONG),
    "jnp.sort(a, axis=0)": (2, ALONG),
    "jnp.tile(a, (2, 1))": (2, ALONG),
    "a[:6]": (2, ALONG),
    "jnp.linalg.solve(a, b)": (2, ALONG),
    "lax.dynamic_update_slice(a, b, (0, 0))": (4, "the operands of dynamic_update_slice are sharded differently"),
    "lax.with_sharding_constraint(a, jax.P(None, 'y'))": (1, "does not reshard over explicit axes"),
    "lax.cond(True, lambda: a, lambda: b)": (4, "the branches' results are sharded differently"),
    "lax.fori_loop(0, 3, lambda i, v: jax.sharding.reshard(v, jax.P('y')), a)": (4, CARRIED),
    "lax.scan(lambda v, _: (v @ b, None), a, jnp.zeros(3))": (4, CARRIED),
}
"""Calls with an array over x and one over y, the number of edits with which they trace, and what is said of them."""


@pytest.mark.parametrize("call", OTHERS)
def test_with_each_edit_other_calls_trace(call: str) -> None:
    found, good, count = explained(call, (("x", None), (None, "y")))
    edits, title = OTHERS[call]
    assert found is not None
    assert title in found.title
    assert good == count == edits


def test_of_several_ways_to_write_an_update_one_is_right() -> None:
    _, good, count = explained("a.at[jnp.arange(8)].add(b)", (("x", None), (None, "y")))
    assert 0 < good < count


BROKEN = Path(__file__).with_name("broken.py").read_text().replace("jax.make_mesh(", "jax.sharding.AbstractMesh(")


def jaxpr_of(text: str, name: str, **options: bool) -> Any:
    """A function of a script, which is executed with some options of each shard_map."""
    names: dict[str, Any] = {}
    real = jax.shard_map
    try:
        jax.shard_map = partial(real, **options) if options else real  # type: ignore[assignment]
        exec(compile(text, "script.py", "exec"), names)
        return jax.make_jaxpr(names[name])(*names[f"{name}_inputs"])
    finally:
        jax.shard_map = real


@pytest.mark.parametrize(
    ("name", "good", "count", "steps"),
    [
        ("two_results", 2, 4, 6),
        ("only_axis", 4, 4, 3),
        ("gathered", 5, 5, 2),
        ("cast_for_nothing", 5, 5, 2),
        ("carried", 1, 1, 4),
        ("counted", 1, 1, 3),
        ("branched", 1, 2, 2),
        ("reduced_over_too_much", 2, 2, 1),
        ("cast_twice", 1, 1, 1),
        ("too_few_dimensions", 1, 1, 1),
        ("left_open", 1, 2, 1),
        ("other_sums", 1, 1, 2),
        ("unlike_operands", 2, 4, 2),
        ("illegal_product", 2, 5, 2),
        ("open_lookup", 2, 4, 2),
        ("joined", 2, 4, 2),
        ("along", 1, 2, 1),
    ],
)
def test_a_broken_function_traces_with_some_edits(name: str, good: int, count: int, steps: int) -> None:
    """Of edits that are tried later some may not do; the story is from a trace without checks."""

    def unchecked() -> Report:
        table = Table(jaxpr_of(BROKEN, name, check_vma=False))
        stage = Stage("jaxpr", "jaxpr", Source("jaxpr", table.encode()))
        return inspect(Capture(stages=(stage,), script_text=Source("script.py", BROKEN.encode())))

    found, *counted = explained_of(BROKEN, lambda text: jaxpr_of(text, name), unchecked)
    assert found is not None
    assert (*counted, len(found.steps)) == (good, count, steps)
