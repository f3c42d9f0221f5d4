"""The samples, run once for all tests of this folder in one child process with eight fake devices."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from shardscope.samples.catalogue import samples

from tests.conftest import EVERY_FUNCTION, KEPT_FUNCTIONS
from tests.sweeps import THOROUGH

OF_STORIES = {
    *("fsdp:grad", "data_parallel:grad", "pipeline:loss", "ring_attention:attend", "grad_accumulation:once"),
    *("grad_accumulation:each_time", "grad_accumulation:automatic"),
}
RUN = {name for name in EVERY_FUNCTION if THOROUGH or name in OF_STORIES | KEPT_FUNCTIONS}
"""The functions that are run."""

COLLECTIVE = re.compile(r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)(?:-start)?\(")


@dataclass(frozen=True)
class Result:
    """What became of one function of one sample."""

    facts: Mapping[str, list]
    """Of each leaf of the result: `specs`, `shard_shapes`, `copies_agree`."""
    arrays: Mapping[str, np.ndarray]
    stablehlo: str
    hlo: str

    @property
    def pairs(self):
        """(actual, expected) of each leaf of the result."""
        return [(self.arrays[f"actual{i}"], self.arrays[f"expected{i}"]) for i in range(len(self.arrays) // 2)]

    @property
    def collectives(self):
        """How often each collective stands in the compiled text."""
        return Counter(COLLECTIVE.findall(self.hlo))

    @property
    def collectives_of_entry(self):
        """The same, without those in loops and other called computations."""
        return Counter(COLLECTIVE.findall(self.hlo.partition("\nENTRY ")[2]))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where the child process left what it found."""
    folder = tmp_path_factory.mktemp("samples")
    todo = [
        {"name": s.name, "path": str(s.path), "functions": [f for f in s.functions if f"{s.name}:{f}" in RUN]}
        for s in samples()
    ]
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
    }
    child = subprocess.run(
        [sys.executable, "-W", "error", Path(__file__).with_name("run_all.py"), folder],
        input=json.dumps(todo),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def result(folder):
    """The result of `SAMPLE:FUNCTION`."""

    def read(key):
        stem = str(folder / key.replace(":", "."))
        facts = json.loads(Path(stem + ".json").read_text())
        assert "error" not in facts, facts["error"]
        with np.load(stem + ".npz") as arrays:
            return Result(
                facts, dict(arrays), Path(stem + ".stablehlo.txt").read_text(), Path(stem + ".hlo.txt").read_text()
            )

    return read
