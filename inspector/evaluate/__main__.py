"""The process that validates a case: prints the validation as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..capture.protocol.events import plain_value
from ..capture.protocol.values import Validation


def main(folder: str, seconds: str) -> None:
    """Validate the case in a folder."""
    print(json.dumps(plain_value(_validation(Path(folder), float(seconds)))))


def _validation(folder: Path, seconds: float) -> Validation:
    try:
        from .validate import validate
    except ImportError as error:
        if error.name != "numpy":
            raise
        reason = f"evaluating needs numpy, which {sys.prefix} does not have: pip install 'shardscope[validate]'"
        return Validation("not evaluated", reason=reason)
    try:
        return validate(folder, seconds)
    except MemoryError:
        return Validation("not evaluated", reason="evaluating it takes more memory than there is")


if __name__ == "__main__":
    main(*sys.argv[1:])
