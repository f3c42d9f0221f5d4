"""Programs on fewer devices, or larger, than was meant: each is named by its argument, and its clean twin is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.pipeline import inspect

from tests.findings.test_variants import PROGRAMS

RULES = ("SS32", "SS33", "SS34", "SS35", "SS36", "SS37", "SS38")


def test_each_is_found_by_its_argument_and_no_clean_twin_is() -> None:
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(PROGRAMS / "meant.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | devices, check=False)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout)
    assert found == expected
    assert len(expected) == 24


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
