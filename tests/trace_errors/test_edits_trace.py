"""Edits for operands with explicit types that do not fit: with each of them, JAX traces the function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.model import Capture, Failure
from shardscope.inspector.capture.worker.failures import user_stack
from shardscope.inspector.findings.fixes.apply import edited
from shardscope.inspector.ir.program import Program
from shardscope.inspector.trace_errors.explain import EXPLAINERS, Explanation
from shardscope.inspector.trace_errors.failed import Failed
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
    """The explanation of a function's failure; with how many edits it traces, and how many there are."""
    text = f"import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\ndef function(a, b, c):\n    return {call}\n"
    try:
        traced(text, specs)
    except Exception as error:
        said, stack = str(error), user_stack(error)
    else:
        return None, 0, 0
    program = Program(Capture(script_text=Source("script.py", text.encode())))
    failed = Failed(program, Failure("function", said, "trace", said=said, stack=stack), lambda: None)
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
            traced(changed["script.py"].decode(), specs)
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
