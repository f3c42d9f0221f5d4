"""Programs on fewer devices, or larger, than was meant: each is named by its argument, and its clean twin is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.findings.compiled import in_hlo
from shardscope.inspector.pipeline import inspect

from tests.findings.test_variants import PROGRAMS
from tests.sweeps import examples, xla_flags

RULES = ("SS32", "SS33", "SS34", "SS35", "SS36", "SS37", "SS38", "SS39")


@pytest.mark.once
def test_each_is_found_by_its_argument_and_no_clean_twin_is() -> None:
    devices = {"XLA_FLAGS": xla_flags(8), "JAX_PLATFORMS": "cpu"}
    every = examples(2, 1)
    command = [sys.executable, str(PROGRAMS / "meant.py"), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | devices, check=False)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout)
    assert found == expected
    assert len(expected) == -(-38 // every)


def test_what_one_program_makes_split_and_another_receives_whole_is_found() -> None:
    """And what is made on one device, though it is split afterwards; nothing where all is as it is meant."""
    subjects = {}
    for argv in ((), ("meant",)):
        script = str(PROGRAMS / "init_and_step.py")
        report = inspect(last_capture(Request(script, argv=argv, devices=8, live=False)))
        subjects[argv] = [(each.rule, each.subject) for each in report.findings if each.rule in RULES]
    assert subjects == {
        (): [("SS38", "state.params['in']"), ("SS38", "state.moments['mu']['in']")],
        ("meant",): [],
    }


CACHE = """
import sys
from pathlib import Path
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))


def make():
    return {"k": jnp.zeros((64, 32))}


@jax.jit
def step(cache, x):
    return {"k": cache["k"] + x}, jnp.sum(x)


@jax.jit
def evaluate(cache):
    return jnp.sum(jnp.tanh(cache["k"]) ** 2)


make = make if "eager" in sys.argv else jax.jit(make, out_shardings=rows if "meant" in sys.argv else None)
cache = make()
for _ in range(3):
    cache, total = step(cache, jax.device_put(jnp.ones((64, 32)), rows))
evaluate(cache if "meant" in sys.argv else jax.device_get(cache))
"""


def test_what_is_made_on_one_device_or_evaluated_there_is_found(tmp_path: Path) -> None:
    """By a program without arguments, or outside of jit; the other program receives it from the host."""
    script = tmp_path / "decode.py"
    script.write_text(CACHE)
    found = {}
    for argv in ((), ("eager",), ("meant",)):
        report = inspect(last_capture(Request(str(script), argv=argv, devices=8, live=False)))
        found[argv] = [(each.rule, each.subject) for each in report.findings if each.rule in RULES]
    on_one_device = [("SS32", "cache['k']"), ("SS38", "cache['k']")]
    assert found == {(): on_one_device, ("eager",): on_one_device, ("meant",): []}


def test_a_program_that_only_gathers_is_meant_to(tmp_path: Path) -> None:
    script = tmp_path / "gather.py"
    script.write_text(
        CACHE.partition("def make")[0] + "x = jax.device_put(jnp.ones((64, 32)), rows)\n"
        "gathered = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, P()))(x)\n"
    )
    report = inspect(last_capture(Request(str(script), devices=8, live=False)))
    assert any(each.kind == "all-gather" for each in in_hlo(report))
    assert [each.rule for each in report.findings if each.rule in RULES] == []


TRAINED = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4 if "four" in sys.argv else 8,), ("fsdp",), axis_types=(AxisType.Auto,))
rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())


def step(p, x):
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(p))


step = jax.jit(step, out_shardings=whole if "pinned" in sys.argv else rows)
p = jax.device_put({"w": jnp.ones((64, 32))}, rows)
for _ in range(3):
    p = step(p, jax.device_put(jnp.ones((16, 64)), rows))
"""


def test_devices_in_no_mesh_and_results_that_later_calls_receive(tmp_path: Path) -> None:
    """Devices count if their number was requested; what the first call returns whole, it has not received so.

    The report is of the later calls, which receive it whole.
    """
    script = tmp_path / "train.py"
    script.write_text(TRAINED)
    found = {}
    for argv, devices in ((("four",), 8), (("four",), None), (("pinned",), 8), ((), 8)):
        report = inspect(last_capture(Request(str(script), argv=argv, devices=devices, live=False)))
        found[argv, devices] = [(each.rule, each.subject) for each in report.findings if each.rule in RULES]
    assert found == {
        (("four",), 8): [("SS32", "mesh")],
        (("four",), None): [],
        (("pinned",), 8): [("SS33", "p['w']"), ("SS37", "result['w']")],
        ((), 8): [],
    }
