"""Times of each collective on each device, from what JAX's profiler records."""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

from jaxlib import _profiler  # jax.profiler writes files for TensorBoard, which takes as long as all the rest

from ....catalog.spellings import HLO_OPCODES
from ...protocol.values import Timing

RUNS = 3
TIMEOUT_S = 2.0
"""Seconds that the runs together may take; there is always one."""

_COLLECTIVE = re.compile(
    rf"^\s*(?:ROOT )?%?([\w.\-]+) = [^\n]*? ({'|'.join(HLO_OPCODES)})(-start|-done)?\(", re.MULTILINE
)

_HOST_PLANE = "/host:CPU"
"""The events of CPU devices are here, under the names of their instructions."""

_DEVICE_PLANE = re.compile(r"/device:\w+:(\d+)")


class _Event(NamedTuple):
    name: str
    device: int
    run: int
    start: float
    seconds: float


def collective_names(text: str) -> set[str]:
    """The names of the collectives in the text of a compiled program."""
    return {match[1] for match in _COLLECTIVE.finditer(text)}


def census(text: str) -> dict[str, int]:
    """Return the number of collectives of each opcode in a compiled program's text."""
    found = _COLLECTIVE.findall(text)
    return dict(sorted(Counter(opcode for _, opcode, half in found if half != "-done").items()))


def measure(text: str, once: Callable[[], Any], seconds: float) -> tuple[Timing, ...]:
    """A few runs of the program whose text is given are profiled: `once` runs it to its end, in so many `seconds`."""
    names = collective_names(text)
    if not names:
        return ()
    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0  # it would record each call of a function
    session = _profiler.ProfilerSession(options)
    try:
        for _ in range(max(1, min(RUNS, int(TIMEOUT_S / max(seconds, 1e-6))))):
            once()
    finally:
        profile = session.stop_and_get_profile_data()
    return _summaries(list(_read(profile, names)))


def _read(profile: _profiler.ProfileData, names: set[str]) -> Iterator[_Event]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the class of the statistics itself
        for plane in profile.planes:
            match = _DEVICE_PLANE.fullmatch(plane.name)
            for line in plane.lines:
                for event in line.events:
                    if plane.name == _HOST_PLANE and event.name.removeprefix("%") not in names:
                        continue  # of the many events there, without a look at its statistics
                    stats = dict(event.stats)
                    name = str(stats.get("hlo_op", event.name)).removeprefix("%")
                    device = stats.get("device_ordinal", match and match[1])
                    if name in names and device is not None:
                        run, start = int(stats.get("run_id", 0)), event.start_ns / 1e9
                        yield _Event(name, int(device), run, start, event.duration_ns / 1e9)


def _summaries(events: list[_Event]) -> tuple[Timing, ...]:
    """Summaries by instruction and device; `late` is the delay behind the first device to begin."""
    grouped: dict[tuple[str, int], dict[int, list[_Event]]] = defaultdict(lambda: defaultdict(list))
    for event in sorted(events, key=lambda event: event.start):
        grouped[event.name, event.device][event.run].append(event)
    first: dict[tuple[str, int, int], float] = {}
    for (name, _), runs in grouped.items():
        for run, executed in runs.items():
            for number, event in enumerate(executed):
                key = (name, run, number)
                first[key] = min(event.start, first.get(key, event.start))
    return tuple(
        Timing(
            name,
            device,
            len(runs),
            round(median(map(len, runs.values()))),
            round(median(sum(e.seconds for e in executed) for executed in runs.values()), 9),
            round(median(e.start - first[name, run, n] for run, each in runs.items() for n, e in enumerate(each)), 9),
        )
        for (name, device), runs in sorted(grouped.items())
    )
