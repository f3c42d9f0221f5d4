"""Numbers on the command line: each has bounds, and what is beyond them ends in one line and exit status 2."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from shardscope.configuration import MAX_DEVICES, MAX_TIMEOUT_S


def whole(least: int, most: int, what: str = "a number") -> Callable[[str], int]:
    """A reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(most)) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what} from {least} to {most}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time that is more than nothing, and ends."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {MAX_TIMEOUT_S:,}")
    return found


devices = whole(1, MAX_DEVICES, "a number of devices")
