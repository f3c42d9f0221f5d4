"""Collectives among GPUs: a switch inside a node, one network adapter per GPU between nodes.

Rings and trees with a latency and a bandwidth, as NCCL's own model has them (NCCL, src/graph/tuning.cc): a ring of N
does N-1 steps, 2(N-1) for an all-reduce, and each GPU sends (N-1)/N of the array in each pass; a tree goes through
each node as a chain and through the nodes in log2 steps, up and down, at half the bandwidth. NCCL takes the faster one.
In an all-to-all everyone sends to everyone at once through the switch.
"""

from __future__ import annotations

import math

from ..report import Kind
from ..targets.chips import Chip
from .estimate import Estimate, Link, Term, constant
from .places import Route

TREE_SHARE = 0.9
"""What trees reach of a ring's bandwidth (NCCL, the same file)."""


def over_switch(kind: Kind, volume: int, route: Route, chip: Chip) -> Estimate:
    """A collective among GPUs; `volume` in bytes, as in `torus.over_torus`."""
    link: Link = "node" if route.far == 1 else "network"
    if kind in ("all-to-all", "ragged-all-to-all", "collective-permute", "send-recv"):
        return _direct(kind, volume, route, chip, link)
    ring = _ring(kind, volume, route, chip, link)
    if kind != "all-reduce":
        return ring
    tree = _tree(volume, route, chip, link)
    return min(ring, tree, key=lambda estimate: estimate.seconds)


def _ring(kind: Kind, volume: int, route: Route, chip: Chip, link: Link) -> Estimate:
    passes = 2 if kind == "all-reduce" else 1
    terms, slowest = _common(volume, route, chip)
    share = (route.size - 1) / route.size
    steps = passes * (route.size - route.far)
    far = passes * (route.far - 1)
    seconds = _latency(chip, steps, far) + passes * share * volume / slowest.value
    counted = (Term("n", steps, "", "steps inside nodes"), Term("m", far, "", "steps between nodes"))
    times = "2 " if passes == 2 else ""
    formula = f"c + n t{' + m u' if route.far > 1 else ''} + {times}(N-1)/N V / {slowest.symbol}"
    return Estimate(seconds, link, f"ring: {formula}", (*terms, slowest, *counted[: 1 + (route.far > 1)]))


def _tree(volume: int, route: Route, chip: Chip, link: Link) -> Estimate:
    terms, slowest = _common(volume, route, chip)
    steps = 2 * (route.near - 1)
    far = 2 * math.ceil(math.log2(route.far)) if route.far > 1 else 0
    seconds = _latency(chip, steps, far) + 2 * volume / (TREE_SHARE * slowest.value)
    counted = (Term("n", steps, "", "steps inside nodes"), Term("m", far, "", "steps between nodes"))
    formula = f"c + n t{' + m u' if route.far > 1 else ''} + 2 V / {TREE_SHARE} {slowest.symbol}"
    return Estimate(seconds, link, f"tree: {formula}", (*terms, slowest, *counted[: 1 + (route.far > 1)]))


def _direct(kind: Kind, volume: int, route: Route, chip: Chip, link: Link) -> Estimate:
    """Everyone sends to everyone; `volume` is that of the whole group, but for a permute what one device sends."""
    everyone = kind in ("all-to-all", "ragged-all-to-all")
    own = volume / route.size if everyone else volume
    terms, _ = _common(volume, route, chip)
    fast = constant("W", chip.figures["link_bandwidth"], "B/s", "one way from a GPU to its switch")
    slow = constant("U", chip.figures["network_bandwidth"], "B/s", "one way from a GPU to the network")
    leaving = (route.far - 1) / route.far if everyone else float(route.far > 1)
    staying = (route.size - 1) / route.size if everyone else 1.0
    transfer = max(own * (staying - leaving) / fast.value, own * leaving / slow.value)
    seconds = _latency(chip, 1, int(route.far > 1)) + transfer
    what = "V / N" if everyone else "V"
    shares = (Term("f", leaving, "", "leaves the node"), Term("g", staying - leaving, "", "stays in it"))
    formula = f"c + t{' + u' if route.far > 1 else ''} + max(g {what} / W, f {what} / U)"
    return Estimate(seconds, link, formula, (*terms, fast, slow, *shares))


def _latency(chip: Chip, steps: float, far: float) -> float:
    """Seconds of a call and of steps one after another."""
    return chip.figure("call_latency") + steps * chip.figure("hop_latency") + far * chip.figure("network_latency")


def _common(volume: int, route: Route, chip: Chip) -> tuple[tuple[Term, ...], Term]:
    """Terms of every formula here, and the bandwidth that is the narrowest for one GPU of a ring."""
    terms = (
        Term("V", volume, "B", "the whole array"),
        Term("N", route.size, "", "GPUs"),
        constant("c", chip.figures["call_latency"], "s", "one call"),
        constant("t", chip.figures["hop_latency"], "s", "one step inside a node"),
    )
    inside = constant("W", chip.figures["link_bandwidth"], "B/s", "one way from a GPU to its switch")
    if route.far == 1:
        return terms, inside
    network = chip.figures["network_bandwidth"]
    # Rings run beside each other, one through each adapter of a node: together they are as wide as all adapters.
    wide = Term("U", network.value * route.near, "B/s", f"{route.near} adapters of a node", network.source)
    step = constant("u", chip.figures["network_latency"], "s", "one step between nodes")
    return (*terms, step), min(inside, wide, key=lambda term: term.value)
