"""Shardy's propagation of a StableHLO text, where XLA has not propagated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from shardscope.inspector.capture.children import Children
from shardscope.inspector.capture.propagation import Propagated, Propagation


def propagated(folder: Path, text: bytes) -> bytes:
    """The text after propagation, which runs in a process of its own."""
    found: list[Propagated] = []
    with Children() as children:
        run = Propagation(children, sys.executable, os.environ, folder, found.append)
        run.submit(text, None)
        run._thread.join(60)
        run.stop()
    (result,) = found
    assert result.text is not None, result.problem
    assert "XLA wrote no dump" in (result.problem or "")
    return result.text
