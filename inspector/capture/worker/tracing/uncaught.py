"""The exception that ended the script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...protocol.events import Devices, Event
from .. import failures
from ..needed_devices import needed


def uncaught(error: BaseException) -> Iterator[Event]:
    """Return the script's exception; before it, for an error about the number of devices, how many it needs."""
    failure = failures.describe(error, "run")
    wanted = needed(error)
    if wanted is not None:
        yield Devices(wanted)
        failure = replace(failure, hint=f"--devices {wanted} runs it on so many fake CPU devices")
    yield failure
