"""The process that validates a case: writes values of the compiled program, and the validation, as frames."""

from __future__ import annotations

import sys
from pathlib import Path

from ..capture.protocol.events import frame_of
from ..capture.protocol.values import Probe, Validation
from ..capture.protocol.wire import encode


def main(folder: str, seconds: str, values: str = "") -> None:
    """Validate the case in a folder, with values if that is asked for."""
    for event in _events(Path(folder), float(seconds), bool(values)):
        sys.stdout.buffer.write(encode(frame_of(event)))


def _events(folder: Path, seconds: float, is_observed: bool) -> tuple[*tuple[Probe, ...], Validation]:
    try:
        from .observed import Observer
        from .validate import validate
    except ImportError as error:
        if error.name != "numpy":
            raise
        reason = f"evaluating needs numpy, which {sys.prefix} does not have: pip install 'shardscope[validate]'"
        return (Validation("not evaluated", reason=reason),)
    observer = Observer() if is_observed else None
    try:
        validation = validate(folder, seconds, observer)
    except MemoryError:
        validation = Validation("not evaluated", reason="evaluating it takes more memory than there is")
    return (*(observer.probes if observer is not None else ()), validation)


if __name__ == "__main__":
    main(*sys.argv[1:])
