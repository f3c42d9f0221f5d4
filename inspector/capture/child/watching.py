"""What is seen while the function runs: each device's values inside it, and which of them are not as declared."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from . import equations, live, timings
from .channel import Channel
from .chosen import Chosen
from .jaxpr_facts import Table
from .probes import Probed, TooLargeError
from .probing import Prober
from .reference import Alone
from .request import Request


class Program(NamedTuple):
    """A function that was traced, compiled and run."""

    traced: Any
    compiled: Any
    table: Table
    inputs: live.Inputs
    outputs: list[Any]
    seconds: float


def watch(request: Request, program: Program, channel: Channel, folder: Path) -> None:
    """Send how long collectives take, and what was asked for: probes, and differences between shards."""
    try:
        text = program.compiled.as_text()
        once = partial(live.once, program.compiled, program.inputs)
        channel.send("collective_times", values=timings.measure(text, once, program.seconds, folder))
    except Exception as error:  # of the profiler, of which there can be one at a time
        _warn(channel, f"collectives are not timed: {type(error).__name__}: {error}")
    if request.probe == "none":
        return
    if problem := equations.probe():
        _warn(channel, problem)
        return
    prober = Prober(program.table.indices, Chosen(request.probe), True, tuple(sorted(set(request.iterations))))
    probed = Probed(program.traced, program.compiled, prober, request.window)
    for when, arrays in (("argument", program.inputs.leaves), ("output", program.outputs)):
        for position, array in enumerate(arrays):
            for fields, data in probed.whole(when, position, array):
                channel.send("probe", data, **fields)
    try:
        both = probed.run(program.inputs)
    except TooLargeError as error:
        _warn(channel, f"values inside the program are only compared: {error}; --probe takes single equations")
        prober = Prober(program.table.indices, Chosen("none"), True, prober.iterations)
        probed = Probed(program.traced, program.compiled, prober, request.window)
        both = probed.run(program.inputs)
    channel.send("probed", **both)
    for fields, data in probed.values():
        channel.send("probe", data, **fields)
    channel.send("differences", values=probed.differences())
    if request.reference:
        alone = Alone(program.table.indices, Chosen(request.probe), False, prober.iterations)
        try:
            found = probed.against(alone, program.inputs)
        except Exception as error:  # of JAX, which has no such collective among values of one device
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            found = {"compared": 0, "differs": [], "undefined": reason}
        channel.send("reference", **found)


def _warn(channel: Channel, text: str) -> None:
    channel.send("message", level="warning", text=text, phase=channel.phase, location=None)
