"""SS10: what travels in a wide type and is needed in a narrow one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ....parsers.record import Record
from ...catalog.spellings import RESHARDING, primitives_of, rule_of
from ...dataflow.meaning import STRAIGHT, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report, SourcePosition
from ...units import bytes_of
from ..compiled import REDUCTIONS, at_most, certainty, compiled_as, compiled_to, is_compiled, platform_of
from ..equations import At, Flow, equations_of
from ..fixes.calls import Call, call_at, call_of_helper, operand_text
from ..fixes.edits import as_operand, together, wrapped
from ..rule import Rule, finding

MOVING = primitives_of(*RESHARDING)
"""Collectives that send elements unchanged, so that narrower ones can be sent instead."""


def check(report: Report) -> Iterator[Finding]:
    """Each collective all of whose results are narrowed, or that only moves an operand which was just widened."""
    if not platform_of(report):
        return
    for flow, place in equations_of(report, (*MOVING, *REDUCTIONS)):
        for number in range(len(place.equation.outputs)):
            narrow = _narrowed(flow, place, number)
            if narrow is not None:
                yield from _found(report, flow, place, number, narrow)


class _Narrow(Record, frozen=True):
    """A narrower dtype that is enough, and how that is known; `widened` if the operand had it and was cast."""

    dtype: str
    known: str
    widened: bool


def _narrowed(flow: Flow, place: EquationPlace, number: int) -> _Narrow | None:
    equation = place.equation
    wide, reduces = equation.outputs[number].type.array.dtype, equation.primitive in REDUCTIONS
    made = flow.made.get((place.jaxpr, equation.inputs[number] if number < len(equation.inputs) else ""))
    if not reduces and made is not None and made[0].equation.primitive == "convert_element_type":
        before = flow.type_of(At(place.jaxpr, made[0].equation.inputs[0]))
        dtype = "" if before is None else before.array.dtype
        if _is_narrower(dtype, wide):
            return _Narrow(dtype, f"{equation.inputs[number]} was widened from {before}", widened=True)
    reach = forward(flow, [At(place.jaxpr, equation.outputs[number].name)], Does.SCALE if reduces else STRAIGHT)
    if not reach.is_all or any(use.place.equation.primitive != "convert_element_type" for use in reach.ends):
        return None
    dtypes = {use.place.equation.outputs[0].type.array.dtype for use in reach.ends}
    if len(dtypes) == 1 and _is_narrower(dtype := dtypes.pop(), wide):
        return _Narrow(dtype, f"all that is done with {equation.outputs[number].name} is to make {dtype} of it", False)
    return None


def _is_narrower(narrow: str, wide: str) -> bool:
    sizes = bytes_of(narrow, (1,)), bytes_of(wide, (1,))
    return None not in sizes and sizes[0] < sizes[1] and narrow[:1] in "bf" and wide[:1] == "f"  # type: ignore[operator]


def _found(report: Report, flow: Flow, place: EquationPlace, number: int, narrow: _Narrow) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    type, rule = equation.outputs[number].type.array, rule_of(equation.primitive)
    if rule is None or rule.lowers_to is None:
        return
    compiled = compiled_as(report, flow, place, rule.lowers_to, type)
    wide = type.dtype
    reduces = equation.primitive in REDUCTIONS
    if reduces and type.elements == 1:
        return
    if is_compiled(report) and (compiled is None or not any(t.dtype.startswith(wide) for t in compiled.result_types)):
        return  # the compiler narrows it before it travels
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is {'reduced' if reduces else 'sent'} over {', '.join(equation.axes or ())}, but"
        f" {f'rounded to {narrow.dtype}' if reduces else f'{narrow.dtype} is enough'}",
        confidence=certainty(compiled),
        axes=equation.axes or (),
        evidence=(("needed", narrow.known), compiled_to(compiled)),
        fixes=tuple(_fixes(report, source, rule.functions, equation.inputs[number], wide, narrow)),
        saves=at_most(compiled),
    )


def _fixes(
    report: Report, source: SourcePosition, functions: Collection[str], name: str, wide: str, narrow: _Narrow
) -> Iterator[Fix]:
    """First the call of the helper that sends: others of it may need what is wide."""
    call, cast = call_at(report.program, source, functions), _cast(narrow.dtype)
    sent = "" if narrow.widened else operand_text(call, "")
    if (outer := call_of_helper(report.program, source, sent)) is not None:
        function, given = outer[1].func, outer[1].args[0]
        title = f"send ({ast.unparse(given)}){cast}, where {ast.unparse(function)} is called (line {given.lineno})"
        yield Fix(title, wrapped((outer[0], given), "(", f"){cast}"))
    yield _fix(call, name, wide, narrow)


def _fix(call: Call | None, name: str, wide: str, narrow: _Narrow) -> Fix:
    operand, cast = operand_text(call, name), _cast(narrow.dtype)
    sent = () if call is None or not call[1].args else wrapped((call[0], call[1].args[0]), "(", f"){cast}")
    if not narrow.widened:
        return Fix(f"send ({operand}){cast}", sent)
    widened = () if call is None else as_operand(call, _cast(wide))
    return Fix(f"send {operand} before it is widened, and widen the result", together(sent, widened))


def _cast(dtype: str) -> str:
    return f".astype(jnp.{_NAMES.get(dtype, dtype)})"


_NAMES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}

RULE = Rule(
    id="SS10",
    slug="wide-dtype-collective",
    severity="warning",
    finds="A gather, exchange or permutation in a wide type although its result is used in a narrower one.",
    why="These collectives move elements unchanged: casting before the collective halves the bytes, or better.",
    proof="The only use of the result is a cast to a narrower type, or the operand was widened just before; and the"
    " target's compiler sends the wide type. Those of TPUs and GPUs often cast first, that of CPUs does not.",
    faulty='w = lax.all_gather(weights, "x", tiled=True).astype(jnp.bfloat16)',
    repaired='w = lax.all_gather(weights.astype(jnp.bfloat16), "x", tiled=True)',
    check=check,
    tries="the cast before the collective, and a cast back after it if the operand was widened;"
    " a cast before a constraint that gathers, behind a barrier",
    narrows=True,
)
