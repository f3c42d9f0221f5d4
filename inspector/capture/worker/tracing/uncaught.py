"""The exception that ended the script."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from ...protocol.events import Devices, Event
from .. import failures


def uncaught(error: BaseException) -> Iterator[Event]:
    """Return the script's exception; before it, for an error about the number of devices, how many it needs."""
    failure = failures.describe(error, "run")
    message, line = str(error), failures.user_line(error)
    if failures.is_about_devices(message, line):
        wanted = failures.wanted(message, line, sys.modules["jax"].device_count())
        if wanted is not None:
            yield Devices(wanted)
            failure = replace(failure, hint=f"--devices {wanted} runs it on so many fake CPU devices")
    yield failure
