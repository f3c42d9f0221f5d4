"""SS20: a donated argument whose memory is not used for a result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...capture.model import UPDATED, Value
from ...ir.array_sharding import ArraySharding
from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, ShardedValue, SourcePosition
from ...units import format_bytes
from ..fixes.edits import fewer_in_keyword
from ..fixes.specs import has_whole_axes, with_result_specs
from ..rule import Rule, alternatives, finding

MAX_LISTED = 6

SMALL = 0.01
"""Part of the memory of the program up to which a donation is not worth a warning."""

_ALIASED = re.compile(r"\{(\d{0,9})\}:\s*\((\d{1,9}),")

_ROOT = re.compile(r"\A\w*")
_RESULT = re.compile(r"\Aresult(?:\[\d+\])?")
"""The start of the path of a result, also of one that a function returns among others."""


class _Lost(NamedTuple):
    """The reason for which no result replaces an argument, which several can have in common, and what it is exactly.

    `specs` are shardings of results with which the memory can be reused; it is not lost where none could.
    """

    reason: str
    why: str
    fix: str
    is_lost: bool = True
    specs: tuple[tuple[str, ArraySharding], ...] = ()


def check(report: Report) -> Iterator[Finding]:
    """The donated arguments that the compiled program takes and gives no result's place, by reason."""
    module = report.program.hlo("hlo")
    if module is None or module.entry is None:
        return
    aliases = _ALIASED.findall(module.attributes.get("input_output_alias", ""))
    aliased, given = {int(argument) for _, argument in aliases}, {int(output or 0) for output, _ in aliases}
    free = [value for number, value in enumerate(report.capture.outputs) if number not in given]
    spans = {each.op_name: each.span for number, each in enumerate(module.entry.parameters) if number not in aliased}
    sharded: dict[tuple[str, str], ShardedValue] = {(each.role, each.name): each for each in report.shardings}
    groups: dict[str, list[tuple[int, Value, _Lost]]] = {}
    for argument in report.capture.arguments:
        if argument.donated and argument.path in spans:
            lost, own = _lost(report, argument, free, sharded), sharded.get(("argument", argument.path))
            type = jax_type(argument.type) if own is None or own.local_type is None else own.local_type
            groups.setdefault(lost.reason, []).append((type.bytes or 0, argument, lost))
    for group in groups.values():
        largest = sorted(group, key=lambda each: -each[0])
        own, path = sharded.get(("argument", largest[0][1].path)), largest[0][1].path
        place = FindingPlace(path, SourcePosition(), "hlo", spans[path])
        yield _found(report, largest, place, "not known" if own is None else own.spec or "not sharded")


def _found(report: Report, group: list[tuple[int, Value, _Lost]], place: FindingPlace, spec: str) -> Finding:
    (_, argument, first), peak = group[0], 0 if report.peak is None else report.peak.bytes
    total = sum(size for size, _, _ in group)
    specs = {name: spec for _, _, lost in group for name, spec in lost.specs}
    whole = with_result_specs(report, specs) if specs and has_whole_axes(specs.values()) else ()
    if len(group) == 1:
        said = f"{argument.path} is donated, but no result reuses its memory"
        evidence = [("reason", first.why), ("argument", f"{argument.type}, {spec}")]
        fewer = fewer_in_keyword(report.program, filter(None, [report.script]), "donate_argnums")
        fixes = alternatives(first.fix, [whole, *fewer])
    else:
        said = f"no result reuses the memory of {len(group)} donated arguments: {first.reason}"
        evidence = [(each.path, lost.why) for _, each, lost in group[:MAX_LISTED]]
        evidence += [("and", f"{len(group) - MAX_LISTED} more")] if len(group) > MAX_LISTED else []
        fixes = alternatives(f"{first.fix}; likewise for the others", [whole])
    kept = "allocated in addition to the result" if first.is_lost else "the donation saves none"
    return finding(
        RULE,
        place,
        said,
        confidence="proved",
        subject=argument.path,
        severity="info" if not first.is_lost or total < SMALL * peak else None,
        evidence=(*evidence, ("memory", f"{format_bytes(total)} per device; {kept}")),
        fixes=fixes,
    )


def _lost(
    report: Report, argument: Value, free: Sequence[Value], sharded: Mapping[tuple[str, str], ShardedValue]
) -> _Lost:
    """Return why no result reuses an argument's memory, what to do, and whether any result could.

    A result could that has its shape and the rest of its path, as `result[0]['w']` for `params['w']`. The `free` ones
    reuse no other argument's memory.
    """
    path, type, leaf = argument.path, jax_type(argument.type), _ROOT.sub("", argument.path)
    alike = [
        value
        for value in report.capture.outputs
        if jax_type(value.type).shape == type.shape
        and (
            leaf in (value.path.removeprefix("result"), _RESULT.sub("", value.path)) or value.path == f"{UPDATED}{path}"
        )
    ]
    same = next((value for value in alike if jax_type(value.type).dtype == type.dtype), None)
    if same is None and alike and type.shape:
        why = f"{alike[0].path} has its shape, but another type: {alike[0].type}"
        return _Lost(
            "their results have other dtypes", why, f"return {alike[0].path} as {type.dtype}, or do not donate {path}"
        )
    if same is None:
        why, fix = (
            f"no result of type {argument.type} replaces it",
            f"do not donate {path}, or return the value that replaces it",
        )
        return _Lost("none replaces them", why, fix, is_lost=False)
    own, other = sharded.get(("argument", path)), sharded.get(("output", same.path))
    if own is not None and other is not None and own.spec != other.spec:
        why = f"{same.path} has its type, but is sharded as {other.spec}, and the argument as {own.spec}"
        fix = f"give {same.path} the argument's sharding: out_shardings, or a constraint to {own.spec}"
        specs = () if own.sharding is None else ((same.path, own.sharding),)
        return _Lost("their results are sharded differently", why, fix, specs=specs)
    if same in free:
        why = f"{same.path} has its type, but memory of its own"
        return _Lost("their results have memory of their own", why, f"compare the layouts of {path} and {same.path}")
    returned = [value for value in report.capture.outputs if value.type == argument.type]
    competing = [value for value in report.capture.arguments if value.donated and value.type == argument.type]
    return _Lost(
        "their results reuse that of others",
        f"{same.path} has its type, but reuses another argument's memory",
        f"donate only as many arguments of type {argument.type} as there are results of that type",
        is_lost=len(competing) <= len(returned),
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
