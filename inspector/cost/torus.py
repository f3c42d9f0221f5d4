"""Collectives over the links of a TPU's torus.

Rings as in Austin et al., "How to Scale Your Model" (2025), part 3: with V bytes after an all-gather over a closed
ring of N, and W bytes per second in each direction of a link, N/2 rounds of V/N bytes in both directions take V/2W, and
no less than N/2 hops. Several axes carry their shares at once. A reduce-scatter is an all-gather backwards, an
all-reduce is both. An all-to-all is bound by the links through the middle of its longest axis: a quarter of an
all-gather on a closed ring. On axes that are not closed data can go one way only past each link: V (N-1)/N / W. Where
a group takes every s-th place of an axis, s groups share its links. Where it takes places that are no box at all, its
ring is followed link by link.
"""

from __future__ import annotations

from ..catalog.spellings import KIND_OF, Kind
from ..report.cost import Estimate, Link, Term, constant
from ..targets.chips import Chip
from .places import Detour, Route


def over_torus(kind: Kind, volume: int, route: Route, chip: Chip) -> Estimate:
    """A collective inside one slice.

    `volume` is in bytes: of the whole array after an all-gather or before a reduce-scatter, of what each device has in
    an all-reduce, and of all devices of the group together in an all-to-all.
    """
    if not route.lines:
        return _on_chip(kind, volume, route, chip)
    if route.detour is not None:
        return _astray(kind, volume, route, route.detour, chip)
    passes, exchanged = KIND_OF[kind].passes, KIND_OF[kind].pattern == "exchange"
    link: Link = "torus axis" if len(route.lines) == 1 else "torus axes"
    count = "×".join(str(line.size) for line in route.lines)
    bandwidth = constant("W", chip.figures["link_bandwidth"], "B/s", "one link in one direction")
    latency = constant("t", chip.figures["hop_latency"], "s", "one hop")
    hops = Term("h", _hops(route), "", meaning=f"hops, over {count} places")
    if exchanged:
        crossing = _crossing(route)
        busy = volume / (4 * bandwidth.value * crossing)
        seconds = max(busy, hops.value * latency.value)
        links = Term("L", crossing, "", meaning="links through the middle of the longest axis, per direction")
        moved = Term("V", volume, "B", meaning="of all devices of the group together")
        return Estimate(seconds, link, "max(V / 4WL, h t)", (moved, bandwidth, links, hops, latency), busy)
    ways = _ways(route)
    share = Term("f", _share(route), "", meaning="of the array goes over the links")
    busy = volume * share.value / (bandwidth.value * ways)
    seconds = passes * max(busy, hops.value * latency.value)
    links = Term("L", ways, "", meaning="links that a device can send over at once")
    moved = Term("V", volume, "B", meaning="the full array")
    formula = f"{'2 ' if passes == 2 else ''}max(f V / WL, h t)"
    return Estimate(seconds, link, formula, (moved, share, bandwidth, links, hops, latency), passes * busy)


def _astray(kind: Kind, volume: int, route: Route, detour: Detour, chip: Chip) -> Estimate:
    """Among members that do not fill a box: a ring in the order of the group, its ways followed link by link."""
    passes, exchanged = KIND_OF[kind].passes, KIND_OF[kind].pattern == "exchange"
    bandwidth = constant("W", chip.figures["link_bandwidth"], "B/s", "one link in one direction")
    latency = constant("t", chip.figures["hop_latency"], "s", "one hop")
    hops = Term("h", max(1, route.near / 2) * detour.ring.farthest, "", meaning="hops, one step after another")
    moved = Term("V", volume, "B", meaning="the full array")
    if exchanged:
        # Where the ways are too many to follow, as on a ring: each link is passed by half of those of its line.
        load = detour.exchange or route.near * detour.ring.busiest * route.near // 4
        carried = Term("l", load * route.sharing, "", meaning="transfers over the busiest link")
        members = Term("N", route.near, "", meaning="members")
        busy = carried.value * volume / members.value**2 / bandwidth.value
        seconds = max(busy, hops.value * latency.value)
        terms = (moved, carried, members, bandwidth, hops, latency)
        return Estimate(seconds, "torus axes", "max(l V / N² W, h t)", terms=terms, transmitting=busy)
    carried = Term("l", detour.ring.busiest * route.sharing, "", meaning="transfers over the busiest link")
    busy = carried.value * volume / (2 * bandwidth.value)
    seconds = passes * max(busy, hops.value * latency.value)
    formula = f"{'2 ' if passes == 2 else ''}max(l V / 2W, h t)"
    ring = (moved, carried, bandwidth, hops, latency)
    return Estimate(seconds, "torus axes", formula, terms=ring, transmitting=passes * busy)


def permuted(volume: int, hops: int, load: int, chip: Chip) -> Estimate:
    """A collective-permute: the farthest goes `hops` links, and the busiest link carries `load` of them."""
    bandwidth = constant("W", chip.figures["link_bandwidth"], "B/s", "one link in one direction")
    latency = constant("t", chip.figures["hop_latency"], "s", "one hop")
    moved = Term("V", volume, "B", meaning="what one device sends")
    carried = Term("l", load, "", meaning="transfers over the busiest link")
    far = Term("h", hops, "", meaning="hops to the farthest")
    busy = volume * load / bandwidth.value
    terms = (moved, carried, bandwidth, far, latency)
    return Estimate(max(busy, hops * latency.value), "torus axis", "max(l V / W, h t)", terms=terms, transmitting=busy)


def _hops(route: Route) -> float:
    """Hops one after another: half of a closed ring, the whole of an open line."""
    return sum(line.stride * (line.size / 2 if line.closed else line.size - 1) for line in route.lines)


def _ways(route: Route) -> float:
    """Links that one device can send over at once; every s-th place of an axis has an s-th of its links."""
    return sum(line.ways / line.stride for line in route.lines) / route.sharing


def _share(route: Route) -> float:
    """All of it on closed rings, as the rounds of the notes have it; on open lines all but what is there."""
    if all(line.closed for line in route.lines):
        return 1.0
    places = 1
    for line in route.lines:
        places *= line.size
    return (places - 1) / places


def _crossing(route: Route) -> float:
    """Links in one direction between the halves of the longest axis, closed ones counted twice."""
    longest = max(route.lines, key=lambda line: line.size / line.ways * line.stride)
    others = 1
    for line in route.lines:
        if line is not longest:
            others *= line.size
    return others * longest.ways / longest.stride / route.sharing


def _on_chip(kind: Kind, volume: int, route: Route, chip: Chip) -> Estimate:
    """Among the cores of one chip: through its memory, once in and once out."""
    bandwidth = constant("M", chip.figures["hbm_bandwidth"], "B/s", "memory of the chip")
    moved = Term("V", volume, "B", meaning="the full array")
    passes = KIND_OF[kind].passes
    seconds = 2 * passes * volume / bandwidth.value
    return Estimate(seconds, "chip", f"{2 * passes} V / M", terms=(moved, bandwidth))
