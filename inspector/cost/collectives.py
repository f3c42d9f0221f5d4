"""The estimated time of each collective on the machine that it was compiled for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..catalog.spellings import KIND_OF
from ..report import Collective
from ..report.cost import Estimate, Term, constant
from ..report.report import Torus
from .places import Machine, Route, load_of
from .switched import over_switch
from .torus import over_torus, permuted


def with_estimates(collectives: Iterable[Collective], machine: Machine) -> Iterator[Collective]:
    """The same collectives, each with its estimate where there can be one."""
    known: dict[tuple[object, ...], Estimate | None] = {}
    for collective in collectives:
        key = (collective.kind, collective.bytes_in, collective.bytes_out, collective.groups, collective.pairs)
        if key not in known:
            known[key] = estimate(collective, machine)
        yield replace(collective, estimate=known[key])


def estimate(collective: Collective, machine: Machine) -> Estimate | None:
    """The time of one execution: that of the slowest of its groups. None where sizes or members are not known."""
    if collective.bytes_in is None or collective.bytes_out is None:
        return None
    if KIND_OF[collective.kind].pattern == "pairs":
        return _paired(collective, collective.bytes_in, machine)
    routes = machine.routes(collective.groups) if collective.groups else frozenset[Route]()
    found = [
        _grouped(collective, collective.bytes_in, collective.bytes_out, route, machine)
        for route in routes
        if route.size > 1
    ]
    return max(found, key=lambda each: each.seconds, default=None)


def _grouped(collective: Collective, bytes_in: int, bytes_out: int, route: Route, machine: Machine) -> Estimate:
    volume = KIND_OF[collective.kind].volume(route.size, bytes_in, bytes_out)
    if machine.chip.platform == "gpu":
        return over_switch(collective.kind, volume, route, machine.chip)
    if route.far == 1:
        return over_torus(collective.kind, volume, route, machine.chip)
    return _between_slices(collective, volume, route, machine)


def _between_slices(collective: Collective, volume: int, route: Route, machine: Machine) -> Estimate:
    """One step inside each slice, over its torus, and one between them, over the network of each chip."""
    chip = machine.chip
    kind = KIND_OF[collective.kind]
    everyone = kind.pattern == "exchange"
    inside = Route(route.near, 1, route.lines, sharing=route.sharing, detour=route.detour)
    part = volume // route.far if everyone else volume
    within = over_torus(collective.kind, part, inside, chip).seconds if inside.size > 1 else 0.0
    network = constant("U", chip.figures["network_bandwidth"], "B/s", "one way from a chip to the network")
    latency = constant("u", chip.figures["network_latency"], "s", "one step between slices")
    each = volume / (route.size if everyone else route.near)
    share = (route.far - 1) / route.far
    between = kind.passes * max(share * each / network.value, (route.far - 1) * latency.value)
    terms = (
        Term("i", within, "s", meaning="inside each slice"),
        Term("v", each, "B", meaning="what a chip has to do with"),
        Term("S", route.far, "", meaning="slices"),
        network,
        latency,
    )
    formula = f"i + {'2 ' if kind.passes == 2 else ''}max((S-1)/S v / U, (S-1) u)"
    return Estimate(within + between, "network", formula, terms=terms)


def _paired(collective: Collective, volume: int, machine: Machine) -> Estimate | None:
    count = len(machine.devices)
    pairs = [
        (machine.devices[source], machine.devices[target])
        for source, target in collective.pairs
        if source != target and 0 <= source < count and 0 <= target < count
    ]
    between = not collective.pairs and collective.kind == "send-recv" and len({d.slice for d in machine.devices}) > 1
    if not pairs and not between:
        return None
    far = between or any(source.slice != target.slice for source, target in pairs)
    if machine.chip.platform == "gpu":
        return over_switch(collective.kind, volume, Route(2, 1 + far), machine.chip)
    if far:
        network = constant("U", machine.chip.figures["network_bandwidth"], "B/s", "one way from a chip to the network")
        latency = constant("u", machine.chip.figures["network_latency"], "s", "one step between slices")
        moved = Term("V", volume, "B", meaning="what one device sends")
        seconds = max(volume / network.value, latency.value)
        return Estimate(seconds, "network", "max(V / U, u)", terms=(moved, network, latency))
    load = load_of(pairs, Torus(machine.shape, machine.closed))
    return permuted(volume, max(load.farthest, 1), max(load.busiest, 1), machine.chip)
