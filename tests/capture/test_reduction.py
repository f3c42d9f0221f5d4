"""Programs that differ, made smaller: what stays is the difference, and a program without equations is still right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.worker.reduction.equations import Cut, CutProgram, is_float, numbered
from shardscope.inspector.capture.worker.reduction.reduce import Reduction, smaller_arguments

DEPTHWISE = Path(__file__).parent / "programs" / "depthwise.py"


@pytest.mark.once
def test_a_wrong_program_is_reduced(tmp_path: Path) -> None:
    folder = tmp_path / "reproduction"
    options = ["--target", "cpu", "--seconds", "5", "--reproduction", str(folder), "--format", "json"]
    command = [sys.executable, "-m", "shardscope", "validate"]
    done = subprocess.run([*command, f"{DEPTHWISE}:step", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["validation"]
    assert (found["status"], len(found["outputs"])) == ("differs", 7)
    again = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stderr
    assert "optimized program differs" in again.stdout
    assert "convolution(" in (folder / "source.hlo").read_text()
    reduced = re.search(
        r"Reduced: (\d+) instr.*, (\d) outputs?; the program has (\d+) ", (folder / "README.md").read_text()
    )
    assert reduced is not None  # how far depends on the machine
    assert int(reduced[1]) < int(reduced[3])
    assert int(reduced[2]) < 7


def scanned(x: jax.Array, stacked: jax.Array) -> jax.Array:
    def step(carry: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = jnp.tanh(carry @ w)
        return y, jax.jit(jnp.sum)(y * 2)

    carry, sums = lax.scan(step, jnp.sin(x), stacked, reverse=True)
    return carry.sum() * sums


INPUTS = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), np.ones((3, 4, 4), np.float32) / 4


@pytest.mark.parametrize("length", [3, 1, 0])
def test_a_program_without_cuts_is_the_program(length: int) -> None:
    inputs = INPUTS[0], INPUTS[1][:length]
    jaxpr = jax.make_jaxpr(scanned)(*inputs)
    (result,) = CutProgram(jaxpr, Cut(0))(inputs, {})
    np.testing.assert_allclose(result, scanned(*inputs), rtol=1e-6)


def test_holes_stand_for_what_the_equations_give() -> None:
    jaxpr = jax.make_jaxpr(scanned)(*INPUTS)
    every = list(numbered(jaxpr))
    assert {each.lengths for each in every} == {(), (3,)}
    for number, each in enumerate(every):
        if each.lengths or not each.floats:
            continue
        value = jax.jit(CutProgram(jaxpr, Cut(0, end=number)))(INPUTS, {})[0]
        cut = CutProgram(jaxpr, Cut(0, dropped=frozenset({number})))
        if len(each.floats) == 1:
            assert [hole.shape for hole in cut.holes[number]] == [value.shape]
            np.testing.assert_allclose(cut(INPUTS, {number: [value]})[0], scanned(*INPUTS), rtol=1e-5)


def test_a_hole_in_a_loop_has_a_value_for_each_iteration() -> None:
    jaxpr = jax.make_jaxpr(scanned)(*INPUTS)
    number = next(n for n, each in enumerate(numbered(jaxpr)) if each.equation.primitive.name == "tanh")
    cut = CutProgram(jaxpr, Cut(0, dropped=frozenset({number})))
    assert [hole.shape for hole in cut.holes[number]] == [(3, 4, 4)]
    values = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
    (result,) = cut(INPUTS, {number: [values]})
    np.testing.assert_allclose(result, values[0].sum() * 2 * values.sum(axis=(1, 2)), rtol=1e-6)


def test_integers_are_no_holes() -> None:
    every = list(numbered(jax.make_jaxpr(lambda x: x[jnp.argmax(x)])(INPUTS[0][0])))
    assert any(not each.floats for each in every)
    assert all(is_float(aval) for each in every for aval in each.floats)


def test_arguments_get_smaller_together() -> None:
    ids = np.arange(16, dtype=np.int32)
    layers = [{"w": np.ones((16, 3), np.float32)} for _ in range(4)]
    changes = {key: change() for key, change in smaller_arguments(((layers, ids), {}))}
    assert len(changes["list", 4, 1][0][0]) == 1
    (smaller, indices), _ = changes["dimension", 16, 2]
    assert {each["w"].shape for each in smaller} == {(2, 3)}
    assert indices.tolist() == [0, 1]
    assert len(smaller) == 4


def test_arguments_get_as_small_as_the_difference_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the next smaller ones differs, and each that does not is tried once."""
    tried, cut = [], []

    def differs(given: Any) -> bool:
        (layers, ids), _ = given
        return len(layers) >= 2 and len(ids) >= 4

    def attempt(self: Reduction, make: Any) -> Any:
        given, program = make()
        tried.append(jax.tree.structure(given).num_leaves * 100 + len(given[0][1]))
        return (given, program) if differs(given) else None

    monkeypatch.setattr(Reduction, "_attempt", attempt)
    monkeypatch.setattr(Reduction, "_evaluated", lambda self, place: {"first_difference": None})
    monkeypatch.setattr(Reduction, "_cut", lambda self, program: cut.append(program))
    layers = [{"w": np.ones((16, 3), np.float32)} for _ in range(4)]
    request = Request("script.py:step", case=str(tmp_path), case_evaluator=("none",))
    given: Any = (layers, np.arange(16, dtype=np.int32)), {}
    Reduction(request, str(tmp_path), None).run(given, given, lambda given: given)
    (smallest,) = cut
    assert differs(smallest)
    assert not any(differs(change()) for _, change in smaller_arguments(smallest))
    assert len(tried) < 20
