"""SS20: a donated argument whose memory is not used for a result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...capture.model import UPDATED, Value
from ...ir.array_sharding import ArraySharding
from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import format_bytes, known_sum
from ..fixes.edits import fewer_in_keyword
from ..fixes.results import with_result_specs
from ..fixes.specs import has_whole_axes
from ..rule import Rule, alternatives, finding

MAX_LISTED = 6

SMALL = 0.01
"""Part of the memory of the program up to which a donation is not worth a warning."""

_ALIASED = re.compile(r"\{(\d{0,9})\}:\s*\((\d{1,9}),")

_ROOT = re.compile(r"\A\w*")
_RESULT = re.compile(r"\Aresult(?:\[\d+\])?")
"""The start of the path of a result, also of one that a function returns among others."""


class _Lost(NamedTuple):
    """A donated argument that no result replaces, and why.

    `reason` is that in short, as several arguments can have it in common, and `specs` the results' shardings with which
    the memory can be reused.
    """

    argument: Value
    place: FindingPlace
    bytes: int | None
    spec: str
    why: str
    fix: str
    reason: str
    is_lost: bool = True
    specs: tuple[tuple[str, ArraySharding], ...] = ()


def check(report: Report) -> Iterator[Finding]:
    """The donated arguments that the compiled program takes and gives no result's place, by reason."""
    module = report.program.hlo("hlo")
    if module is None or module.entry is None:
        return
    aliases = _ALIASED.findall(module.attributes.get("input_output_alias", ""))
    aliased = {int(argument) for _, argument in aliases}
    given = {int(output or 0) for output, _ in aliases}
    free = [value for number, value in enumerate(report.capture.outputs) if number not in given]
    names = {parameter.op_name: number for number, parameter in enumerate(module.entry.parameters)}
    groups: dict[str, list[_Lost]] = {}
    for argument in report.capture.arguments:
        number = names.get(argument.path)
        if argument.donated and number is not None and number not in aliased:
            span = module.entry.parameters[number].span
            lost = _lost(report, argument, FindingPlace(argument.path, SourcePosition(), "hlo", span), free)
            groups.setdefault(lost.reason, []).append(lost)
    for group in groups.values():
        yield _found(report, sorted(group, key=lambda lost: -(lost.bytes or 0)))


def _found(report: Report, group: list[_Lost]) -> Finding:
    first, script = group[0], report.capture.script_text
    files = () if script is None else (script.name,)
    kept = "allocated in addition to the result" if first.is_lost else "the donation saves none"
    total = known_sum(lost.bytes for lost in group)
    peak = None if report.peak is None else report.peak.bytes
    is_small = total is not None and bool(peak) and total < SMALL * (peak or 0)
    specs = {name: spec for lost in group for name, spec in lost.specs}
    whole = with_result_specs(report, specs) if specs and has_whole_axes(specs.values()) else ()
    fewer = fewer_in_keyword(report.program, files, "donate_argnums") if len(group) == 1 else ()
    if len(group) == 1:
        said = f"{first.argument.path} is donated, but no result reuses its memory"
        evidence = [("reason", first.why), ("argument", f"{first.argument.type}, {first.spec}")]
    else:
        said = f"no result reuses the memory of {len(group)} donated arguments: {first.reason}"
        evidence = [(lost.argument.path, lost.why) for lost in group[:MAX_LISTED]]
        evidence += [("and", f"{len(group) - MAX_LISTED} more")] if len(group) > MAX_LISTED else []
    return finding(
        RULE,
        first.place,
        said,
        confidence="proved",
        subject=first.argument.path,
        severity=None if first.is_lost and not is_small else "info",
        evidence=(*evidence, ("memory", f"{format_bytes(total)} per device; {kept}")),
        fixes=alternatives(first.fix if len(group) == 1 else f"{first.fix}; likewise for the others", [whole, *fewer]),
    )


def _lost(report: Report, argument: Value, place: FindingPlace, free: Sequence[Value]) -> _Lost:
    """Return why no result reuses an argument's memory, what to do, and whether any result could.

    A result could that has its shape and the rest of its path, as `result[0]['w']` for `params['w']`. The `free` ones
    reuse no other argument's memory.
    """
    sharded = {(value.role, value.name): value for value in report.shardings}
    own = sharded.get(("argument", argument.path))
    size = jax_type(argument.type).bytes if own is None or own.local_type is None else own.local_type.bytes
    known = argument, place, size, "not known" if own is None else own.spec or "not sharded"
    dtype = jax_type(argument.type).dtype
    leaf = _ROOT.sub("", argument.path)
    alike = [
        value
        for value in report.capture.outputs
        if jax_type(value.type).shape == jax_type(argument.type).shape
        and (
            leaf in (value.path.removeprefix("result"), _RESULT.sub("", value.path))
            or value.path == f"{UPDATED}{argument.path}"
        )
    ]
    same = [value for value in alike if jax_type(value.type).dtype == dtype]
    competing = [value for value in report.capture.arguments if value.donated and value.type == argument.type]
    if same:
        meant = same[0].path
        other = sharded.get(("output", meant))
        if own is not None and other is not None and own.spec != other.spec:
            return _Lost(
                *known,
                f"{meant} has its type, but is sharded as {other.spec}, and the argument as {own.spec}",
                f"give {meant} the argument's sharding: out_shardings, or a constraint to {own.spec}",
                "their results are sharded differently",
                specs=() if own.sharding is None else ((meant, own.sharding),),
            )
        if same[0] in free:
            return _Lost(
                *known,
                f"{meant} has its type, but memory of its own",
                f"compare the layouts of {argument.path} and {meant}",
                "their results have memory of their own",
            )
        returned = [value for value in report.capture.outputs if value.type == argument.type]
        return _Lost(
            *known,
            f"{meant} has its type, but reuses another argument's memory",
            f"donate only as many arguments of type {argument.type} as there are results of that type",
            "their results reuse that of others",
            len(competing) <= len(returned),
        )
    if alike and not same and jax_type(argument.type).shape:
        return _Lost(
            *known,
            f"{alike[0].path} has its shape, but another type: {alike[0].type}",
            f"return {alike[0].path} as {dtype}, or do not donate {argument.path}",
            "their results have other dtypes",
        )
    return _Lost(
        *known,
        f"no result of type {argument.type} replaces it",
        f"do not donate {argument.path}, or return the value that replaces it",
        "none replaces them",
        is_lost=False,
    )


RULE = Rule(
    id="SS20",
    slug="donation-lost",
    severity="warning",
    finds="A donated argument whose memory no result reuses.",
    why="The argument is deleted without a benefit: argument and result are both allocated, which often decides"
    " whether a program fits. JAX warns when the function is called, but not when it is compiled ahead of time.",
    proof="The compiled program's own list of aliases has no entry for the argument. A note where no result"
    " replaces it, or where its memory is less than 1% of the program's.",
    faulty="step = jax.jit(lambda x: (2 * x).astype(jnp.bfloat16), donate_argnums=0)  # x is float32",
    repaired="step = jax.jit(lambda x: 2 * x, donate_argnums=0)",
    check=check,
    is_observation=True,
    tries="one fewer donated argument; out_shardings as the arguments are sharded; donation of what each call replaces",
    saves="memory",
    is_outcome=True,
)
