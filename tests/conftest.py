"""What tests of several folders share: captures of the samples, each made once."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator

import pytest
from hypothesis import HealthCheck, settings
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.warm import WARMTH, Warmth
from shardscope.samples.catalogue import samples

settings.register_profile("shared", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# Machine code is not what is tested: what LLVM does for it takes an eighth of the time.
FAST = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST}".strip()

MADE_ONCE = ("corpus", "folder", "sample")
"""Fixtures that take long to make: the tests that ask for one run in the same process."""

RARELY = 200
"""So many collections of young objects to one of all: by default, 10, those took a quarter of the time of tests."""

SampleCapture = Callable[[str], Capture]

SAMPLE_FUNCTIONS = [f"{sample.name}:{function}" for sample in samples() for function in sample.functions]
"""`name:function` of all that can be inspected in the samples."""


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until the tests are collected, all of which stay
    config.addinivalue_line("markers", "once: long, and the same with every JAX: `make newest` leaves it out")
    config.addinivalue_line("markers", "cold: starts its capturing processes from nothing, not from a warm server")


def pytest_collection_finish() -> None:
    gc.set_threshold(*gc.get_threshold()[:2], RARELY)
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    _say_what_was_not_tried(config)
    WARMTH.close()
    gc.collect()
    gc.freeze()  # pytest collects five times more


INSTALLED_BY = {
    "libtpu": "make check EXTRAS=dev,pictures,tpu",
    "NVIDIA": "pip install 'jax[cuda13]'",
    "Chromium": "apt install chromium",
}
"""What a machine may lack, and what brings it, by a word of the reason why a test is skipped."""


def _say_what_was_not_tried(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    skipped = () if terminal is None else terminal.stats.get("skipped", ())
    reasons = [each.longrepr[2] for each in skipped if len(each.longrepr or ()) == 3]
    for word, how in INSTALLED_BY.items():
        if count := sum(word in reason for reason in reasons):
            terminal.write_line(f"not tried for want of {word}: {count} tests ({how})")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the processes that a test starts be warm, unless it is about how they start."""
    WARMTH.enabled = item.get_closest_marker("cold") is None
    return (yield)


@pytest.fixture(scope="session")
def warmth() -> Warmth:
    """What starts captures in this session."""
    return WARMTH


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Tell pytest-xdist what has to stay together: what shares an expensive fixture, else the tests of a file."""
    for item in items:
        shared = next((name for name in MADE_ONCE if name in item.fixturenames), str(item.path))
        item.add_marker(pytest.mark.xdist_group(shared))


@pytest.fixture(scope="session")
def sample() -> SampleCapture:
    """Captures `name:function` of a sample, without a live run."""
    paths = {each.name: each.path for each in samples()}
    known: dict[str, Capture] = {}

    def captured(function: str) -> Capture:
        if function not in known:
            name, _, attribute = function.partition(":")
            *_, known[function] = capture(Request(f"{paths[name]}:{attribute}", live=False))
            assert known[function].complete, known[function].failure
        return known[function]

    return captured
