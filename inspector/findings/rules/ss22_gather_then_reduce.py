"""SS22: a dimension that is gathered and summed away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from ...dataflow.jaxpr import global_flow_of
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ...report import Collective, Finding, Fix, Report, SourcePosition
from ..compiled import GATHERS, REDUCTIONS, at_most, certainty, compiled_as, compiled_to, is_compiled
from ..equations import (
    At,
    Flow,
    Use,
    axis_sizes,
    devices_along,
    equations_of,
    flow_of,
    is_alone,
    numbers_of,
    operands_over,
)
from ..fixes.calls import (
    Call,
    call_at,
    call_to_leave_out,
    function_around,
    imports,
    name_of,
    of_lax,
    operand_text,
    returned_by,
)
from ..fixes.edits import (
    Edits,
    axes_text,
    instead,
    parenthesized,
    rewritten,
    together,
    without_call,
    without_calls,
    wrapped,
)
from ..rule import Rule, finding

INSTEAD = {"reduce_sum": "psum", "reduce_max": "pmax", "reduce_min": "pmin"}
"""The collective, by the primitive that reduces."""

TOTALS = ("sum", "max", "min", "amax", "amin", "mean")
"""The functions that reduce, where a user calls them."""

SPREADS = ("var", "std")
"""The functions that reduce twice: a mean, and that of squares around it."""

NORM = "norm"
"""The function that reduces squares, and takes the root of their sum."""

DIMENSION = "all_gather_dimension"
"""The parameter of a gather that has its dimension."""

BY_ROWS = ~(Does.SEND | Does.SUM)
"""Anything that may be done with the rows before they are reduced: a trial says if it was row by row."""


def check(report: Report) -> Iterator[Finding]:
    """Each all_gather whose result is only ever reduced over the gathered dimension, and all of a function that are."""
    together: dict[tuple[int, tuple[str, ...], tuple[int, ...]], list[EquationPlace]] = {}
    for flow, place in equations_of(report, GATHERS):
        found = [
            each for number in range(len(place.equation.outputs)) for each in _checked(report, flow, place, number)
        ]
        yield from found
        if not found and place.equation.axes and _is_tiled(place):
            together.setdefault((place.jaxpr, place.equation.axes, _rows(place)), []).append(place)
    for (_, axes, rows), places in together.items():
        yield from _checked_together(report, axes, rows, places)


def _checked(report: Report, flow: Flow, place: EquationPlace, number: int) -> Iterator[Finding]:
    equation, axes = place.equation, place.equation.axes or ()
    parts = devices_along(axes, axis_sizes(report, flow, place))
    if not axes or parts is None:
        return
    reach = forward(
        flow,
        [At(place.jaxpr, equation.outputs[number].name)],
        ELEMENTWISE | Does.RESHAPE,
        keeps=partial(is_alone, flow),
    )
    if not reach.is_all or parts == 1 or len({use.place.equation.primitive for use in reach.ends}) != 1:
        return
    if not all(_reduces(flow, use, _rows(place, number), axes) for use in reach.ends):
        return
    reductions = tuple(dict.fromkeys(use.place for use in reach.ends))
    compiled = compiled_as(report, flow, place, "all-gather", equation.outputs[number].type.array)
    if not is_compiled(report) or compiled is not None:
        fix = _fix(report, flow, place, number, reductions, [use.place for use in reach.steps])
        yield _found(report, flow, place, number, reductions, compiled, fix)


def _rows(gather: EquationPlace, number: int = 0) -> tuple[int, ...]:
    """The size of the gathered dimension of a result, if it is known."""
    (dim,) = numbers_of(gather.equation, DIMENSION)[:1] or (0,)
    return (gather.equation.outputs[number].type.array.shape or ())[dim : dim + 1]


def _is_tiled(gather: EquationPlace) -> bool:
    return dict(gather.equation.params).get("tiled") == "True"


def _checked_together(
    report: Report, axes: tuple[str, ...], rows: tuple[int, ...], places: list[EquationPlace]
) -> Iterator[Finding]:
    """The gathers of so many rows in one function, if all that is made of these is reduced to totals."""
    flow = flow_of(report)
    parts = None if flow is None else devices_along(axes, axis_sizes(report, flow, places[0]))
    if flow is None or parts in (None, 1) or not rows:
        return
    starts = [At(place.jaxpr, each.name) for place in places for each in place.equation.outputs]
    everywhere = global_flow_of(flow.text)  # gradients are computed in a shard_map of their own
    reach = forward(
        everywhere,
        starts,
        BY_ROWS,
        keeps=lambda use: all(_shape(flow, at).count(rows[0]) == 1 for at in everywhere.after(use)),
    )
    totals = [use for use in reach.ends if _reduces(flow, use, rows, axes)]
    if not reach.is_all or not all(use in totals or _is_of_gradients(flow, use) for use in reach.ends):
        return
    compiled = [
        compiled_as(report, flow, place, "all-gather", each.type.array)
        for place in places
        for each in place.equation.outputs
    ]
    if is_compiled(report) and not any(compiled):
        return
    reductions = tuple(dict.fromkeys(use.place for use in totals if not flow.is_backward(use.place)))
    if not reductions:
        return
    yield finding(
        RULE,
        flow.place(places[0]),
        f"{rows[0]} rows are gathered over {', '.join(axes)}, and all that is made of them is reduced over them:"
        " each device could reduce its own",
        confidence="likely",
        axes=axes,
        related=map(flow.place, (*places[1:], *reductions)),
        evidence=(
            ("reduced by", ", ".join(flow.place(each).what for each in reductions)),
            *map(compiled_to, filter(None, compiled)),
        ),
        fixes=tuple(_of_own_rows(report, flow, axes, places, reductions)),
        saves=at_most(*compiled),
    )


def _of_own_rows(
    report: Report,
    flow: Flow,
    axes: tuple[str, ...],
    gathers: list[EquationPlace],
    reductions: tuple[EquationPlace, ...],
) -> Iterator[Fix]:
    """No gather, and a collective of each total; or a mean of all that the function returns."""
    program, along = report.program, axes_text(axes)
    calls = {call_to_leave_out(program, flow.source(each), GATHERS): None for each in gathers}
    own = together(*(without_call(program, call) for call in calls))
    named = (*TOTALS, *SPREADS, NORM)
    totals = {call_at(program, _source(flow, each), named): each.equation.primitive for each in reductions}
    around = {
        call: "pmean" if name_of(call[1].func) in ("mean", *SPREADS) else INSTEAD[primitive]
        for call, primitive in totals.items()
        if call is not None
    }
    names = ", ".join(operand_text(call, "it") for call in calls)
    if len(around) == len(totals):
        edits = (_total(program, call, name, along) for call, name in around.items())
        kinds = " and ".join(dict.fromkeys(around.values()))
        yield Fix(f"leave out the gathers of {names}, and {kinds} each total over {along}", together(own, *edits))
    call = next(iter(calls))
    function = None if call is None else function_around(program, call[0], call[1].lineno)
    if call is not None and function is not None:
        mean = of_lax(program, call, "pmean")
        edits = (wrapped((call[0], value), f"{mean}(", f", {along})") for value in returned_by(function[1]))
        yield Fix(f"leave out the gathers of {names}, and average what {function[0]} returns", together(own, *edits))


def _source(flow: Flow, place: EquationPlace) -> SourcePosition:
    """The lines that an equation comes from; of one without them, in a function of JAX, those of its caller."""
    return next((at for each in flow.around(place) if (at := flow.source(each)).stack), flow.source(place))


def _total(program: Program, call: Call, collective: str, along: str) -> Edits:
    """A total over all devices' rows; of a variance the mean of the squares, less the square of the mean.

    Nothing of a norm that may be another one than the root of a sum of squares.
    """
    node, reduce = call[1], of_lax(program, call, collective)
    if name_of(node.func) == NORM:
        is_other = len(node.args) != 1 or any(each.arg not in ("axis", "keepdims") for each in node.keywords)
        return () if is_other else wrapped(call, f"{reduce}(", f" ** 2, {along}) ** 0.5")
    if name_of(node.func) not in SPREADS:
        return wrapped(call, f"{reduce}(", f", {along})")
    source, (value, *args) = program.file(call[0]), (getattr(node.func, "value", node), *node.args)
    if source is not None and isinstance(value, ast.Name) and imports(source, value.id) and args:
        value, args = node.args[0], node.args[1:]  # a module's function
    rest = ", ".join(map(ast.unparse, (*args, *node.keywords)))
    text = parenthesized(ast.unparse(value))
    variance = f"{reduce}(({text} ** 2).mean({rest}), {along}) - {reduce}({text}.mean({rest}), {along}) ** 2"
    return instead(call, f"({variance}) ** 0.5" if name_of(node.func) == "std" else f"({variance})")


def _is_of_gradients(flow: Flow, use: Use) -> bool:
    """Return whether a use reduces gradients of gathered rows, or gives them back to the devices that have the rows."""
    return use.place.equation.primitive in (*INSTEAD, *REDUCTIONS) and flow.is_backward(use.place)


def _shape(flow: Flow, value: At) -> tuple[int, ...]:
    type = flow.type_of(value)
    return (type.array.shape if type else None) or ()


def _reduces(flow: Flow, use: Use, size: tuple[int, ...], axes: tuple[str, ...]) -> bool:
    """Return whether a use reduces a dimension of this size, in the same way on all devices along the axes."""
    equation = use.place.equation
    shape = _shape(flow, At(use.place.jaxpr, equation.inputs[0], use.calls))
    operands = operands_over(flow, use.place)
    if equation.primitive not in INSTEAD or not operands or {held.axis for held in operands[0]} & set(axes):
        return False
    return any(shape[dim : dim + 1] == size for dim in numbers_of(equation, "axes"))


def _found(
    report: Report,
    flow: Flow,
    place: EquationPlace,
    number: int,
    reductions: tuple[EquationPlace, ...],
    compiled: Collective | None,
    fix: Fix,
) -> Finding:
    equation, axes = place.equation, place.equation.axes or ()
    collective = INSTEAD[reductions[0].equation.primitive]
    return finding(
        RULE,
        flow.place(place),
        f"{equation.outputs[number].type.array} is gathered over {', '.join(axes)} and reduced at once:"
        f" {collective} the local {collective[1:]} instead",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, reductions),
        evidence=(
            ("reduced by", ", ".join(flow.place(each).what for each in reductions)),
            compiled_to(compiled),
        ),
        fixes=(fix,),
        saves=at_most(*(() if _is_repeated(flow, place, number) else (compiled,))),
    )


def _is_repeated(flow: Flow, place: EquationPlace, number: int) -> bool:
    """Return whether another equation gathers the same value alike: compilers make one of them, which stays."""
    made = place.equation
    return any(
        (other.equation.primitive, other.equation.params) == (made.primitive, made.params)
        for other, _ in flow.used.get((place.jaxpr, made.inputs[number]), ())
        if other.equation is not made
    )


def _fix(
    report: Report,
    flow: Flow,
    place: EquationPlace,
    number: int,
    reductions: tuple[EquationPlace, ...],
    between: list[EquationPlace],
) -> Fix:
    """The collective in place of the gather where all that is reduced is the dimension it adds; else around the sums.

    What is done in between element by element is then done to each device's own part.
    """
    program, equation = report.program, place.equation
    call = call_to_leave_out(program, flow.source(place), ("all_gather",))
    calls = [call_at(program, _source(flow, each), (*TOTALS, NORM)) for each in reductions]
    along = axes_text(equation.axes or ())
    operand, collective = operand_text(call, equation.inputs[number]), INSTEAD[reductions[0].equation.primitive]
    means = {each is not None and name_of(each[1].func) == "mean" for each in calls}
    if True in means:
        collective = "pmean"
    is_tiled = _is_tiled(place)
    (gathered,) = numbers_of(equation, DIMENSION)[:1] or (0,)
    if None in calls or len(means) > 1:
        return Fix(f"{INSTEAD[reductions[0].equation.primitive]} each device's own part of it instead of gathering it")
    alone = all(numbers_of(each.equation, "axes") == (gathered,) for each in reductions) and not any(
        keyword.arg != "axis" for each in calls if each is not None for keyword in each[1].keywords
    )
    if not is_tiled and alone and not between:
        text = f"{of_lax(program, call, collective)}({operand}, {along})"
        totals = without_calls(program, map(flow.source, reductions), TOTALS)
        return Fix(f"{text}, without the gather", together(rewritten(program, call, text), totals))
    own = without_call(program, call) if is_tiled else Edits()
    if not is_tiled and gathered == 0 and "vmap(" not in equation.name_stack:
        own = rewritten(program, call, f"{parenthesized(operand)}[None]")
    around = [_total(program, each, collective, along) for each in calls if each is not None]
    total = "" if calls[0] is None else ast.unparse(calls[0][1])
    total = total if call is None else total.replace(ast.unparse(call[1]), operand)
    total += " ** 2" * (calls[0] is not None and name_of(calls[0][1].func) == NORM)
    title = f"use {operand} itself, without the gather, and {of_lax(program, calls[0], collective)}({total}, {along})"
    return Fix(title, together(*around, own) if all(around) else ())


RULE = Rule(
    id="SS22",
    slug="gather-then-reduce",
    severity="warning",
    finds="An all-gather whose gathered dimension is summed right away.",
    why="Every device receives all blocks to compute what a psum of per-device sums gives with a fraction of the"
    " bytes and of the work.",
    proof="All uses of the gathered value are followed: each ends in a reduction over the gathered dimension, with the"
    " same values on all devices. `proved` if the compiled program has the all-gather too; `likely` where what is done"
    " with the rows in between is not elementwise, as an argmax of each: a trial says whether it is done row by row.",
    faulty='jnp.sum(lax.all_gather(x, "x", tiled=True), axis=0)',
    repaired='lax.psum(jnp.sum(x, axis=0), "x")',
    check=check,
    tries="the reduction of each device's own part, and a psum, pmean, pmax or pmin of that",
)
