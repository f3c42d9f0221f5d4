"""The corpus: what compilers print of small programs, made once for all tests of the parsers; and their own parsers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.sweeps import THOROUGH

MAKE = Path(__file__).parent.parent / "corpus" / "make.py"

FEW = ("--programs", "dense,collectives,control", "--passes")
KINDS = [("--targets", "cpu", "--samples"), ("--targets", "cpu", "--passes")]
if not THOROUGH:
    KINDS = [("--targets", "cpu", "--samples", "5"), ("--targets", "cpu", *FEW)]
if find_spec("libtpu"):
    KINDS.append(("--targets", "tpu:v5p:2x2x2", *FEW))
if find_spec("jax_plugins") and find_spec("jax_plugins.xla_cuda13"):
    KINDS.append(("--targets", "gpu", *FEW))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Texts of every stage of every program and sample, and after every pass, of the targets that this JAX has.

    Or those of a folder that `corpus/make.py` has made before: see there.
    """
    if made_before := os.environ.get("SHARDSCOPE_CORPUS"):
        return sorted(path for path in Path(made_before).rglob("*") if path.suffix in (".hlo", ".mlir", ".txt"))
    folder = tmp_path_factory.mktemp("corpus")
    texts: list[Path] = []
    for number, options in enumerate(KINDS):
        made = run_script(MAKE, folder / str(number), *options)
        assert made["failures"] == {}
        texts += map(Path, made["texts"])
    return texts


def run_script(script: Path, *arguments: str | Path) -> dict[str, Any]:
    """Run a script that uses JAX; the JSON in the last line of its output."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def read_in_cpp(reader: Path, paths: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """What a compiler's own parser says of each text: one of the scripts `cpp_reader.py`, in a process that may die."""
    found: dict[Path, dict[str, Any]] = {}
    rest = list(paths)
    while rest:
        done = subprocess.run(
            [os.environ.get("SHARDSCOPE_CORPUS_PYTHON", sys.executable), reader],
            input="".join(f"{path}\n" for path in rest),
            capture_output=True,
            text=True,
            env=os.environ | {"TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"},
            check=False,
        )
        answers = list(map(json.loads, done.stdout.splitlines()))
        found |= {Path(answer["path"]): answer for answer in answers if "started" not in answer}
        assert done.returncode == 0 or answers, done.stderr[-4000:]
        if done.returncode:
            # The last that it started has ended the process.
            found.setdefault(Path(answers[-1]["path"]), {"error": "aborted"})
        rest = [path for path in rest if path not in found]
    return found
