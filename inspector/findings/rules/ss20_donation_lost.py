"""SS20: a donated argument whose memory is not used for a result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...capture.model import Value
from ...ir.array_sharding import ArraySharding
from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import format_bytes, known_sum
from ..fixes.edits import fewer_in_keyword
from ..fixes.results import with_result_specs
from ..fixes.specs import has_whole_axes
from ..rule import Rule, alternatives, finding

MAX_LISTED = 6

_ALIASED = re.compile(r":\s*\((\d{1,9}),")


class _Lost(NamedTuple):
    """A donated argument that no result replaces, and why.

    `reason` is that in short, if it is one that arguments can have in common, and `specs` the results' shardings with
    which the memory can be reused.
    """

    argument: Value
    place: FindingPlace
    bytes: int | None
    spec: str
    why: str
    fix: str
    is_lost: bool = True
    reason: str = ""
    specs: tuple[tuple[str, ArraySharding], ...] = ()


def check(report: Report) -> Iterator[Finding]:
    """The donated arguments that the compiled program takes and gives no result's place, by reason."""
    module = report.program.hlo("hlo")
    if module is None or module.entry is None:
        return
    aliased = {int(number) for number in _ALIASED.findall(module.attributes.get("input_output_alias", ""))}
    names = {parameter.op_name: number for number, parameter in enumerate(module.entry.parameters)}
    groups: dict[str, list[_Lost]] = {}
    for argument in report.capture.arguments:
        number = names.get(argument.path)
        if argument.donated and number is not None and number not in aliased:
            span = module.entry.parameters[number].span
            lost = _lost(report, argument, FindingPlace(argument.path, SourcePosition(), "hlo", span))
            groups.setdefault(lost.reason or argument.path, []).append(lost)
    for group in groups.values():
        yield _found(report, sorted(group, key=lambda lost: -(lost.bytes or 0)))


def _found(report: Report, group: list[_Lost]) -> Finding:
    first, script = group[0], report.capture.script_text
    files = () if script is None else (script.name,)
    kept = "allocated beside the result" if first.is_lost else "donating it saves none"
    total = known_sum(lost.bytes for lost in group)
    specs = {name: spec for lost in group for name, spec in lost.specs}
    whole = with_result_specs(report, specs) if specs and has_whole_axes(specs.values()) else ()
    fewer = fewer_in_keyword(report.program, files, "donate_argnums") if len(group) == 1 else ()
    if len(group) == 1:
        said = f"{first.argument.path} is donated, but no result reuses its memory"
        evidence = [("reason", first.why), ("argument", f"{first.argument.type}, {first.spec}")]
    else:
        said = f"{len(group)} arguments are donated, but no result reuses their memory: {first.reason}"
        evidence = [(lost.argument.path, lost.why) for lost in group[:MAX_LISTED]]
        evidence += [("and", f"{len(group) - MAX_LISTED} more")] if len(group) > MAX_LISTED else []
    return finding(
        RULE,
        first.place,
        said,
        confidence="proved",
        subject=first.argument.path,
        severity=None if first.is_lost else "info",
        evidence=(*evidence, ("memory", f"{format_bytes(total)} on each device; {kept}")),
        fixes=alternatives(first.fix if len(group) == 1 else f"{first.fix}; the others alike", [whole, *fewer]),
    )


def _lost(report: Report, argument: Value, place: FindingPlace) -> _Lost:
    """Return why no result reuses an argument's memory, what to do, and whether any result could."""
    sharded = {(value.role, value.name): value for value in report.shardings}
    own = sharded.get(("argument", argument.path))
    size = jax_type(argument.type).bytes if own is None or own.local_type is None else own.local_type.bytes
    known = argument, place, size, "not known" if own is None else own.spec or "not sharded"
    dtype = jax_type(argument.type).dtype
    alike = [value for value in report.capture.outputs if jax_type(value.type).shape == jax_type(argument.type).shape]
    same = [value for value in alike if jax_type(value.type).dtype == dtype]
    if same:
        meant = same[0].path
        other = sharded.get(("output", meant))
        if own is not None and other is not None and own.spec != other.spec:
            return _Lost(
                *known,
                f"{meant} has its type, but is sharded as {other.spec}, and the argument as {own.spec}",
                f"give {meant} the argument's sharding: out_shardings, or a constraint to {own.spec}",
                reason="results like them have other shardings",
                specs=() if own.sharding is None else ((meant, own.sharding),),
            )
        competing = [value for value in report.capture.arguments if value.donated and value.type == argument.type]
        return _Lost(
            *known,
            f"{meant} has its type, but reuses another argument's memory, or has its own",
            f"donate only as many arguments of type {argument.type} as there are results of that type",
            len(competing) <= len(same),
        )
    if alike:
        return _Lost(
            *known,
            f"{alike[0].path} has its shape, but another type: {alike[0].type}",
            f"return {alike[0].path} as {dtype}, or do not donate {argument.path}",
        )
    return _Lost(
        *known,
        f"no result has the type {argument.type}",
        f"do not donate {argument.path}, or return what replaces it",
        is_lost=False,
    )


RULE = Rule(
    id="SS20",
    slug="donation-lost",
    severity="warning",
    finds="A donated argument whose memory no result reuses.",
    why="The argument is deleted without a benefit: argument and result are both allocated, which often decides"
    " whether a program fits. JAX warns when the function is called, but not when it is compiled ahead of time.",
    proof="The compiled program's own list of aliases has no entry for the argument.",
    faulty="step = jax.jit(lambda x: (2 * x).astype(jnp.bfloat16), donate_argnums=0)  # x is float32",
    repaired="step = jax.jit(lambda x: 2 * x, donate_argnums=0)",
    check=check,
    tries="one fewer donated argument; out_shardings as the arguments are sharded",
    saves="memory",
)
