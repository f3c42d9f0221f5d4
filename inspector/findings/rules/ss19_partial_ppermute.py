"""SS19: a permutation by which some device receives nothing, or more than one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Report
from ..fixes.calls import call_at
from ..rule import Rule, advice, finding
from ..support.device_values import Numbers, axis_sizes, coordinates, devices_along
from ..support.jaxpr_flow import MAX_STEPS, At, Flow, equations_of

_PAIR = re.compile(r"\((\d{1,9}), (\d{1,9})\)")


def check(report: Report) -> Iterator[Finding]:
    """Each ppermute that leaves destinations out, where their zeros are used, or that names one twice."""
    sizes = axis_sizes(report)
    for flow, place in equations_of(report, ("ppermute",)):
        devices = devices_along(place.equation.axes or (), sizes)
        if devices is None or flow.is_backward(place):
            continue  # backward, zeros are what belongs to a value that went nowhere
        pairs = [(int(a), int(b)) for a, b in _PAIR.findall(dict(place.equation.params).get("perm", ""))]
        received = Counter(target for _, target in pairs)
        without = [device for device in range(devices) if device not in received]
        twice = [device for device, count in received.items() if count > 1]
        if pairs and (twice or (without and not _is_replaced(flow, place, without, sizes))):
            yield _found(report, flow, place, pairs, without, twice)


def _found(
    report: Report,
    flow: Flow,
    place: EquationPlace,
    pairs: list[tuple[int, int]],
    without: list[int],
    twice: list[int],
) -> Finding:
    axes = place.equation.axes or ()
    along = ", ".join(axes)
    call = call_at(report.program, flow.source(place), ("ppermute", "pshuffle"))
    here = "the permutation" if call is None or len(call[1].args) < 3 else ast.unparse(call[1].args[2])
    silent = [source for source in without if source not in {source for source, _ in pairs}]
    idle = sorted({*range(max((*without, 0)) + 1), *(b for _, b in pairs)} - {a for a, _ in pairs})
    added = ", ".join(str(pair) for pair in zip(idle, without, strict=False))
    which = ", ".join(map(str, twice or without))
    return finding(
        RULE,
        flow.place(place),
        f"device {which} along {along} is sent more than one value"
        if twice
        else f"nobody sends to device {which} along {along}, which receives zeros",
        severity="error" if twice else "info",
        confidence="proved",
        axes=axes,
        evidence=(
            ("pairs", ", ".join(f"{source}→{target}" for source, target in pairs)),
            ("neither sends nor receives", ", ".join(map(str, silent)) or "none"),
        ),
        fixes=advice(
            f"let each device be the target of one pair in {here}"
            if twice
            else f"add {added} to {here}; if zeros are meant, say what stands there:"
            f" jnp.where(lax.axis_index({axes[0]!r}) == {without[0]}, …, …)"
        ),
    )


def _is_replaced(flow: Flow, place: EquationPlace, without: list[int], sizes: dict[str, int]) -> bool:
    """Whether on the devices that receive nothing a select takes another value, wherever the result is used."""
    axes = place.equation.axes or ()
    waiting = [At(place.jaxpr, output.name) for output in place.equation.outputs]
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        uses = flow.used.get((value.jaxpr, value.name), [])
        found = [after for user, position in uses for after in _after(flow, user, position, axes, without, sizes)]
        returned = [after for after in _carried(flow, value) if after is not None]
        if any(after is None for after in found) or len(seen) > MAX_STEPS:
            return False
        if value.name in flow.jaxprs[value.jaxpr].outputs and not returned:
            return False
        for after in (*found, *returned):
            if after is not None and after not in seen:
                seen.add(after)
                waiting.append(after)
    return True


def _after(
    flow: Flow, user: EquationPlace, position: int, axes: tuple[str, ...], without: list[int], sizes: dict[str, int]
) -> Iterator[At | None]:
    """What a use makes of it: nothing where a select leaves it out, None where it is really used."""
    equation = user.equation
    bodies = tuple(flow.inside(user, position))
    if bodies:
        yield from (At(body, flow.jaxprs[body].inputs[index].name) for body, index in bodies)
    elif equation.primitive == "select_n" and position > 0:
        for device, at in enumerate(coordinates(axes, sizes)):
            if device in without:
                chosen = Numbers(flow, sizes, at).value(At(user.jaxpr, equation.inputs[0]))
                if chosen is None or chosen == position - 1:
                    yield None
    else:
        yield None


def _carried(flow: Flow, value: At) -> Iterator[At | None]:
    """What a result of a body is in the next iteration of a scan, behind it, or behind a call."""
    for position, name in enumerate(flow.jaxprs[value.jaxpr].outputs):
        for caller in flow.callers.get(value.jaxpr, ()) if name == value.name else ():
            loop, equation = caller.equation.loop, caller.equation
            if equation.primitive == "scan" and loop is not None and position < loop[1]:
                yield At(value.jaxpr, flow.jaxprs[value.jaxpr].inputs[loop[0] + position].name)
                yield At(caller.jaxpr, equation.outputs[position].name)
            elif flow.body(caller) == value.jaxpr:
                yield At(caller.jaxpr, equation.outputs[position].name)


RULE = Rule(
    id="SS19",
    slug="partial-ppermute",
    severity="info",
    finds="A ppermute that leaves some device without a sender, and its zeros are used; or with more than one.",
    why="Who is no destination receives zeros, silently. In a chain that is often meant, in a ring it is not.",
    proof="The pairs, against the size of the axis. Silent where a select takes another value on those devices, as a"
    " pipeline's first stage does.",
    faulty='lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3)])',
    repaired='lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3), (3, 0)])',
    check=check,
    by_hand="which devices are meant to receive, the program does not say",
)
