"""Changes of a traced program are tried by running its script again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

def main():
    size = int(sys.argv[1])
    rows = NamedSharding(mesh, P("x"))
    w = jax.device_put(jnp.ones((size, size)), rows)
    x = jax.device_put(jnp.ones((2 * size, size)), rows)

    @jax.jit
    def step(w, x):
        x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))
        return jax.lax.with_sharding_constraint(jnp.tanh(x) @ w, rows)

    print(step(w, x).sum())

main()
"""


def findings(folder: Path, *options: str) -> list[dict[str, Any]]:
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "shardscope", "trace", "--devices", "8", "--match", "step", *options]
    command += ["--format", "json", "-o", "report.json", "train.py", "64"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return list(json.loads((folder / "report.json").read_text())["findings"])


@pytest.mark.once
def test_changes_of_a_traced_program_are_tried(tmp_path: Path) -> None:
    """As often as no time is given, none is."""
    tried = [fix for each in findings(tmp_path, "--try", "60") for fix in each["fixes"] if fix["state"] == "tried"]
    assert tried
    sent = tried[0]["experiment"]
    assert sent["after"]["bytes"] < sent["before"]["bytes"]
    assert {Path(edit["file"]).name for edit in tried[0]["edits"]} == {"train.py"}
    assert not any(fix["experiment"] for each in findings(tmp_path) for fix in each["fixes"])
