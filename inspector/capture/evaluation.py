"""The process that evaluates the case of a capture."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from .events import decode
from .guardian import run
from .model import CaptureError
from .protocol.values import Probe, Validation
from .protocol.wire import FrameError, read

START_S = 30.0
"""Further seconds for the process to start and to end."""

EVALUATOR = (sys.executable, "-m", __name__.replace("capture.evaluation", "evaluate"))
"""The command that evaluates; it needs numpy, which this process does not."""


def evaluated(
    folder: Path,
    seconds: float,
    begun: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
    *,
    values: bool = True,
) -> tuple[Validation, tuple[Probe, ...]]:
    """The validation of the case in a folder, and `values` of the compiled program on its partitions.

    `begun` gets the process. Where that dies or is killed, the validation says why there is none.
    """
    try:
        done = run(
            [*EVALUATOR, str(folder), str(seconds), *(("values",) if values else ())],
            timeout=seconds + START_S,
            begun=begun,
        )
    except subprocess.TimeoutExpired:
        return Validation("not evaluated", reason=f"not evaluated in {seconds:.0f} s"), ()
    if done.returncode == 0:
        with suppress(FrameError, CaptureError):
            *probes, validation = map(decode, read(BytesIO(done.stdout)))
            if isinstance(validation, Validation):
                return validation, tuple(probe for probe in probes if isinstance(probe, Probe))
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    said = lines[-1] if lines else f"exit status {done.returncode}"
    return Validation("not evaluated", reason=f"the evaluating process ended: {said}"), ()
