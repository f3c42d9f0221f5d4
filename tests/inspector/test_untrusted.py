"""Damaged captures: each is refused, or read as far as it can be, and every format writes a report of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from shardscope.inspector.capture import file
from shardscope.inspector.capture.protocol.wire import Frame, encode
from shardscope.inspector.pipeline import inspect

from tests.capture.mutants import frames_of, mutant, opened, written
from tests.conftest import SampleCapture

MUTANTS = 40
"""Of each capture; `python -m tests.capture.mutants 10000 CAPTURE...` opens more."""


@pytest.fixture(scope="session")
def saved(sample: SampleCapture, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Frame]]:
    def frames(name: str) -> list[Frame]:
        path = tmp_path_factory.mktemp("saved") / "capture"
        file.save(sample(name), path)
        return frames_of(path)

    return frames


@pytest.mark.parametrize("name", ["psum:psum", "fsdp_tp:grad"])
def test_mutants(saved: Callable[[str], list[Frame]], name: str) -> None:
    frames = saved(name)
    for seed in range(MUTANTS):
        capture = opened(mutant(frames, seed))
        if capture is not None:
            assert len(list(written(inspect(capture)))) == 6, seed


@pytest.mark.parametrize("place", [10, 100, 1000])
def test_a_jaxpr_that_is_not_utf8(saved: Callable[[str], list[Frame]], place: int) -> None:
    broken = [
        Frame(frame.event, frame.text[:place] + b"\xff" + frame.text[place + 1 :])
        if frame.event.get("name") == "jaxpr"
        else frame
        for frame in saved("psum:psum")
    ]
    capture = opened(gzip.compress(b"".join(map(encode, broken))))
    assert capture is not None
    report = inspect(capture)
    assert len(list(written(report))) == 6
    assert report.could_be_read("jaxpr") == (report.program.jaxpr is not None)
