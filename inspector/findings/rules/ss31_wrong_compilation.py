"""SS31: a compiled program that computes something else than its source."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import plural
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """The difference that a validation has found."""
    found = report.capture.validation
    if found is None or found.status != "differs":
        return
    wrong = [output for output in found.outputs if output.devices]
    subject = wrong[0].path if wrong else found.place
    outputs = (
        ("outputs", f"{len(wrong)} of {plural(len(found.outputs), 'output')} differ"),
        ("devices", ", ".join(str(device) for output in wrong[:1] for device in output.devices)),
    )
    passed, first = found.differing_pass, found.first
    by = "" if passed is None else f" after the pass {passed.name}"
    file, _, line = ("" if first is None else first.place).rpartition(":")
    source = SourcePosition.of_line(file, int(line)) if line.isdecimal() else SourcePosition()
    yield finding(
        RULE,
        FindingPlace("" if first is None else first.name, source),
        f"the compiled program gives another {subject}{by}: off by {found.error:.2g} of its largest element"
        if wrong
        else f"the compiled program never ends{by}: {found.reason} at {found.place}",
        confidence="proved",
        subject=subject,
        evidence=(
            *(outputs if wrong else ()),
            ("first instruction", "not known" if first is None else f"{first.name} {first.place}".rstrip()),
            ("pass", "not known" if passed is None else f"{passed.name} in {passed.pipeline}"),
            ("compiler", found.compiler),
            ("reproduction", found.reproduction or ""),
        ),
        fixes=advice("use another version of the compiler, or report it with the reproduction" + _disabled(report)),
    )


def _disabled(report: Report) -> str:
    found = report.capture.validation
    passed = None if found is None else found.differing_pass
    return "" if passed is None else f"; compiler_options={{'xla_disable_hlo_passes': '{passed.name}'}} may avoid it"


RULE = Rule(
    id="SS31",
    slug="wrong-compilation",
    severity="error",
    finds="A compiled program whose outputs differ from those of the program that the compiler was given.",
    why="The results on the target are wrong, on some devices or on all of them, without any error.",
    proof="`proved`: both programs were evaluated on all devices in exact arithmetic, for the arguments of the script"
    " or synthetic ones. Only with --validate.",
    faulty="total, _ = lax.scan(lambda t, x: (t + embedding_gradient(x), None), zeros, batches)  # libtpu 0.0.48",
    repaired='jax.jit(step, compiler_options={"xla_disable_hlo_passes": "while-loop-all-reduce-code-motion"})',
    check=check,
    by_hand="the fault is in the compiler",
)
