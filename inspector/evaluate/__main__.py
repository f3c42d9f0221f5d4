"""The process that validates a case: prints the validation as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ..capture.protocol.events import plain_value
from .validate import validate


def main(folder: str, seconds: str) -> None:
    """Validate the case in a folder."""
    print(json.dumps(plain_value(validate(Path(folder), float(seconds)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
