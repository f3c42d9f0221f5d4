"""Calls are counted, in whatever way they are made: the scripts know how many there are."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.protocol.trace import TraceOptions

from .conftest import HERE, Recorded

IMPORTED = """
import importlib, pkgutil, sys, jax
from shardscope.inspector.capture import worker
called = jax.jit(lambda x: x + 1)
called(1.0)
before = set(sys.modules)
for module in pkgutil.walk_packages(worker.__path__, worker.__name__ + "."):
    importlib.import_module(module.name)
called(1.0)
print(called._cache_size(), sorted(name for name in set(sys.modules) - before if name.startswith("jax.extend")))
"""


@pytest.mark.once
def test_calls_of_all_kinds(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, str(HERE / "counted.py"), options=TraceOptions(target="cpu"))
    assert recorded.trace.status == 0
    assert [message.text for process in recorded.trace.processes for message in process.messages] == []
    calls = {name: program.calls for name, program in recorded.programs.items() if not program.compiled.internal}
    if jax.__version_info__ >= (0, 8):  # until then the program of a pmap is lowered elsewhere
        assert calls.pop("two_on_all_devices") == 2
    assert calls == {
        "one_of_no_file": 1,
        "three": 5,
        "four_with_effects": 4,
        "five_checked": 5,
        "twenty_in_threads": 20,
        "six_of_two_types": 4,
        "six_of_two_types.2": 2,
        "seven_with_keywords": 7,
        "two_before_the_fork": 2,
        "<lambda>": 3,
    }
    helpers = [program.calls for program in recorded.programs.values() if program.is_helper]
    assert helpers
    assert set(helpers) == {None}


def test_calls_of_nnx(tmp_path: Path) -> None:
    pytest.importorskip("flax.nnx")
    recorded = Recorded(tmp_path, str(HERE / "nnx_counted.py"), options=TraceOptions(target="cpu"))
    assert recorded.trace.status == 0, recorded.stdout
    calls: Counter[str] = Counter()
    for program in recorded.trace.programs:
        if program.compiled.name in ("train_step", "evaluate"):
            assert program.calls is not None
            calls[program.compiled.name] += program.calls
    assert calls == {"train_step": 5, "evaluate": 3}


@pytest.mark.once
def test_calls_are_found_again_after_our_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX knows calls by its options as well: a module that adds one, as `jax.extend`, has all compiled anew."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    done = subprocess.run([sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True)
    assert done.stdout == "1 []\n"
