"""Public libraries' programs of the zoo that are quick: what is listed is what JAX itself compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import resolved, to_json

ZOO = Path(__file__).parents[2] / "tools" / "zoo"
PROGRAMS = tomllib.loads((ZOO / "programs.toml").read_text())
REPEAT_BELOW_S = ("nnx-mlp", "equinox-mlp")
DEVICES = 8


@pytest.mark.parametrize("name", REPEAT_BELOW_S)
def test_a_program_of_the_zoo(name: str, tmp_path: Path) -> None:
    for package in PROGRAMS[name]["packages"]:
        pytest.importorskip(package)
    script, _, function = PROGRAMS[name]["function"].partition(":")
    path = ZOO / "programs" / script
    *_, final = capture(Request(f"{path}:{function}", devices=DEVICES, live=False))
    assert final.failure is None, final.failure
    report = tmp_path / "report.json"
    report.write_text(json.dumps(resolved(json.loads(to_json(inspect(final))))))
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
    command = [sys.executable, str(ZOO / "oracle.py"), str(path), function, str(report)]
    done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, check=True)
    truth = json.loads(done.stdout.splitlines()[-1])
    assert sum(truth["collectives"].values()) > 0
    assert (truth["missing"], truth["invented"], truth["wrong_shardings"]) == ([], [], [])


def test_every_program_has_its_function() -> None:
    for name, each in PROGRAMS.items():
        script, _, function = each["function"].partition(":")
        text = (ZOO / "programs" / script).read_text()
        assert any(f"{head}{function}" in text for head in ("def ", "\n")), name
        assert f"{function}_inputs" in text, name
