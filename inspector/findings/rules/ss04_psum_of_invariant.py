"""SS04: a reduction, or a gather, of what all devices have already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....parsers.record import Record
from ...catalog.spellings import functions_of
from ...dataflow.jaxpr import divides
from ...dataflow.meaning import STRAIGHT
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Collective, Finding, Fix, Report, Severity, SourcePosition
from ..compiled import (
    GATHERS,
    REDUCTIONS,
    SCATTERS,
    SUMS,
    at_most,
    compiled_as,
    is_compiled,
    sum_compiled_as,
)
from ..equations import (
    At,
    Flow,
    axis_sizes,
    devices_along,
    equal_along,
    equations_of,
    is_constant,
    is_unchecked,
)
from ..fixes.calls import call_at, call_to_leave_out, name_of, operand_text, quotient_of
from ..fixes.edits import Edits, instead, parenthesized, together, without_call
from ..fixes.invariance import made_to_vary
from ..rule import Rule, advice, finding

MAX_OPERANDS = 6
"""Operands that are named."""


def check(report: Report) -> Iterator[Finding]:
    """Each reduction of the forward pass with an operand that is the same along some of its axes."""
    found = list(_equal(report, REDUCTIONS))
    equal = {place.id for _, place, _, _ in found}
    others = {place.equation.stack[:1] for _, place in equations_of(report, REDUCTIONS) if place.id not in equal}
    alike: dict[_Reduced, list[tuple[Flow, EquationPlace, int]]] = {}
    for flow, place, number, axes in found:
        reduced = _reduced(report, flow, place, number, axes, place.equation.stack[:1] in others)
        alike.setdefault(reduced, []).append((flow, place, number))
    for reduced, operands in alike.items():
        yield _found(reduced, operands, [sum_compiled_as(report, *operand) for operand in operands])
    for flow, place, number, axes in _equal(report, GATHERS):
        compiled = compiled_as(report, flow, place, "all-gather", place.equation.outputs[number].type.array)
        if compiled is not None or not is_compiled(report):
            call = call_at(report.program, flow.source(place), functions_of("all-gather"))
            operand = operand_text(call, place.equation.inputs[number])
            fix = f"use {operand} itself, repeated by jnp.broadcast_to or jnp.tile where its copies are intended"
            effect = "gathering it gives copies of it"
            gathered = _Reduced(flow.source(place), axes, "warning", effect=effect, fixes=advice(fix))
            yield _found(gathered, [(flow, place, number)], [compiled])


def _equal(report: Report, primitives: tuple[str, ...]) -> Iterator[tuple[Flow, EquationPlace, int, tuple[str, ...]]]:
    """With the number of the operand, and the axes along which it is the same."""
    for flow, place in equations_of(report, primitives):
        sizes = axis_sizes(report, flow, place)
        for number, equal in enumerate(() if flow.is_backward(place) else equal_along(flow, place)):
            # Over an axis of one device a sum is the value, whatever it is.
            axes = tuple(axis for axis in equal if sizes.get(axis) != 1)
            if axes and not is_constant(flow, At(place.jaxpr, place.equation.inputs[number])):
                yield flow, place, number, axes


class _Reduced(Record, frozen=True):
    """A reduction of what is the same along some axes, and its effect: one finding, however many operands it has."""

    source: SourcePosition
    axes: tuple[str, ...]
    severity: Severity
    effect: str
    fixes: tuple[Fix, ...]


def _found(
    reduced: _Reduced, operands: list[tuple[Flow, EquationPlace, int]], compiled: Iterable[Collective | None]
) -> Finding:
    flow, place, _ = operands[0]
    names = [place.equation.inputs[number] for _, place, number in operands]
    rest, along = len(names) - MAX_OPERANDS, ", ".join(reduced.axes)
    listed = ", ".join(names[:MAX_OPERANDS]) + (f" and {rest} more" if rest > 0 else "")
    same, effect, named, does = "value", reduced.effect, "operand", "does"
    if len(names) > 1:
        same, named, does = f"{len(names)} values", "operands", "do"
        effect = effect.replace("its", "each").replace(" it ", " them ")
    return finding(
        RULE,
        flow.place(place),
        f"all devices along {along} hold the same {same}: {effect}",
        severity=reduced.severity,
        confidence="proved",
        axes=reduced.axes,
        evidence=((named, f"{listed} {does} not vary over {along}, according to in_specs and the equations"),),
        fixes=reduced.fixes,
        saves=at_most(*dict.fromkeys(compiled)),
    )


def _reduced(
    report: Report, flow: Flow, place: EquationPlace, number: int, axes: tuple[str, ...], has_others: bool
) -> _Reduced:
    equation = place.equation
    sizes = axis_sizes(report, flow, place)
    times, every = devices_along(axes, sizes), devices_along(equation.axes or (), sizes)
    functions = functions_of("all-reduce", "reduce-scatter")
    call = call_at(report.program, flow.source(place), functions)
    is_scattered = equation.primitive in SCATTERS
    is_mean = every is not None and _is_divided(flow, At(place.jaxpr, equation.outputs[number].name), every)
    is_sum = is_scattered or (equation.primitive in SUMS and not is_mean)
    rest = tuple(axis for axis in equation.axes or () if axis not in axes)
    is_written = is_mean and not rest and not (call is not None and name_of(call[1].func) == "pmean")
    mean = quotient_of(report.program, call) if is_written else None
    count = "their number" if times is None else str(times)
    operand = operand_text(call, equation.inputs[number])
    title, edits = f"use {operand} itself", Edits()
    if is_scattered:
        title = f"use this device's block of {operand}, by lax.axis_index"
    elif rest:
        title = f"reduce {operand} over {', '.join(rest)} only"
    elif len(equation.outputs) == 1:
        left_out = call_to_leave_out(report.program, flow.source(place), functions)
        if has_others and left_out == call:  # of a tree, or of what several places give to a helper
            title = f"leave what is the same along {', '.join(axes)} out of the line's reduction, as the rest varies"
        elif is_written:
            title = f"{title}, without the division by {count}"
            edits = Edits() if mean is None else instead(mean, parenthesized(operand))
        else:
            edits = without_call(report.program, left_out)
    fixes = tuple(_fixes(report, flow, place, number, Fix(title, edits), count if is_sum else ""))
    effect = f"its sum is {count} times the value" if is_sum else "reducing it changes nothing"
    if is_written:
        effect = f"its sum divided by {count} is the value itself"
    return _Reduced(flow.source(place), axes, "error" if is_sum else "warning", effect=effect, fixes=fixes)


def _is_divided(flow: Flow, value: At, divisor: int) -> bool:
    reach = forward(flow, [value], STRAIGHT)
    return reach.is_all and all(divides(use.place, use.position, divisor) for use in reach.ends)


def _fixes(report: Report, flow: Flow, place: EquationPlace, number: int, fix: Fix, count: str) -> Iterator[Fix]:
    """Without the reduction; where a gather or a cast makes the type vary, which the reduction took back, without that.

    Whether the type has to be invariant, what comes behind it decides.
    """
    is_typed = fix.edits and not is_unchecked(flow, place)
    changes = list(made_to_vary(report.program, flow, place, number)) if is_typed else []
    titles, edits = [each for each, _ in changes], [each for _, each in changes]
    if titles:
        yield Fix(", and ".join((fix.title, *titles)), together(fix.edits, *edits))
    yield Fix(fix.title + (f", or multiply it by {count} if that is intended" if count else ""), fix.edits)


RULE = Rule(
    id="SS04",
    slug="psum-of-invariant",
    severity="error",
    finds="A reduction or a gather over an axis along which all devices hold the same value.",
    why="The sum of n equal values is n times the value, which is seldom intended, and no check rejects it. A mean or"
    " maximum of equal values is correct but wastes its communication, and so does a gather, which yields copies.",
    proof="The operand is traced back to the in_specs and to axis_index: nothing that varies over the axis enters it."
    " Sums of constants are not reported, also where an index of devices chooses them: they count.",
    faulty='return lax.psum(error, "batch") + lax.psum(jnp.sum(weights**2), "batch")',
    repaired='return lax.psum(error, "batch") + jnp.sum(weights**2)',
    check=check,
    is_observation=True,
    tries="the operand in place of its reduction; where its type varies, with all_gather to='invarying' or no cast",
)
