"""Captures of edited programs, shared by the tests of what differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.samples.catalogue import samples

from tests.conftest import SampleCapture

from .diff_pairs import SCRIPT, UPDATE, Edits

SOURCES = {sample.name: sample.path.read_text() for sample in samples()} | {"script": SCRIPT, "update": UPDATE}

Edited = Callable[[str, Edits], Capture]


@pytest.fixture(scope="session")
def edited(sample: SampleCapture, tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """Captures a sample, or an edited one, each once."""
    known: dict[tuple[str, Edits], Capture] = {}

    def of(function: str, edits: Edits) -> Capture:
        name, _, attribute = function.partition(":")
        if not edits and name not in ("script", "update"):
            return sample(function)
        if (function, edits) not in known:
            text = SOURCES[name]
            for old, new in edits:
                assert old in text, f"{name} has no {old!r}"
                text = text.replace(old, new)
            path: Path = tmp_path_factory.mktemp("edited") / f"{name}.py"
            path.write_text(text)
            *_, known[function, edits] = capture(Request(f"{path}:{attribute}", live=False))
            assert known[function, edits].complete, known[function, edits].failure
        return known[function, edits]

    return of
