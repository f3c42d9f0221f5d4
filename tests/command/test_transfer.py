"""Bytes that devices receive, against elements that are counted one by one, and JAX's own blocks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import run_traced
from shardscope.inspector.traces.read import read_trace

from shardscope.cli import main
from tests.sweeps import sampled

MESH = {"a": 2, "b": 4}
SPECS = [(), ("a",), ("b", "a"), (None, ("a", "b")), (("b", "a"),), (None, "b")]
SHAPE = (16, 8)


def blocks(spec: tuple[object, ...] | None, device: int) -> np.ndarray:
    """The elements of a device, as a mask over the array."""
    mask = np.zeros(SHAPE, bool)
    if spec is not None:
        mesh = jax.sharding.AbstractMesh(tuple(MESH.values()), tuple(MESH))
        sizes = NamedSharding(mesh, PartitionSpec(*spec)).shard_shape(SHAPE)
        position = dict(zip(MESH, np.unravel_index(device, tuple(MESH.values())), strict=True))
        starts = []
        for dim, size in enumerate(sizes):
            entry = spec[dim] if dim < len(spec) else None
            number = 0
            for axis in (entry,) if isinstance(entry, str) else entry or ():
                number = number * MESH[axis] + int(position[axis])
            starts.append(slice(number * size, (number + 1) * size))
        mask[tuple(starts)] = True
    return mask


@pytest.mark.once
@pytest.mark.parametrize("before", [None, *SPECS])
def test_what_is_received_is_what_a_device_lacks(
    before: tuple[object, ...] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    for after in SPECS:
        first = "HOST" if before is None else str(PartitionSpec(*before)).replace("PartitionSpec", "P")
        second = str(PartitionSpec(*after)).replace("PartitionSpec", "P")
        assert main(["transfer", "f32[16,8]", first, second, "--mesh", "a=2,b=4", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        lacking = [int((blocks(after, each) & ~blocks(before, each)).sum()) * 4 for each in range(8)]
        assert (found["received"], found["most"]) == (sum(lacking), max(lacking))
        for each in range(8):
            assert sum(pair["bytes"] for pair in found["pairs"] if pair["receiver"] == each) == lacking[each]
        for pair in found["pairs"] if before is not None else ():
            lacks = blocks(after, pair["receiver"]) & ~blocks(before, pair["receiver"])
            assert pair["bytes"] == int((blocks(before, pair["sender"]) & lacks).sum()) * 4


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("f32[6]", "HOST", "P('b')"), "4 parts do not divide dimension 0, of 6"),
        (("f32[8]", "HOST", "P('c')"), "the mesh has no axis 'c'"),
        (("f32[8]", "P(a)", "P()"), "unexpected 'a'"),
    ],
)
def test_what_cannot_be_said_is_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["transfer", *arguments, "--mesh", "a=2,b=4"]) == 2
    assert said in capsys.readouterr().err


SCRIPT = """
import jax, numpy as np
from jax.sharding import NamedSharding as NS, PartitionSpec as P
mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
x = jax.device_put(np.ones((16, 8), np.float32), NS(mesh, P("a")))
for _ in range(5):
    y = jax.device_put(x, NS(mesh, P("a")))
    y = jax.device_put(y, NS(mesh, P("b", "a")))
print(jax.jit(lambda v: jax.device_put(v, NS(mesh, P())).sum())(y))
"""


@pytest.mark.parametrize("line", sampled([5, 8], 2))
def test_a_trace_lists_what_is_put_elsewhere(line: int, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = (sys.executable, str(tmp_path / "script.py"))
    with (tmp_path / "out").open("wb") as out:
        ended = run_traced(command, tmp_path / "trace", TraceOptions(target="cpu"), 8, out)
    [process] = read_trace(tmp_path / "trace", command, ended.status, ended.seconds).processes
    found = {each.call.line: each for each in process.transfers if each.call is not None}
    assert sorted(found) == [5, 8]
    before, after, calls = {5: (None, ("a",), 1), 8: (("a",), ("b", "a"), 5)}[line]
    lacking = [int((blocks(after, each) & ~blocks(before, each)).sum()) * 4 for each in range(8)]
    assert (found[line].calls, found[line].received, found[line].most) == (calls, sum(lacking), max(lacking))
