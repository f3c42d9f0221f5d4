"""Public libraries' programs of the zoo that are quick: what is listed is what JAX itself compiled."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import resolved, to_json
from shardscope.inspector.report import Report

from tests.sweeps import sampled

ZOO = Path(__file__).parents[2] / "tools" / "zoo"
PROGRAMS = tomllib.loads((ZOO / "programs.toml").read_text())
DEVICES = 8
MODULES = {"orbax-checkpoint": "orbax"}
"""What is imported of a package with another name."""

WRITTEN = {
    "nnx-mlp": {("gradient sync", "data"), ("tensor parallelism", "model")},
    "nnx-attention": None,
    "nnx-scan": {("gradient sync", "data"), ("tensor parallelism", "model")},
    "linen-scan": None,
    "linen-mlp": {("gradient sync", "data"), ("tensor parallelism", "model")},
    "equinox-mlp": {("gradient sync", "batch")},
    "equinox-attention": None,
    "optax-zero": None,
    "optax-accumulation": {("gradient sync", "batch")},
    "optax-muon": None,
    "orbax-restored": None,
    "moe-all-to-all": None,
}
"""The quick programs, and, where their docstrings say it, what they communicate for, over which axis."""

Answers = dict[str, tuple[Report, dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Answers:
    """The report of each program that is tried, and what JAX says of it; one process asks JAX about all of them."""
    tried = {item.name for item in request.session.items if not item.get_closest_marker("skip")}
    folder, reports, arguments = tmp_path_factory.mktemp("zoo"), {}, []
    for name in WRITTEN:
        if f"{test_a_program_of_the_zoo.__name__}[{name}]" not in tried or not all(
            importlib.util.find_spec(MODULES.get(each, each)) for each in PROGRAMS[name]["packages"]
        ):
            continue
        script, _, function = PROGRAMS[name]["function"].partition(":")
        path = ZOO / "programs" / script
        *_, final = capture(Request(f"{path}:{function}", devices=DEVICES, live=False))
        assert final.failure is None, final.failure
        reports[name] = inspect(final)
        (folder / name).write_text(json.dumps(resolved(json.loads(to_json(reports[name])))))
        arguments += [str(path), function, str(folder / name)]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
    command = [sys.executable, str(ZOO / "oracle.py"), *arguments]
    done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {name: (report, truth) for (name, report), truth in zip(reports.items(), lines, strict=True)}


@pytest.mark.parametrize(
    "name",
    sampled(
        WRITTEN,
        ("nnx-mlp", "linen-scan", "equinox-mlp", "moe-all-to-all"),
        ("nnx-mlp", "moe-all-to-all"),
    ),
)
def test_a_program_of_the_zoo(answers: Answers, name: str) -> None:
    if name not in answers:
        pytest.skip(f"needs {PROGRAMS[name]['packages']}")
    report, truth = answers[name]
    assert sum(truth["collectives"].values()) > 0
    assert (truth["missing"], truth["invented"], truth["wrong_shardings"]) == ([], [], [])
    own = {each.source.file for each in report.collectives if each.source is not None and each.source.file}
    assert own <= {str(ZOO / "programs" / PROGRAMS[name]["function"].partition(":")[0])}
    strategies = {(each.strategy, *map(str, each.axes or ())) for each in report.communication}
    assert WRITTEN[name] in (None, strategies - {each for each in strategies if each[0] == "scalar reductions"})


def test_every_program_has_its_function() -> None:
    for name, each in PROGRAMS.items():
        script, _, function = each["function"].partition(":")
        text = (ZOO / "programs" / script).read_text()
        assert any(f"{head}{function}" in text for head in ("def ", "\n")), name
        assert f"{function}_inputs" in text, name
