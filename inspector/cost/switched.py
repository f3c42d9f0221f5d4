"""Collectives among GPUs: a switch inside a node, one network adapter per GPU between nodes.

Rings and trees with a latency and a bandwidth, as NCCL's own model has them (NCCL, src/graph/tuning.cc): a ring of N
does N-1 steps, 2(N-1) for an all-reduce, and each GPU sends (N-1)/N of the array in each pass; a tree goes through
each node as a chain and through the nodes in log2 steps, up and down. Each runs with one of two protocols, one quick to
start and one that uses the whole bandwidth, and NCCL takes the fastest. In an all-to-all everyone sends to everyone at
once through the switch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..catalog.spellings import KIND_OF, Kind
from ..report.cost import Estimate, Link, Term, constant
from ..targets.chips import Chip
from .places import Route

PROTOCOLS = {"ll": "LL", "simple": "Simple"}


def over_switch(kind: Kind, volume: int, route: Route, chip: Chip) -> Estimate:
    """A collective among GPUs; `volume` in bytes, as in `torus.over_torus`."""
    pattern = KIND_OF[kind].pattern
    if pattern != "ring":
        return _direct(volume, route, chip, everyone=pattern == "exchange")
    return min(_choices(KIND_OF[kind].passes, volume, route, chip), key=lambda estimate: estimate.seconds)


def _choices(passes: int, volume: int, route: Route, chip: Chip) -> Iterator[Estimate]:
    ring = passes * (route.size - route.far), passes * (route.far - 1), passes * (route.size - 1) / route.size
    tree = 2 * (route.near - 1), 2 * math.ceil(math.log2(route.far)), 2.0
    for protocol in PROTOCOLS:
        yield _steps("ring", protocol, *ring, volume, route, chip)
        if passes == 2:
            yield _steps("tree", protocol, *tree, volume, route, chip)


def _steps(
    algorithm: str, protocol: str, steps: int, far: int, rounds: float, volume: int, route: Route, chip: Chip
) -> Estimate:
    """Steps one after another, and `rounds` times the array through the narrowest place."""
    name = f"{algorithm}_{protocol}"
    call = constant("c", chip.figures[f"{name}_call"], "s", "one call")
    hop = constant("t", chip.figures[f"{name}_hop"], "s", "one step inside a node")
    share = constant(
        "e", chip.figures[f"{name}_share"], "", f"of the bandwidth that protocol {PROTOCOLS[protocol]} uses"
    )
    narrow = _narrowest(route, chip)
    terms = [
        Term("V", volume, "B", meaning="the full array"),
        Term("r", rounds, "", meaning="times the array that a GPU sends"),
        narrow,
        share,
        call,
        Term("n", steps, "", meaning="steps inside nodes"),
        hop,
    ]
    seconds = call.value + steps * hop.value + rounds * volume / (share.value * narrow.value)
    formula = "c + n t + r V / eW"
    if route.far > 1:
        step = constant("u", chip.figures[f"{name}_network"], "s", "one step between nodes")
        terms += [Term("m", far, "", meaning="steps between nodes"), step]
        seconds += far * step.value
        formula = f"c + n t + m u + r V / e{narrow.symbol}"
    link: Link = "node" if route.far == 1 else "network"
    return Estimate(seconds, link, f"{algorithm}: {formula}", terms=tuple(terms))


def _direct(volume: int, route: Route, chip: Chip, *, everyone: bool) -> Estimate:
    """Everyone sends to everyone, where `volume` is that of the whole group; else everyone sends `volume` to one."""
    own = volume / route.size if everyone else float(volume)
    leaving = (route.far - 1) / route.far if everyone else float(route.far > 1)
    staying = ((route.size - 1) / route.size if everyone else 1.0) - leaving
    fast = _link(chip)
    call = constant("c", chip.figures["ring_ll_call"], "s", "one call")
    hop = constant("t", chip.figures["ring_ll_hop"], "s", "one step inside a node")
    terms = [
        Term("V", own, "B", meaning="what one GPU has to send, or keep"),
        Term("g", staying, "", meaning="of it stays in the node"),
    ]
    if route.far == 1:
        seconds = call.value + hop.value + staying * own / fast.value
        return Estimate(seconds, "node", "c + t + g V / W", terms=(*terms, fast, call, hop))
    slow = constant("U", chip.figures["network_bandwidth"], "B/s", "one way from a GPU to the network")
    step = constant("u", chip.figures["ring_ll_network"], "s", "one step between nodes")
    seconds = call.value + hop.value + step.value + max(staying * own / fast.value, leaving * own / slow.value)
    terms += [Term("f", leaving, "", meaning="of it leaves the node"), fast, slow, call, hop, step]
    return Estimate(seconds, "network", "c + t + u + max(g V / W, f V / U)", terms=tuple(terms))


def _narrowest(route: Route, chip: Chip) -> Term:
    """The narrower of the links in a node and, for a ring over several, of the network."""
    inside = _link(chip)
    if route.far == 1:
        return inside
    # Rings run beside each other, one through each adapter of a node: together they are as wide as all adapters.
    network = chip.figures["network_bandwidth"]
    wide = Term("U", network.value * route.near, "B/s", f"{route.near} adapters of a node", network.source)
    return min(inside, wide, key=lambda term: term.value)


def _link(chip: Chip) -> Term:
    nominal, share = chip.figures["link_bandwidth"], chip.figures["link_share"]
    meaning = f"one way from a GPU to its switch: {share.value:.0%} of {nominal.value:.3g}, {share.source}"
    return Term("W", nominal.value * share.value, "B/s", meaning=meaning, source=nominal.source)
