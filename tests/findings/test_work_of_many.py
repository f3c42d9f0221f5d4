"""The work of a report grows with the collectives that the user has written, and not with their square."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.text import print_report

from tests.parsers.damage import calls

pytestmark = pytest.mark.once

HEAD = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
inputs = (jnp.ones((8, 8)),)
"""


def function(count: int) -> str:
    """Sums so many times what is the same on all devices, each on a line of its own."""
    lines = [f"    v = v + jax.lax.psum(jnp.sin(v) * {number + 2}, 'x')" for number in range(count)]
    head = f"@jax.jit\n@jax.shard_map(mesh=mesh, in_specs=P(), out_specs=P())\ndef of_{count}(v):\n"
    return "\n".join([head, *lines, "    return v\n"])


def test_work_grows_with_the_collectives(tmp_path: Path) -> None:
    def work(count: int) -> tuple[int, int]:
        # A file for each: its length is work, too.
        (tmp_path / f"many_{count}.py").write_text(HEAD + function(count))
        captured = last_capture(Request(f"{tmp_path}/many_{count}.py:of_{count}", live=False))
        assert captured.complete, captured.failure
        return calls(lambda: report(captured)), len(inspect(captured).findings)

    def report(captured: Capture) -> None:
        print_report(inspect(captured), Console(file=io.StringIO(), width=160), ("all",))

    work(5)  # imports
    few, found_in_few = work(15)
    many, found_in_many = work(60)
    assert found_in_many == 4 * found_in_few > 0
    assert many < 5 * few
