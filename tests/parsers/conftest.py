"""The corpus: what compilers print of small programs, made once for all tests of the parsers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

MAKE = Path(__file__).parent.parent / "corpus" / "make.py"

KINDS = [("--targets", "cpu", "--samples"), ("--targets", "cpu", "--passes")]
FEW = ("--programs", "dense,collectives,control", "--passes")
if find_spec("libtpu"):
    KINDS.append(("--targets", "tpu:v5p:2x2x2", *FEW))
if find_spec("jax_plugins") and find_spec("jax_plugins.xla_cuda13"):
    KINDS.append(("--targets", "gpu", *FEW))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Texts of every stage of every program and sample, and after every pass, of the targets that this JAX has."""
    folder = tmp_path_factory.mktemp("corpus")
    texts: list[Path] = []
    for number, options in enumerate(KINDS):
        made = run_script(MAKE, folder / str(number), *options)
        assert made["failures"] == {}
        texts += map(Path, made["texts"])
    return texts


def run_script(script: Path, *arguments: str | Path) -> dict[str, object]:
    """Run a script that uses JAX; the JSON in the last line of its output."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
