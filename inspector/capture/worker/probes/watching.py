"""Values observed during the run: inside the function on each device, and those that are not as declared."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ....catalog.spellings import CONSTRAINTS
from ...protocol.request import ONE_DEVICE, Request
from ...protocol.values import CollectiveTimes, Differences
from ..channel import Channel, error_text
from ..program.jaxpr_facts import Table, is_collective
from . import live, probing, timings
from .partial import whole
from .probes import MAX_BYTES, MAX_CHOSEN_BYTES, Probed, TooLargeError
from .probing import Prober
from .summing import Summed


class Chosen:
    """The equations whose values are recorded: a word of `PROBES`, or their ids."""

    def __init__(self, chosen: str) -> None:
        self.chosen = chosen
        self.ids = {word.strip() for word in chosen.split(",")}

    def __call__(self, name: str, equation: Any, manual: bool) -> bool:
        """Return whether an equation is one of them."""
        if name in self.ids:
            return True
        if manual:
            return self.chosen == "all" or (self.chosen in ("collectives", "constraints") and is_collective(equation))
        return self.chosen in ("constraints", "all") and equation.primitive.name in CONSTRAINTS


class Program(NamedTuple):
    """A function that was traced, compiled and run."""

    traced: Any
    compiled: Any
    table: Table
    inputs: live.Inputs
    outputs: list[Any]
    seconds: float


def watch(request: Request, program: Program, channel: Channel) -> None:
    """Send how long collectives take, and what was asked for: probes, and differences between shards."""
    if ONE_DEVICE in request.overrides:
        channel.send(Summed(program.traced, program.table, program.inputs, _iterations(request)).summaries())
        return
    try:
        text = program.compiled.as_text()
        once = partial(live.once, program.compiled, program.inputs)
        measured = timings.measure(text, once, program.seconds)
        channel.send(CollectiveTimes(measured))
        if not measured and timings.collective_names(text):
            channel.tell(
                "info", "collectives are not timed: the profiler of this version of JAX does not distinguish them"
            )
    except Exception as error:  # of the profiler, of which there can be one at a time
        channel.tell("warning", f"collectives are not timed: {error_text(error)}")
    if request.probe == "none":
        return
    if problem := probing.probe():
        channel.tell("warning", problem)
        return
    has_nan = any(map(_has_nan, program.outputs)) and not any(map(_has_nan, program.inputs.leaves))
    if request.reference or has_nan:
        summed = Summed(program.traced, program.table, program.inputs, _iterations(request))
        if request.reference:
            channel.send(summed.summaries())
        if has_nan and (origin := summed.origin_of_nan()):
            seeded = "; arguments without values have random ones" if program.inputs.seeded else ""
            channel.tell("info" if seeded else "warning", origin[0] + seeded, origin[1])
    chosen = Chosen(request.probe)
    prober = Prober(program.table.indices, chosen, True, _iterations(request))
    room = MAX_BYTES if request.probe == "collectives" else MAX_CHOSEN_BYTES
    probed = Probed(program.traced, program.compiled, prober, request.window, room)
    for probe in probed.boundary(program.inputs.leaves, program.outputs):
        channel.send(probe)
    if not prober.has_sites(program.traced.jaxpr, False):
        return
    try:
        both = probed.run(program.inputs)
    except TooLargeError as error:
        channel.tell("warning", f"values inside the program are only compared: {error}; --probe takes single equations")
        prober = Prober(program.table.indices, Chosen("none"), True, prober.iterations)
        probed = Probed(program.traced, program.compiled, prober, request.window, room)
        both = probed.run(program.inputs)
    channel.send(both)
    for probe in probed.probes():
        channel.send(probe)
    channel.send(Differences(probed.differences()))


def _iterations(request: Request) -> tuple[int, ...]:
    return tuple(sorted(set(request.iterations)))


def _has_nan(leaf: Any) -> bool:
    is_float = jnp.issubdtype(getattr(leaf, "dtype", None), jnp.floating) and not live.holds(leaf)
    return is_float and bool(np.isnan(whole(leaf)).any())
