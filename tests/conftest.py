"""What tests of several folders share: captures of the samples, each made once."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.warm import IS_POSSIBLE, WARMTH, Warmth
from shardscope.inspector.experiments import lab
from shardscope.inspector.report import Experiment, Finding, Report
from shardscope.samples.catalogue import samples

from tests.sweeps import FAST, THOROUGH, examples, sampled

settings.register_profile(
    "shared",
    max_examples=examples(25, 100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shared")

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST}".strip()

MADE_ONCE = ("corpus", "folder", "sample")
"""Fixtures that take long to make: the tests that ask for one run in the same process."""

RARELY = 200
"""So many collections of young objects to one of all: by default, 10, those took a quarter of the time of tests."""

SampleCapture = Callable[[str], Capture]

EVERY_FUNCTION = [f"{sample.name}:{function}" for sample in samples() for function in sample.functions]
"""`name:function` of all that can be inspected in the samples."""

KEPT_FUNCTIONS = {f"{sample.name}:{sample.functions[-1]}" for sample in samples()}
KEPT_FUNCTIONS |= {name for name in EVERY_FUNCTION if name.endswith(":faulty")}
"""One function of each sample, and all that are at fault."""

SAMPLE_FUNCTIONS = sampled(EVERY_FUNCTION, KEPT_FUNCTIONS, newest=14)
"""Parameters of sweeps over all functions, of which the kept ones are always tried."""


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until the tests are collected, all of which stay
    config.addinivalue_line(
        "markers", "once: `make newest` leaves it out: the same with every JAX, or tried of it elsewhere"
    )
    config.addinivalue_line("markers", "thorough: one of many equal cases: only `make thorough` tries all of them")
    config.addinivalue_line("markers", "cold: starts its capturing processes from nothing, not from a warm server")


def pytest_collection_finish() -> None:
    gc.set_threshold(*gc.get_threshold()[:2], RARELY)
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    _say_which_changes_helped(config)
    _say_what_was_not_tried(config)
    WARMTH.close()
    gc.collect()
    gc.freeze()  # pytest collects five times more


TRIED: Counter[str] = Counter()
"""Changes that were compiled and judged since the last report of a test, by rule, and those that helped."""

_judged = lab.judged


def _counted(before: Report, *more: Any) -> Experiment:
    done = _judged(before, *more)
    found = more[-1]
    TRIED.update({found.rule: 1, f"{found.rule} helped": int(done.helps)} if isinstance(found, Finding) else {})
    return done


lab.judged = _counted


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    item.user_properties += [("tried", dict(TRIED))] if TRIED else []
    TRIED.clear()


def _say_which_changes_helped(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    reports = [] if terminal is None else [each for some in terminal.stats.values() for each in some]
    known = [each.user_properties for each in reports if getattr(each, "when", "") == "teardown"]
    sums = sum(
        (Counter(counts) for properties in known for name, counts in properties if name == "tried"), Counter[str]()
    )
    rules = sorted(name for name in sums if " " not in name)
    if rules and terminal is not None:
        words = ", ".join(f"{rule} {sums[f'{rule} helped']} of {sums[rule]}" for rule in rules)
        terminal.write_line(f"changes that helped, of those tried: {words}")


LEFT_OUT = "the time that sweeps take"

BROUGHT_BY = {
    "libtpu": "make check EXTRAS=dev,pictures,tpu",
    LEFT_OUT: "make thorough",
    "NVIDIA": "pip install 'jax[cuda13]'",
    "Chromium": "apt install chromium",
}
"""What a run may lack, and what brings it, by a word of the reason why a test is skipped."""


def _say_what_was_not_tried(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    skipped = () if terminal is None else terminal.stats.get("skipped", ())
    reasons = [each.longrepr[2] for each in skipped if len(each.longrepr or ()) == 3]
    for word, how in BROUGHT_BY.items():
        if count := sum(word in reason for reason in reasons):
            terminal.write_line(f"not tried for want of {word}: {count} tests ({how})")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the processes that a test starts be warm, unless it is about how they start."""
    WARMTH.enabled = IS_POSSIBLE and item.get_closest_marker("cold") is None
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
        if item.get_closest_marker("thorough") and not THOROUGH:
            item.add_marker(pytest.mark.skip(reason=f"not tried for want of {LEFT_OUT}"))


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
