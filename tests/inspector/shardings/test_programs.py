"""The programs of the Shardy guide and of the notes on block matrices: how every value in them is sharded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.protocol import bootstrap
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report
from shardscope.inspector.shardings.table import values

from tests.inspector.shardings.boxes import pieces
from tests.sweeps import xla_flags

HERE = Path(__file__).parent
AGREE = HERE.parents[1] / "capture" / "agreement.py"

# What the partitioner gets to see: value, and how it is cut.
EXPECTED: dict[str, dict[str, str]] = {
    "guide.py:in_out": {
        "x": "P('data', None)",
        "w1": "P(None, 'model')",
        # Both products ask something of it.
        "w2": "P('model', 'data')",
        "tanh": "P('data', None)",
        "dot_general [16,256]": "P('data', 'model')",
        "dot_general [16,8]": "P(None, 'data')",
        "sin": "P(None, 'data')",
        "result": "P(None, 'data')",
    },
    "guide.py:open_dimension": {
        "x": "P('data', None)",
        "sharding_constraint": "P('data', None)",
        "result": "P('data', None)",
    },
    "guide.py:gathered": {
        "x": "P(None, 'model')",
        "sin": "P(None, 'model')",
        "all_gather": "P(None, 'model')",
        "shard_map": "P(None, 'model')",
        "result": "P(None, 'model')",
    },
    "guide.py:by_rules": {
        "x": "P(None, None, None, 'x')",
        "y": "P(None, None, None, 'y')",
        # Nobody asked for x on y's rows but the rules.
        "cos": "P(None, None, 'x', 'y')",
        "custom_partitioning": "P(None, None, None, 'y')",
        "result[0]": "P(None, None, None, 'y')",
        "result[1]": "P(None, None, None, 'y')",
        "result[2]": "P(None, None, None, 'y')",
    },
    "guide.py:split_axis": {
        "x": "P('data', None)",
        "cos": "P('data', None)",
        "reshape": "P('data:(1)2', 'data:(2)2', None)",
        "sin": "P('data:(1)2', 'data:(2)2', None)",
        # XLA gives no parts of axes to what leaves the program, for JAX cannot spell them.
        "result": "P(None, None, None)",
    },
    "notes.py:reshards": {
        "rows": "P('x', None)",
        "columns": "P(None, 'x')",
        "both": "P('x', 'y')",
        "none": "P(None, None)",
        "result['gather columns']": "P('x', None)",
        "result['gather all']": "P(None, None)",
        "result['rows to columns']": "P(None, 'x')",
        "result['columns to rows']": "P('x', None)",
        "result['compound']": "P(('x', 'y'), None)",
        "result['cut']": "P('x', 'y')",
        "result['swapped']": "P('y', 'x')",
    },
    "notes.py:products": {
        "c": "P(None, 'x')",
        "a": "P('x', 'y')",
        "b": "P('y', None)",
        "transpose": "P('x', None)",
        "dot_general [64,64]": "P(None, None)",
        "dot_general [64,128]": "P('x', 'y')",
        "result[0]": "P(None, None)",
        "result[1]": "P('x', 'y')",
    },
    "notes.py:contracted": {
        "a": "P('x', 'y')",
        "reduce_sum": "P('y')",
        "result[0]": "P('y')",
        "result[1]": "P(None)",
    },
    "notes.py:flattened": {
        "a": "P('xy', None)",
        "sin": "P('xy', None)",
        "add": "P('xy', None)",
        "result": "P('xy', None)",
    },
}

COLLECTIVES = {
    "guide.py:by_rules": {("all-reduce", ("x",))},
    "guide.py:split_axis": {("all-gather", ("data:(1)2",)), ("all-gather", ("data:(2)2",))},
    "notes.py:reshards": {
        ("all-gather", ("y",)),
        ("all-gather", ("x",)),
        ("all-to-all", ("x",)),
        ("all-to-all", ("y",)),
        ("collective-permute", ("x", "y")),
    },
    "notes.py:products": {("all-reduce", ("x",)), ("all-reduce", ("y",))},
}

if jax.__version_info__ < (0, 10):  # whose outputs stay cut along parts of axes
    del EXPECTED["guide.py:split_axis"], COLLECTIVES["guide.py:split_axis"]


@pytest.fixture(scope="module")
def report() -> dict[str, Report]:
    found = {}
    for name in EXPECTED:
        *_, captured = capture(Request(str(HERE / "programs" / name), live=False))
        assert captured.complete, captured.failure
        found[name] = inspect(captured)
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_is_sharded_as_it_should(name: str, report: dict[str, Report]) -> None:
    expected = EXPECTED[name]
    found: dict[str, set[str | None]] = {}
    for value in (*report[name].shardings, *values(report[name].program)):
        if value.role not in ("shard_map input", "constraint"):
            shape = str(value.type).partition("[")[2]
            for key in (value.name, f"{value.name} [{shape}"):
                found.setdefault(key, set()).add(value.spec)
    assert {key: found.get(key) for key in expected} == {key: {spec} for key, spec in expected.items()}


def test_asked_and_got(report: dict[str, Report]) -> None:
    if jax.__version_info__ >= (0, 8):  # whose XLA keeps it
        (found,) = (each for each in report["guide.py:open_dimension"].shardings if each.role == "constraint")
        assert (found.requested, found.spec) == ("P('data', P.UNCONSTRAINED)", "P('data', None)")
        assert found.agrees
    (found,) = (each for each in report["guide.py:gathered"].shardings if each.role == "shard_map input")
    assert (found.requested, found.spec, found.agrees) == ("P('data', 'model')", "P(None, 'model')", False)
    outputs = {each.name: each for each in report["guide.py:in_out"].shardings if each.role == "output"}
    assert outputs["result"].requested == "P(None, 'data')"
    assert not any(each.agrees is False for each in report["notes.py:reshards"].shardings)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_are_over_the_axes_of_the_programs_own_mesh(name: str, report: dict[str, Report]) -> None:
    found = {
        (each.kind, each.axes and tuple(map(str, each.axes)))
        for each in report[name].collectives
        if each.stage == "hlo"
    }
    assert found == COLLECTIVES[name]


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="jaxlib 0.7 does not show what is in an HLO computation")
def test_shardings_are_those_of_jaxlibs_own_propagation() -> None:
    """The same operations have the same shardings in the text that XLA dumps after its own propagation."""
    compared: Counter[str] = Counter()
    for script, devices in (("guide.py", 8), ("notes.py", 4)):
        names = [str(HERE / "programs" / name) for name in EXPECTED if name.startswith(script)]
        result = _run(devices, str(AGREE), bootstrap.FOLDER, *names)
        compared.update(line.split()[0] for line in result.splitlines() if not line.startswith("names "))
    assert compared == {"agree": len(EXPECTED)}


def test_devices_hold_what_the_table_says(report: dict[str, Report], tmp_path: Path) -> None:
    """Each shard of each live output is the piece of the whole that its sharding gives to its device."""
    destination = tmp_path / "shards.npz"
    _run(8, str(HERE / "live_shards.py"), str(destination), *(str(HERE / "programs" / name) for name in EXPECTED))
    shards = np.load(destination)
    compared = 0
    for name, known in report.items():
        function = name.partition(":")[2]
        outputs = [value for value in known.shardings if value.role == "output"]
        subject = known.capture.subject
        assert subject is not None
        for number, value in enumerate(outputs):
            whole = shards[f"{function}/{number}"]
            assert value.sharding is not None
            for partition, box in pieces(value.sharding, whole.shape).items():
                device = subject.device_assignment[partition]
                held = shards[f"{function}/{number}/{device}"]
                np.testing.assert_array_equal(held, whole[tuple(slice(*side) for side in box)], f"{name} {value.name}")
                compared += 1
    assert compared == len([key for key in shards.files if key.count("/") == 2])


def _run(devices: int, *command: str) -> str:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla_flags(devices)}
    result = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
