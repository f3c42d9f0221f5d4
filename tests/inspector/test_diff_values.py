"""The values of outputs of two runs, beside what numpy says of the same arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shardscope.inspector.capture.model import Capture, Execution, OutputSummary
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.diff import values
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.values import compare_values
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.headline import headline
from shardscope.inspector.render.tables.comparison import diff_tables

pytestmark = pytest.mark.once

SCRIPT = """\
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def inputs(seed=0):
    x = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)
    return (jax.device_put(x, NamedSharding(mesh, P("x"))),)

def others():
    return inputs(1)

def base(x):
    return {"sum": jnp.sum(x), "product": x @ x, "count": jnp.sum(x > 0), "same": x}

def reordered(x):
    return {"sum": jnp.sum(x[::-1].T), "product": (x.T.T @ x[:, ::-1])[:, ::-1], "count": jnp.sum(x > 0), "same": x}

def wrong(x):
    return {"sum": jnp.sum(x) * 1.5, "product": x @ x, "count": jnp.sum(x > 1), "same": x.at[0, 0].set(jnp.nan)}
"""

Run = Callable[..., Capture]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    script = tmp_path_factory.mktemp("values") / "outputs.py"
    script.write_text(SCRIPT)
    known: dict[tuple[str, str], Capture] = {}

    def captured(name: str, inputs: str = "inputs") -> Capture:
        if (name, inputs) not in known:
            known[name, inputs] = last_capture(Request(f"{script}:{name}", inputs=inputs, probe="none"))
        return known[name, inputs]

    return captured


def expected(name: str) -> dict[str, np.ndarray]:
    """The outputs, as numpy computes them."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    found = {"sum": np.sum(x), "product": x @ x, "count": np.sum(x > 0), "same": x}
    if name == "wrong":
        changed = x.copy()
        changed[0, 0] = np.nan
        found |= {"sum": np.sum(x) * 1.5, "count": np.sum(x > 1), "same": changed}
    return {key: np.asarray(value) for key, value in found.items()}


@pytest.mark.parametrize("name", ["base", "reordered", "wrong"])
def test_outputs_that_differ_are_those_that_numpy_finds(run: Run, name: str) -> None:
    found = diff(inspect(run("base")), inspect(run(name)))
    assert found.values is not None
    assert found.values.same_inputs is True
    one, other = expected("base"), expected(name)
    differ = {key for key in one if not np.allclose(one[key], other[key], rtol=1e-3, equal_nan=False)}
    assert {each.after.path.split("'")[1] for each in found.values.differs} == differ
    assert found.values.equal + found.values.close == len(one) - len(differ)
    assert ("other values" in headline(found)) == bool(differ)
    rows = {table.id: [row.cells for row in table.rows] for table in diff_tables(found)}["values"]
    assert len(rows) == len(differ) + 1
    if name == "wrong":
        words = dict(rows)
        assert words["result['count']"].startswith(f"{one['count']} → {other['count']}, not by rounding")
        assert "0 → 1 elements not finite" in words["result['same']"]


def test_other_arguments_say_nothing_about_the_function(run: Run) -> None:
    found = diff(inspect(run("base")), inspect(run("base", "others")))
    assert found.values is not None
    assert found.values.same_inputs is False
    assert "other values" not in headline(found)
    (table,) = (each for each in diff_tables(found) if each.id == "values")
    assert [row.cells[0] for row in table.rows] == ["inputs"]


def test_what_was_not_run_or_not_described_is_not_called_equal(run: Run) -> None:
    execution = run("base").execution
    assert execution is not None
    assert compare_values(execution, None) is None
    bare = Execution(tuple(replace(each, digest=None, projections=None) for each in execution.outputs))
    assert compare_values(execution, bare) is None
    first, *others = execution.outputs
    found = compare_values(execution, Execution((first, *bare.outputs[1:])))
    assert found is not None
    assert (found.equal, found.close, found.unknown, found.differs) == (1, 0, len(others), ())
    assert found.same_inputs is None


@pytest.mark.parametrize("apart", [None, 0.0, 0.5, 1.0, 1.001, 40.0])
def test_rounding_explains_as_much_as_it_does_and_no_more(monkeypatch: pytest.MonkeyPatch, apart: float | None) -> None:
    """Each output is in one of the counts."""
    monkeypatch.setattr(values, "distance", lambda one, other: apart)
    one = OutputSummary(path="result", type="f32[4]", spec=None, digest="a")
    found = compare_values(Execution((one, one)), Execution((replace(one, digest="b"), one)))
    assert found is not None
    assert (found.equal, found.unknown) == (1, apart is None)
    assert (found.close, len(found.differs)) == ((0, 0) if apart is None else (1, 0) if apart <= 1 else (0, 1))


def test_the_command_runs_both_sides(run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from shardscope.cli import main

    script = tmp_path / "outputs.py"
    script.write_text(SCRIPT)
    main(["diff", f"{script}:base", f"{script}:wrong", "--live", "--inputs", "inputs", "--format", "text"])
    said = capfd.readouterr().out
    assert "3 of 4 outputs have other values" in said
    assert "Values of outputs" in said
