"""SS19: a permutation by which some device receives nothing, or more than one thing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from ...catalog.spellings import functions_of
from ...dataflow.device_integers import Numbers, coordinates
from ...dataflow.meaning import STRAIGHT
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Report
from ..equations import At, Flow, Use, axis_sizes, devices_along, equations_of, permutation_of
from ..fixes.calls import call_at
from ..fixes.edits import axes_text
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Each ppermute that leaves destinations out, where their zeros are used, or that names one twice."""
    for flow, place in equations_of(report, ("ppermute",)):
        sizes = axis_sizes(report, flow, place)
        devices = devices_along(place.equation.axes or (), sizes)
        if devices is None or flow.is_backward(place):
            continue  # backward, zeros are what belongs to a value that went nowhere
        pairs = permutation_of(place.equation)
        received = Counter(target for _, target in pairs)
        without = [device for device in range(devices) if device not in received]
        twice = [device for device, count in received.items() if count > 1]
        if pairs and (twice or (without and not _is_replaced(flow, place, without, sizes))):
            yield _found(report, flow, place, pairs, (without, twice))


def _found(
    report: Report, flow: Flow, place: EquationPlace, pairs: list[tuple[int, int]], wrong: tuple[list[int], list[int]]
) -> Finding:
    (without, twice), axes = wrong, place.equation.axes or ()
    along, over = ", ".join(axes), axes_text(axes)
    call = call_at(report.program, flow.source(place), functions_of("collective-permute"))
    here = "the permutation" if call is None or len(call[1].args) < 3 else ast.unparse(call[1].args[2])
    several, listed = len(twice or without) > 1, ", ".join(map(str, twice or without))
    which = f"device{'s' * several} {listed} along {along}"
    if twice:
        message, fix = f"more than one pair sends to {which}", f"make each device the destination of one pair in {here}"
    else:
        message = f"no pair sends to {which}: {'they receive' if several else 'it receives'} zeros"
        index = f"lax.axis_index({over})"
        is_without = f"jnp.isin({index}, jnp.array({without}))" if several else f"{index} == {without[0]}"
        added = ", ".join(map(str, _closing(pairs, without)))
        fix = f"add {added} to {here}; if zeros are intended, replace them explicitly: jnp.where({is_without}, …, …)"
    silent = [device for device in without if device not in dict(pairs)]
    return finding(
        RULE,
        flow.place(place),
        message,
        severity="error" if twice else "info",
        confidence="proved",
        axes=axes,
        evidence=(
            ("pairs", ", ".join(f"{source}→{target}" for source, target in pairs)),
            ("neither sends nor receives", ", ".join(map(str, silent)) or "none"),
        ),
        fixes=advice(fix),
    )


def _closing(pairs: list[tuple[int, int]], without: list[int]) -> list[tuple[int, int]]:
    """The pairs that make one ring of the chains that begin at the devices without a source."""
    following = dict(pairs)
    ends = []
    for device in without:
        while device in following:
            device = following[device]
        ends.append(device)
    return list(zip(ends, (*without[1:], *without[:1]), strict=True))


def _is_replaced(flow: Flow, place: EquationPlace, without: list[int], sizes: dict[str, int]) -> bool:
    """Return whether a select replaces the value on the devices that receive nothing, wherever the result is used."""
    without_value = [at for device, at in enumerate(coordinates(place.equation.axes or (), sizes)) if device in without]
    results = [At(place.jaxpr, output.name) for output in place.equation.outputs]
    reach = forward(flow, results, STRAIGHT, carried=True)
    is_known = reach.complete and not reach.outputs
    return is_known and all(_leaves_out(flow, use, without_value, sizes) for use in reach.ends)


def _leaves_out(flow: Flow, use: Use, devices: list[dict[str, int]], sizes: dict[str, int]) -> bool:
    equation = use.place.equation
    if equation.primitive != "select_n" or use.position == 0:
        return False
    which = At(use.place.jaxpr, equation.inputs[0], use.calls)
    chosen = [Numbers(flow, sizes, at).value(which) for at in devices]
    return None not in chosen and use.position - 1 not in chosen


RULE = Rule(
    id="SS19",
    slug="partial-ppermute",
    severity="info",
    finds="A ppermute that leaves some device without a source while its zeros are used; or gives one more than one"
    " source.",
    why="A device that is no destination receives zeros, without an error. In a chain that is often intended, in a"
    " ring it is not.",
    proof="The pairs, compared with the size of the axis. Not reported if a select replaces the value on those devices,"
    " as in the first stage of a pipeline.",
    faulty='lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3)])',
    repaired='lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3), (3, 0)])',
    check=check,
    is_observation=True,
    by_hand="only the author knows which devices should receive",
)
