"""What tests of several folders share: captures of the samples, each made once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.samples.catalogue import samples

SampleCapture = Callable[[str], Capture]

SAMPLE_FUNCTIONS = [f"{sample.name}:{function}" for sample in samples() for function in sample.functions]
"""`name:function` of all that can be inspected in the samples."""


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
