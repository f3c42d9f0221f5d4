"""SS32: a program that is compiled for fewer devices than the script has, or than a mesh that it made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...capture.model import OtherResult, Value
from ...communication.weights import weights_of
from ...ir.name_scopes import Leaf, counterparts
from ...ir.types import ArrayType, jax_type
from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import format_bytes, known_sum, plural, with_more
from ..fixes.specs import sharding_words
from ..rule import MIN_SPLIT_ELEMENTS, Rule, advice, finding

Typed = tuple[Value | OtherResult, ArrayType]


def check(report: Report) -> Iterator[Finding]:
    """A program for one device of a script with a mesh of more."""
    subject, capture = report.capture.subject, report.capture
    sizes = {mesh: math.prod(axis.size for axis in mesh.axes) for mesh in subject.meshes} if subject else {}
    mesh = max(sizes, key=lambda each: sizes[each], default=None)
    if subject is None or mesh is None or sizes[mesh] == 1 or capture.failure is not None:
        return
    axes = ", ".join(f"{axis.name}={axis.size}" for axis in mesh.axes)
    left_out = subject.device_count - len({number for each in sizes for number in each.device_ids})
    if len(subject.device_assignment) != 1:
        if subject.requested and left_out > 0:
            used, count = len(subject.device_assignment), subject.device_count
            yield finding(
                RULE,
                FindingPlace("mesh", SourcePosition()),
                f"{subject.function} runs on {used} of {count} devices: no mesh of the script has the other {left_out}",
                confidence="proved",
                subject="mesh",
                evidence=(("mesh of the script", axes),),
                fixes=advice(f"make the mesh of all {count} devices"),
            )
        for function, others in _beside(report):
            yield _found(report, function, others, sizes[mesh], axes, ("is", "not sharded"))
        return
    trained = weights_of(report.program)
    arguments = sorted(_large(capture.arguments), key=lambda each: (each[0].path in trained, -(each[1].bytes or 0)))
    results = sorted(_large(capture.outputs), key=lambda each: -(each[1].bytes or 0))
    is_free = any("'" in (each.spec or "") for each, _ in arguments)
    if values := results if is_free else arguments or results:
        what = ("depends", "on no argument") if is_free else ("is", "not sharded")
        yield _found(
            report, subject.function, values, sizes[mesh], axes, what if arguments else ("has", "no requested sharding")
        )


def _beside(report: Report) -> Iterator[tuple[str, list[Typed]]]:
    """The script's programs that compute on one device with arguments that this one has on all: an evaluation."""
    arguments = _large(report.capture.arguments)
    shared = [Leaf(each.path, type) for each, type in arguments if each.spec is not None]
    programs: dict[str, list[OtherResult]] = {}
    for each in report.capture.other_results:
        if each.is_argument and report.capture.subject and each.program != report.capture.subject.function:
            programs.setdefault(each.program, []).append(each)
    for program, others in programs.items():
        values = sorted(_large(others), key=lambda each: -(each[1].bytes or 0))
        if counterparts(shared, [Leaf(each.path, type) for each, type in values]):
            yield program, values


def _large(values: Sequence[Value | OtherResult]) -> list[Typed]:
    typed = [(each, jax_type(each.type)) for each in values]
    return [(each, type) for each, type in typed if (type.elements or 0) >= MIN_SPLIT_ELEMENTS]


PLURAL = {"depends": "depend", "is": "are", "has": "have"}


def _found(
    report: Report, function: str, values: Sequence[Typed], devices: int, mesh: str, what: tuple[str, str]
) -> Finding:
    (first, _), size = values[0], known_sum(type.bytes for _, type in values) or 0
    names = with_more(first.path, len(values))
    verb = PLURAL[what[0]] if len(values) > 1 else what[0]
    is_result = first.path.startswith("result")
    placed = "jit's out_shardings" if is_result else f"jax.device_put({first.path}, {sharding_words(report, 'P(...)')})"
    return finding(
        RULE,
        FindingPlace(first.path, SourcePosition()),
        f"{function} runs on 1 of {devices} devices: {names} {verb} {what[1]}",
        confidence="proved",
        subject=first.path,
        evidence=(
            ("mesh of the script", mesh),
            ("results" if is_result else "arguments", ", ".join(f"{v.path} {v.type}" for v, _ in values[:6])),
            ("on one device", f"{plural(len(values), 'array')} of {format_bytes(size)}"),
        ),
        fixes=advice(f"shard it: {placed}"),
    )


RULE = Rule(
    id="SS32",
    slug="fewer-devices",
    severity="warning",
    finds="A program for one device in a script that makes a mesh of several; or meshes that leave out devices.",
    why="jit takes the devices of its arguments. NumPy arrays, results of eager operations and of a jit without sharded"
    " arguments are on one device: the others do nothing, or get copies in the next step.",
    proof="The compiled program's devices, and the meshes among the script's globals, whatever they are made for. That"
    " devices are in no mesh is reported where their number is given, as by --devices.",
    faulty="""x = numpy.load("batch.npy")
step(params, x)""",
    repaired="""x = jax.device_put(numpy.load("batch.npy"), NamedSharding(mesh, P("data")))
step(params, x)""",
    check=check,
    by_hand="which dimension of an argument is to be split is for its author to say",
    saves="compute",
    is_observation=True,
)
