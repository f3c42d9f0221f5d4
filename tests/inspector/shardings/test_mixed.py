"""Programs with axes of several types, parts of axes, partial sums and memory kinds, against JAX and Shardy's dump."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests.sweeps import examples, fewer

COMPARE = Path(__file__).with_name("compare_here.py")
SEEDS = fewer((8, 31, 65, 163), 2)


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older versions refuse most of these programs")
def test_reports_agree_with_jax_and_xla() -> None:
    run = [sys.executable, str(COMPARE), *map(str, SEEDS)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    *differences, total = result.stdout.splitlines()
    assert differences == []
    programs, values, collectives = (int(part.split()[0]) for part in total.split(", "))
    assert programs >= len(SEEDS) - 1, result.stderr[-2000:]
    assert values > 100
    assert collectives > examples(15, 30)
