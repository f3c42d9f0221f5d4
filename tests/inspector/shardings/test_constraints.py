"""What a constraint requests is what its line of the program says, wherever calls and loops put it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.shardings import shardings
from shardscope.inspector.shardings.collective_causes import causes_of

PROGRAM = Path(__file__).parent / "programs" / "nested_constraints.py"


def requested() -> dict[tuple[int, str], str]:
    """The PartitionSpec at each line and column with a constraint, read from the source."""
    found = {}
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "on":
            found[node.lineno, ast.unparse(node)] = f"P({', '.join(ast.unparse(each) for each in node.args)})"
    return found


def test_each_constraint_requests_what_its_line_says() -> None:
    *_, final = capture(Request(f"{PROGRAM}:step", live=False))
    assert final.failure is None, final.failure
    rows = [row for row in inspect(final).shardings if row.role == "constraint"]
    by_line: dict[int, set[str]] = {}
    for (line, _), spec in requested().items():
        by_line.setdefault(line, set()).add(spec)
    seen: dict[int, set[str]] = {}
    for row in rows:
        assert row.source.line is not None
        assert row.agrees
        seen.setdefault(row.source.line, set()).add(str(row.requested))
    # `inner` is called three times, so its line has more than one row.
    assert len(rows) > len(by_line)
    assert seen == by_line


def test_the_gather_between_two_constraints_is_explained_by_what_is_executed(tmp_path: Path) -> None:
    """The partitioned program gathers the operand of `sin`, and computes `sin` as the second constraint wants it."""
    script = tmp_path / "program.py"
    script.write_text(BETWEEN)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    (gather,) = (each for each in report.collectives if each.stage == "hlo")
    text = next(stage.source.text() for stage in final.stages if stage.name == "hlo-spmd")
    assert re.search(r"f32\[8,8\]\S* all-gather\(%sharding_constraint", text)
    assert re.search(r"f32\[8,4\]\S* sine\(", text)
    (cause,) = causes_of(report.program, gather)
    assert (str(cause.operation), str(cause.before)) == ("sin", "P('x', None)")
    assert str(cause.after) in ("P(None, None)", "P(None, 'y')")


BETWEEN = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

def on(v, *spec):
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P(*spec)))

def step(v):
    return on(jnp.sin(on(v * 2, "x", None)), None, "y")

inputs = (jax.ShapeDtypeStruct((8, 8), jnp.float32),)
"""


KEYS = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))

@jax.jit
def step(blocks, keys):
    noise = jax.vmap(lambda key: jax.random.normal(key, (8,)))(keys)
    return sum(jnp.mean(block[name] + noise) for block in blocks for name in block), jax.vmap(jax.random.split)(keys)

def step_inputs():
    on = NamedSharding(mesh, P("batch"))
    blocks = [{name: jnp.ones((16, 8)) for name in ("ln1", "ln2")} for _ in range(2)]
    return jax.device_put(blocks, on), jax.device_put(jax.random.split(jax.random.key(0), 16), on)
"""


def test_keys_are_sharded_as_the_compiled_program_has_them(tmp_path: Path) -> None:
    """A key is an array in the module, whose dimension the user's spec has no entry for; JAX leaves the others open."""
    script = tmp_path / "program.py"
    script.write_text(KEYS)
    *_, final = capture(Request(f"{script}:step", live=False))
    assert {value.path: value.actual for value in final.arguments}["keys"] == "P('batch')"
    report = inspect(final)
    assert not [value.name for value in report.shardings if value.agrees is False]
    assert not [each.message.text for each in report.messages if "internal error" in each.message.text]
    names = [str(row.cells[2]) for row in shardings(report).rows]
    assert [name for name in names if name.startswith("blocks")] == ["blocks[*]['ln1']", "blocks[*]['ln2']"]
