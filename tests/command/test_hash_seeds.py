"""What is reported does not depend on the order of a set: another hash seed changes nothing but times."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import save

from tests.conftest import SampleCapture

pytestmark = pytest.mark.once

COMMANDS = """
import sys
from shardscope.cli import main
main(["run", "data_parallel:loss", "--no-live", "--format", "json", "--details", "all"])
for format in ("json", "text", "markdown"):
    main(["open", sys.argv[1], "--format", format, "--details", "all"])
"""

TIMES = re.compile(r'("(?:seconds|start|import|arguments|trace|lower|compile|propagation)":\s*)[0-9.e-]+')


def test_two_hash_seeds(sample: SampleCapture, tmp_path: Path) -> None:
    save(sample("data_parallel:grad"), tmp_path / "capture")
    found = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", COMMANDS, str(tmp_path / "capture")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.append(TIMES.sub(r"\g<1>0", done.stdout))
    assert len(found[0]) > 80_000
    assert found[0] == found[1]
