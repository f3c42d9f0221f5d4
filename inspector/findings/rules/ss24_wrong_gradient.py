"""SS24: a gradient that is not the derivative of the values."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Set
from itertools import combinations

from ....parsers.source import Frame
from ...capture.protocol.trace import Place
from ...capture.protocol.values import Derivative
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, FindingPlace, Fix, Report, SourcePosition
from ...values.gradients import WrongGradient, wrong_gradients
from ..fixes.calls import call_to_leave_out
from ..fixes.edits import Edits, axes_text, keyword_changes, without_call
from ..fixes.reductions import larger, smaller
from ..rule import MAX_ALTERNATIVES, Rule, advice, finding
from ..support.device_values import axis_sizes, is_unchecked
from ..support.jaxpr_flow import Flow, equations_of

SUMMING = ("psum", "psum_invariant", "reduce_scatter")
"""Primitives of which one too many, or too few, makes a gradient wrong by the number of devices."""

CHECKS = ("check_vma", "check_rep")


COMPARED_WITH = (("compared with", "the loss as it is after its own sums, where it has any"),)
"""The evidence for a gradient that is taken inside of a shard_map."""


def check(report: Report) -> Iterator[Finding]:
    """Each derivative that was compared with differences of values, and is not what they give."""
    gradients = report.capture.gradients
    if gradients is None:
        return
    for wrong in wrong_gradients(gradients):
        yield _found(report, wrong)
    for derivative in gradients.checked:
        if derivative.factor is not None:
            yield _ambiguous(report, derivative, derivative.factor)


def _ambiguous(report: Report, derivative: Derivative, factor: float) -> Finding:
    """A gradient that is right where a constant is the division of a mean, and wrong where it is a learning rate."""
    axes, _ = _by_axes(report, factor, 0.0, set())
    size = "·".join(f"|{axis}|" for axis in axes)
    at = derivative.factor_at
    frames = () if at is None else (Frame(at.file, "", at.line),)
    return finding(
        RULE,
        FindingPlace(f"gradient of {derivative.of}", SourcePosition.exact(frames)),
        f"the gradient for {derivative.argument} is right only if its factor {factor:.4g} is no learning rate",
        confidence="possible",
        severity="info",
        subject=f"{derivative.argument} factor",
        axes=axes,
        evidence=(("without the factor", f"the gradient is {1 / factor:.4g} times the true gradient ({size})"),),
        fixes=advice(f"divide by lax.axis_size({axes_text(axes)}), which no other mesh makes wrong") if axes else (),
    )


def _found(report: Report, wrong: WrongGradient) -> Finding:
    derivative, factor = wrong.derivative, wrong.factor
    afterwards = list(_sums_after(report, derivative))
    likely = {axis for _, place in afterwards for axis in place.equation.axes or ()}
    spread = 0.0 if factor is None else derivative.spread / derivative.difference
    axes, factor = ((), None) if factor is None else _by_axes(report, factor, spread, likely)
    sums = [each for each in afterwards if set(each[1].equation.axes or ()) & set(axes)]
    is_mapped = derivative.sums is not None
    sums = sums if is_mapped else list(_sums(report, axes))
    size = "·".join(f"|{axis}|" for axis in axes)
    share = f"1/{size}" if factor is not None and abs(factor) < 1 else size
    reason = f" ({factor:.4g} = {share})" if axes and factor else ""
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
            *(COMPARED_WITH if is_mapped else ()),
            *(("candidate sums", ", ".join(place.what for place in places[:6])) for _ in places[:1]),
        ),
        fixes=_fixes_after(report, sums, axes, factor) if is_mapped else _fixes(report, sums),
    )


def _by_axes(report: Report, factor: float, spread: float, likely: Set[str]) -> tuple[tuple[str, ...], float]:
    """The axes whose sizes multiplied are the factor, or one divided by it, as well as it is known; and that number."""
    meshes = report.capture.subject.meshes if report.capture.subject else ()
    for mesh in meshes:
        sizes = {axis.name: axis.size for axis in mesh.axes if axis.size > 1}
        for count in range(1, len(sizes) + 1):
            for axes in sorted(combinations(sizes, count), key=lambda axes: not set(axes) <= likely):
                size = math.prod(sizes[axis] for axis in axes)
                for each in (size, 1 / size):
                    if math.isclose(abs(factor), each, rel_tol=max(1e-3, 2 * abs(spread))):
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


def _sums_after(report: Report, derivative: Derivative) -> Iterator[tuple[Flow, EquationPlace]]:
    """The sums that a gradient taken inside of a shard_map goes through, the last one first."""
    for line in dict.fromkeys(reversed(derivative.sums or ())):
        for flow, place in equations_of(report, SUMMING):
            frame = flow.source(place).frame
            if frame is not None and Place(frame.file, frame.line) == line and not flow.is_backward(place):
                yield flow, place
                break


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
    found: dict[Edits, str] = {}
    for flow, place in sums:
        call = call_to_leave_out(report.program, flow.source(place), ("psum",))
        edits = without_call(report.program, call)
        if call is not None and edits:
            found.setdefault(edits, f"leave out {ast.unparse(call[1].func)} in {ast.unparse(call[1])}")
    files = [frame.file for flow, place in sums for frame in flow.source(place).stack]
    for edits in keyword_changes(report.program, files or [report.script or ""], CHECKS, "True"):
        found.setdefault(edits, "turn on the check of shard_map: check_vma=True")
    written = tuple(Fix(title, edits) for edits, title in list(found.items())[:MAX_ALTERNATIVES])
    return written or advice("compare the sums of the backward pass with the types that check_vma=True gives")


RULE = Rule(
    id="SS24",
    slug="wrong-gradient",
    severity="error",
    finds="A gradient that is not the derivative of the values, according to --check-gradients.",
    why="A psum that is transposed to another psum, a surplus one in a custom_vjp, or a missing one scales gradients"
    " by the number of devices along an axis. Training continues, with another learning rate for some parameters.",
    proof="Each derivative that the function takes, also in inner jits, is compared for each argument along a random"
    " direction with a central difference of the values, in float64 on CPU devices. Differences that vary with the"
    " step size prove nothing. A gradient that is taken inside of a shard_map is compared after the sums that it goes"
    " through, with the loss after its own: without these, their sum over devices or their mean may be meant."
    " A constant that is 1 divided by sizes of axes may be a learning rate or the division of a mean: a note says so.",
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
