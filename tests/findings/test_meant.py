"""Programs on fewer devices, or larger, than was meant: each is named by its argument, and its clean twin is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.findings.test_variants import PROGRAMS


def test_each_is_found_by_its_argument_and_no_clean_twin_is() -> None:
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(PROGRAMS / "meant.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | devices, check=False)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout)
    assert found == expected
    assert len(expected) == 20
