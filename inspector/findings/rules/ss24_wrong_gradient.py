"""SS24: a gradient that is not the derivative of the values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Set
from contextlib import suppress
from itertools import combinations

from ....parsers.record import Record
from ....parsers.source import Frame
from ...capture.model import Capture
from ...capture.one_device import RESULT_TOLERANCE
from ...dataflow.jaxpr import At, JaxprFlow
from ...dataflow.meaning import Does, does
from ...ir.jaxpr import literal_in
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, FindingPlace, Fix, Report, SourcePosition
from ...report.gradients import WrongGradient, wrong_gradients
from ..compiled import SCATTERS, SUMS
from ..equations import Flow, axis_sizes, equations_of, flow_of, is_unchecked
from ..fixes.edits import axes_text, keyword_changes, left_out
from ..fixes.reductions import larger, smaller
from ..rule import MAX_ALTERNATIVES, Rule, advice, finding

SUMMING = (*SUMS, *SCATTERS)
"""Primitives of which one too many, or too few, makes a gradient wrong by the number of devices."""

CHECKS = ("check_vma", "check_rep")

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e-?\d+)?|(?<![\w.])\.\d+")


def check(report: Report) -> Iterator[Finding]:
    """Each derivative that differences of values contradict, and each result that a run on one device does."""
    capture = report.capture
    for wrong in () if capture.gradients is None else wrong_gradients(capture.gradients):
        yield _found(report, wrong)
    if (flow := flow_of(report)) is not None:
        for scaled in scaled_gradients(capture, flow):
            yield _scaled(report, flow, scaled)


def _found(report: Report, wrong: WrongGradient) -> Finding:
    derivative, factor = wrong.derivative, wrong.factor
    spread = 0.0 if factor is None else derivative.spread / derivative.difference
    axes, factor = ((), None) if factor is None else _by_axes(report, factor, max(1e-3, 2 * abs(spread)), set())
    sums = list(_sums(report, axes))
    share, reason = _share(axes, factor)
    is_what = "not zero, as it should be" if factor is None else f"{factor:.4g} times the true gradient{reason}"
    frames = () if derivative.file is None else (Frame(derivative.file, "", derivative.line),)
    here = FindingPlace(f"gradient of {derivative.of}", SourcePosition.exact(frames))
    places = [flow.place(place) for flow, place in sums]
    return finding(
        RULE,
        places[0] if places else here,
        f"the gradient for {derivative.argument} is {is_what}",
        confidence="proved",
        subject=f"{derivative.argument} {share}",
        axes=axes,
        related=[*places[1:], *([here] if places else [])],
        evidence=(
            ("along a random direction", f"gradient {derivative.slope:.6g}, differences {derivative.difference:.6g}"),
            ("differences vary by", f"{derivative.spread:.2g} with the size of the step"),
            *(("candidate sums", ", ".join(place.what for place in places[:6])) for _ in places[:1]),
        ),
        fixes=_fixes(report, sums),
    )


def _scaled(report: Report, flow: Flow, scaled: ScaledGradient) -> Finding:
    """A result that is another multiple of the gradient than the loss is of the loss, on one device."""
    summing = [place for place in scaled.makers if place.equation.primitive in SUMMING]
    likely = {axis for place in summing for axis in place.equation.axes or ()}
    axes, factor = _by_axes(report, scaled.factor, RESULT_TOLERANCE, likely)
    _, reason = _share(axes, factor)
    sums = [(flow, place) for place in summing if set(place.equation.axes or ()) & set(axes)]
    constant = _constant(report, flow, scaled, factor)
    what = f"the update of {scaled.argument}" if scaled.argument else f"the gradient {scaled.path}"
    message = f"{what} is {factor:.4g} times the true gradient{reason}"
    if constant is not None:
        message = f"{what} is right only if its factor {_literal(constant):.4g} is no learning rate"
    places = [flow.place(place) for _, place in sums] or [FindingPlace(scaled.path, SourcePosition.exact(()))]
    against = f"{scaled.against}, both on one device" if scaled.against else "one device; no loss is returned"
    return finding(
        RULE,
        places[0] if constant is None else flow.place(constant),
        message,
        confidence="possible" if constant is not None else "proved" if scaled.against and axes else "likely",
        severity=None if constant is None else "info",
        subject=f"{scaled.path} {factor:.4g}",
        axes=axes,
        related=places[1:] if constant is None else places,
        evidence=(("compared with", against),),
        fixes=_fixes_after(report, sums, axes, factor) if constant is None else (),
    )


def _share(axes: tuple[str, ...], factor: float | None) -> tuple[str, str]:
    size = "·".join(f"|{axis}|" for axis in axes)
    share = f"1/{size}" if factor is not None and abs(factor) < 1 else size
    return share, f" ({factor:.4g} = {share})" if axes and factor else ""


def _constant(report: Report, flow: Flow, scaled: ScaledGradient, factor: float) -> EquationPlace | None:
    """A number as large as the factor, by which the source multiplies or divides, whatever the number of devices."""
    for place in scaled.makers:
        is_scaled = does(place.equation.primitive) is Does.SCALE and len(place.equation.inputs) == 2
        number = _literal(place) if is_scaled else None
        if not number or flow.is_backward(place):
            continue
        if any(math.isclose(number, each, rel_tol=1e-3) for each in (abs(factor), 1 / abs(factor))):
            frame = flow.source(place).frame
            file = None if frame is None else report.program.file(frame.file)
            lines = file.text().splitlines() if file and frame else []
            line = "".join(lines[frame.line - 1 : frame.line]) if frame else ""
            written = [float(each) for each in _NUMBER.findall(line)]
            if any(math.isclose(number, by, rel_tol=1e-3) for each in written if each for by in (each, 1 / each)):
                return place
    return None


def _literal(place: EquationPlace) -> float | None:
    for operand in place.equation.inputs:
        with suppress(ValueError):
            return abs(float(literal_in(operand) or ""))
    return None


def _by_axes(report: Report, factor: float, tolerance: float, likely: Set[str]) -> tuple[tuple[str, ...], float]:
    """The axes whose sizes multiplied are the factor, or one divided by it, as well as it is known; and that number."""
    meshes = report.capture.subject.meshes if report.capture.subject else ()
    for mesh in meshes:
        sizes = {axis.name: axis.size for axis in mesh.axes if axis.size > 1}
        for count in range(1, len(sizes) + 1):
            for axes in sorted(combinations(sizes, count), key=lambda axes: not set(axes) <= likely):
                size = math.prod(sizes[axis] for axis in axes)
                for each in (size, 1 / size):
                    if math.isclose(abs(factor), each, rel_tol=tolerance):
                        return axes, math.copysign(each, factor)
    return (), factor


def _sums(report: Report, axes: tuple[str, ...]) -> Iterator[tuple[Flow, EquationPlace]]:
    """The sums over these axes of the backward pass, first those that a user wrote, then those without a check."""
    found = [
        (flow, place)
        for flow, place in equations_of(report, SUMMING)
        if flow.is_backward(place) and set(place.equation.axes or ()) & set(axes) and axis_sizes(report, flow, place)
    ]
    yield from sorted(found, key=lambda each: (not each[1].equation.in_custom_vjp, not is_unchecked(*each)))


def _fixes_after(
    report: Report, sums: list[tuple[Flow, EquationPlace]], axes: tuple[str, ...], factor: float | None
) -> tuple[Fix, ...]:
    """A mean for a sum, or a sum for a mean; or the division that is missing."""
    found: list[Fix] = []
    for flow, place in sums:
        source = flow.source(place)
        is_large = factor is not None and abs(factor) > 1
        found += smaller(report.program, source, axes) if is_large else larger(report.program, source)
    written = tuple(fix for fix in found if fix.edits)[:MAX_ALTERNATIVES]
    along = axes_text(axes) if axes else "the axis"
    if factor is not None and abs(factor) > 1:
        text = (
            f"divide the gradients by lax.axis_size({along}), differentiate the lax.pmean of the loss,"
            " or return its lax.psum where devices have parts of it"
        )
        return written or advice(text)
    return written or advice(f"reduce gradients and loss alike, both by lax.psum or both by lax.pmean over {along}")


def _fixes(report: Report, sums: list[tuple[Flow, EquationPlace]]) -> tuple[Fix, ...]:
    """Without one of the sums that were written, or with the check on."""
    left = left_out(report.program, (flow.source(place) for flow, place in sums), ("psum",))
    found = [fix for fix in left if fix.edits]
    files = [frame.file for flow, place in sums for frame in flow.source(place).stack]
    for edits in keyword_changes(report.program, files or [report.script or ""], CHECKS, "True"):
        found.append(Fix("turn on the check of shard_map: check_vma=True", edits))
    return tuple(found[:MAX_ALTERNATIVES]) or advice(
        "compare the sums of the backward pass with the types that check_vma=True gives"
    )


class ScaledGradient(Record, frozen=True):
    """A result that is a gradient, or an `argument` updated by one: so many times that of the loss on one device.

    `against` is the loss that the function returns, empty where it returns none: then a multiple may be meant.
    `makers` are the equations between the backward pass and the result, the last one first.
    """

    path: str
    argument: str
    factor: float
    against: str
    makers: tuple[EquationPlace, ...]


def scaled_gradients(capture: Capture, flow: JaxprFlow) -> Iterator[ScaledGradient]:
    """Yield the gradients that have another factor than every loss that is returned.

    A loss is a scalar that no backward pass computes; that of a gradient is one that is computed in the same call.
    Where it is off by no factor (random numbers of each device, for one), nothing is known of its gradients.
    """
    reference, ran = capture.reference, capture.execution
    if reference is None or reference.undefined is not None or reference.left_out or ran is None:
        return
    apart = {each.position: each for each in reference.differs if each.when == "output"}
    gradients: list[tuple[int, tuple[EquationPlace, ...]]] = []
    losses: list[tuple[int, frozenset[str]]] = []
    for number, (output, name) in enumerate(zip(ran.outputs, flow.jaxprs[0].outputs, strict=False)):
        if output.projections is None or output.minimum is None:
            continue
        makers = tuple(flow.makers(At(0, name), flow.is_backward))
        is_backward = any(map(flow.is_backward, makers))
        if is_backward and not _is_scalar(output.type):
            gradients.append((number, makers))
        elif not is_backward and _is_scalar(output.type):
            losses.append((number, frozenset(place.id for place in makers)))
    factors = {number: apart[number].factor if number in apart else 1.0 for number in range(len(ran.outputs))}
    for number, makers in gradients:
        ids = {place.id for place in makers}
        own = [loss for loss, of in losses if of & ids] or [loss for loss, _ in losses]
        factor, known = factors[number], [factors[loss] for loss in own] or [1.0]
        if factor is None or None in known or any(_is_close(factor, each) for each in known):
            continue
        against = ran.outputs[own[0]].path if own else ""
        argument = apart[number].argument if number in apart else ""
        yield ScaledGradient(ran.outputs[number].path, argument, factor / (known[0] or 1.0), against, makers)


def _is_close(one: float, other: float | None) -> bool:
    return other is not None and math.isclose(one, other, rel_tol=RESULT_TOLERANCE)


def _is_scalar(type: str) -> bool:
    return type.partition("[")[2].startswith("]")


RULE = Rule(
    id="SS24",
    slug="wrong-gradient",
    severity="error",
    finds="A gradient that is not the derivative of the values, according to --check-gradients.",
    why="A psum that is transposed to another psum, a surplus one in a custom_vjp, or a missing one scales gradients"
    " by the number of devices along an axis. Training continues, with another learning rate for some parameters.",
    proof="Each derivative that the function takes, also in inner jits, is compared for each argument along a random"
    " direction with a central difference of the values, in float64 on CPU devices. Differences that vary with the"
    " step size prove nothing. A gradient that is taken inside of a shard_map is compared, after its sums, with that of"
    " the same function on one device, as the loss is that the function returns. A constant that is 1 divided by sizes"
    " of axes may be a learning rate or the division of a mean: a note says so.",
    faulty="""def bwd(residuals, g):
    x, w = residuals
    return lax.psum(g @ w.T, "model"), x.T @ g  # shard_map sums over "model" once more""",
    repaired="""def bwd(residuals, g):
    x, w = residuals
    return g @ w.T, x.T @ g""",
    check=check,
    is_observation=True,
    of_gradients=True,
    tries="the backward pass without a psum, one at a time; check_vma=True; of a gradient taken inside of a shard_map"
    " pmean for psum, psum for pmean, no sum, the quotient by the number of devices",
)
