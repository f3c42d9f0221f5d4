"""Positions of code that is in another file than the script: every table names the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from io import StringIO

import jax
import pytest
from rich.console import Console
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.markdown import to_markdown
from shardscope.inspector.render.table import Table
from shardscope.inspector.render.tables import TABLES
from shardscope.inspector.render.text.tables import table_section
from shardscope.inspector.report import Report
from shardscope.tui.row_table import RowTable

from .conftest import Opened

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp, layers
from jax.sharding import AxisType
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
step = partial(layers.step, mesh)
inputs = (jnp.arange(64.0).reshape(8, 8), jnp.arange(64.0).reshape(8, 8))
"""

LAYERS = """
import jax
from jax import lax
from jax.sharding import PartitionSpec as P

def block(a, b):
    total = lax.psum(a @ b, "x")
    rows = total.shape[0] // lax.axis_size("x")
    return lax.dynamic_slice_in_dim(total, lax.axis_index("x") * rows, rows)

def step(mesh, a, b):
    c = jax.shard_map(block, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"), check_vma=False)(a, b)
    d = lax.with_sharding_constraint(c, jax.NamedSharding(mesh, P(None, "y")))
    same = jax.shard_map(lambda a: a + lax.pmax(a, "y"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    return d.T @ c, same(a)
"""

POSITIONED = {
    "findings",
    "divergences",
    "collectives",
    "causes",
    "shardings",
    "variance",
    "devices",
    "memory",
    "times",
    "problems",
}
"""Tables that print positions."""

OF_THE_SCRIPT = re.compile(r"\bline \d|script\.py:\d")
OF_LAYERS = re.compile(r"layers\.py:(\d+)")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("program")
    (folder / "layers.py").write_text(LAYERS)
    (folder / "script.py").write_text(SCRIPT)
    *_, last = capture(Request(f"{folder / 'script.py'}:step"))
    assert last.complete, last.failure
    return inspect(last)


def is_positioned(text: str) -> bool:
    """Name lines of layers.py that there are, and none of the script, whose two statements give no operation."""
    lines = [int(number) for number in OF_LAYERS.findall(text)]
    return bool(lines) and max(lines) <= LAYERS.count("\n") and not OF_THE_SCRIPT.search(text)


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="with JAX 0.7 less is known of memory and times")
@pytest.mark.parametrize("table", [each for each in TABLES if each.__name__ in POSITIONED], ids=lambda t: t.__name__)
def test_text(report: Report, table: Callable[[Report], Table]) -> None:
    console = Console(width=200, record=True, file=StringIO())
    console.print(table_section(table(report)) or "")
    assert is_positioned(console.export_text())


def test_markdown(report: Report) -> None:
    parts = to_markdown([report]).split("<details>")
    assert len(parts) == 2
    assert all(map(is_positioned, parts))


TABS = {
    "2": "findings",
    "3": "collectives-table",
    "4": "shardings-table",
    "6": "variance",
    "7": "sites",
    "9": "problems",
}


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="with JAX 0.7 less is known of memory and times")
async def test_screen(report: Report, opened: Opened) -> None:
    async with opened(report.capture) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        for key, name in TABS.items():
            await driver.press(key)
            table = driver.screen.query_one(f"#{name}", RowTable)
            await driver.until(partial(getattr, table, "rows"))
            assert is_positioned("\n".join(cell.plain for row in table.rows for cell in row.cells)), name
