"""The `sdy` stage: the shardings that XLA itself computes, with the origin of each."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest
from shardscope.inspector.capture import attempt, propagation
from shardscope.inspector.capture.children import Children
from shardscope.inspector.capture.propagation import NOT_XLAS, WISHES, Propagated, Propagation
from shardscope.inspector.capture.protocol import bootstrap
from shardscope.inspector.capture.spawn import Request, last_capture

from tests.sweeps import sampled, xla_flags

from .conftest import PROGRAMS, Captured

AGREE = PROGRAMS.parent / "agreement.py"

FUNCTIONS = [
    "sharded",
    "mapped",
    "looped",
    "nested",
    "branches",
    "rematerialized",
    "indivisible",
    "called_twice",
    *(["special"] if jax.__version_info__ >= (0, 8) else []),  # Shardy of JAX 0.7 aborts
]


def lines(text: str, *wanted: str) -> list[str]:
    return [line for line in text.splitlines() if all(word in line for word in wanted)]


def sdy(program: Captured, function: str, **options: str) -> str:
    capture = program(function, **options)
    assert capture.failure is None, capture.failure
    stage = capture.stage("sdy")
    assert stage is not None
    assert not [message for message in capture.messages if message.phase == "propagation"], capture.messages
    assert stage.seconds is not None
    return stage.source.text()


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="jaxlib 0.7 does not show what is in an HLO computation")
def test_shardings_agree_with_xlas_own(program: Captured) -> None:
    """The same operations have the same shardings in the text that XLA dumps after its own propagation."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags(8),
    }
    names = [f"{PROGRAMS}/propagated.py:{name}" for name in FUNCTIONS]
    run = [sys.executable, str(AGREE), bootstrap.FOLDER, *names]
    result = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    *compared, names = result.stdout.splitlines()
    assert [line.split()[0] for line in compared] == ["agree"] * len(FUNCTIONS), result.stdout
    assert int(names.removeprefix("names ")) > 400


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 6, 3))
def test_every_program_has_origins(program: Captured, function: str) -> None:
    assert "sdy.sharding_origins = " in sdy(program, f"propagated.py:{function}")


def test_origins_and_steps(program: Captured) -> None:
    text = sdy(program, "propagated.py:sharded")
    (signature,) = lines(text, "func.func @main")
    assert '%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, ' in signature
    assert 'sdy.sharding_origins = {x = "self"}' in signature
    (product,) = lines(text, "stablehlo.dot")
    assert 'sdy.sharding_origins = [{x = "input: 0", y = "input: 1"}]' in product
    assert '"x" = operand-0 -> [result-0]' in product
    assert "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16}" in product
    assert "propagated.py" in text


def test_origins_through_a_loop_around_a_shard_map(program: Captured) -> None:
    text = sdy(program, "propagated.py:looped")
    assert text.count("stablehlo.while") == 2
    assert text.count("sdy.manual_computation") >= 2
    assert "func.call" not in text
    assert "shardscope.identity" not in text
    loop = lines(text, "stablehlo.while(")[0]
    assert re.search(r'sdy.result_sharding_origins = \[.*\{x = "constraint_0", y = "mc_\d_output: \d"\}', loop)
    assert "shardscope.result_propagation_edges = {" in loop


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_a_target_propagates_for_itself(program: Captured) -> None:
    """The compiler of the target dumps its module, which is HLO's: JAX has no `dot` and names no head like it."""
    text = sdy(program, "propagated.py:nested", target="tpu:v6e:2x4")
    assert "mhlo.cross_program_prefetches" in text
    assert "stablehlo.dot_general" not in text
    assert "sdy.sharding_origins = " in text
    (asked,) = lines(text, "sdy.reshard", "constraint_")
    assert re.search(r"loc\(#loc\d+\)$", asked)


def test_nothing_to_propagate_is_no_problem(program: Captured) -> None:
    capture = program("kinds.py:donated")
    assert capture.stage("sdy") is None
    assert not [message for message in capture.messages if message.phase == "propagation"]


def outcome(folder: Path, python: str, text: bytes) -> Propagated:
    found: list[Propagated] = []
    with Children() as children:
        run = Propagation(children, python, os.environ, folder, found.append)
        run.submit(text, None)
        run._thread.join(30)
        run.stop()
    (result,) = found
    return result


def fake(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return str(path)


def test_a_crash_costs_origins_first_then_steps_then_the_text(tmp_path: Path) -> None:
    crash_on_origins = """
        import os, sys
        source, destination, wish, *dump = sys.stdin.read().split("\\n")
        if "origins" in wish: os.abort()
        open(destination, "w").write("without origins")
    """
    result = outcome(tmp_path, fake(tmp_path, crash_on_origins), b"sdy.mesh")
    assert result.text == b"without origins"
    assert result.problem is not None
    assert result.problem.startswith("the origins of shardings are not known")
    assert "SIGABRT" in result.problem
    result = outcome(tmp_path, fake(tmp_path, "import sys; sys.stdin.read(); sys.exit('no such pass')"), b"sdy.mesh")
    assert result.text is None
    assert result.problem is not None
    assert "steps of their propagation are not known" in result.problem
    assert "no such pass" in result.problem


@pytest.mark.cold  # no server answers either
def test_a_run_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "TIMEOUT_S", 0.3)
    result = outcome(tmp_path, fake(tmp_path, "import time; time.sleep(1000)"), b"sdy.mesh")
    assert result.text is None
    assert "timed out after 0.3 s" in (result.problem or "")


@pytest.mark.once
def test_text_that_mlir_refuses(tmp_path: Path) -> None:
    result = outcome(tmp_path, sys.executable, b"module { sdy.mesh")
    assert result.text is None
    assert result.problem is not None


@pytest.mark.parametrize("has_dump", [True, False])
@pytest.mark.parametrize("number", range(7))
def test_what_is_missing_when_wishes_are_refused(has_dump: bool, number: int, tmp_path: Path) -> None:
    """Of XLA's own propagation first, then of the StableHLO: origins and steps, then less."""
    asked: list[tuple[str, bool]] = []

    def ask(process: object, source: Path, destination: Path, wish: str, files: Sequence[Path]) -> Propagated | str:
        assert source.read_bytes() == b"text"
        asked.append((wish, bool(files)))
        return Propagated(b"found") if len(asked) > number else f"problem {len(asked)}"

    task: Any = SimpleNamespace(_folder=tmp_path, _start=lambda: None, _ask=ask)
    found = Propagation._propagate(task, None, b"text", (tmp_path,) * 3 if has_dump else None)
    wishes = [(wish, dump) for dump in ((True, False) if has_dump else (False,)) for wish in WISHES]
    assert asked == wishes[: number + 1]
    if number >= len(wishes):
        assert found.text is None
        assert found.problem is not None
        assert f"problem {len(wishes)}" in found.problem
        return
    wish, dump = wishes[number]
    assert found.text == b"found"
    said = found.problem or ""
    assert bool(said) == (bool(WISHES[wish]) or not dump)
    assert not WISHES[wish] or (WISHES[wish] in said and f"problem {number}" in said)
    assert (NOT_XLAS.partition("{")[0] in said) is not dump
    if has_dump and not dump:
        assert said.endswith("problem 3")
    elif not has_dump:
        assert said.endswith("XLA wrote no dump of it")


FAULTY = """
import os, sys, time
import jax, jax.numpy as jnp

class Finder:
    def find_spec(self, name, *more):
        if name.endswith(".worker.provenance"):
            {}

sys.meta_path.insert(0, Finder())
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
sharding = jax.sharding.NamedSharding(mesh, jax.P("x"))
function = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, sharding))
inputs = (jnp.ones(8),)
"""


@pytest.mark.cold  # a server has imported what cannot be imported here
@pytest.mark.parametrize("fault", ["os.abort()", "time.sleep(1000)", "raise ValueError", "pass"])
def test_another_process_propagates_where_the_capturing_one_cannot(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then it has sent everything else."""
    monkeypatch.setattr(attempt, "TIMEOUT_S", 2.0)
    script = tmp_path / "script.py"
    begun: list[Propagation] = []
    script.write_text(FAULTY.format(fault))
    begin = Propagation.__init__

    def beginning(self: Propagation, *given: Any) -> None:
        begun.append(self)
        begin(self, *given)

    monkeypatch.setattr(Propagation, "__init__", beginning)
    capture = last_capture(Request(f"{script}:function", live=False))
    assert capture.complete, capture.failure
    assert capture.stage("hlo") is not None
    stage = capture.stage("sdy")
    assert stage is not None
    assert stage.seconds is not None
    assert "sdy.sharding_origins" in stage.source.text()
    assert len(begun) == (fault != "pass")
