"""SS20: a donated argument whose memory is not used for a result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...capture.model import Value
from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, Role, ShardedValue, SourcePosition
from ...units import format_bytes
from ..fixes.edits import fewer_in_keyword
from ..rule import Rule, alternatives, finding

_ALIASED = re.compile(r":\s*\((\d{1,9}),")


def check(report: Report) -> Iterator[Finding]:
    """Each donated argument that the compiled program takes and gives no result's place."""
    module = report.program.hlo("hlo")
    if module is None or module.entry is None:
        return
    aliased = {int(number) for number in _ALIASED.findall(module.attributes.get("input_output_alias", ""))}
    names = {parameter.op_name: number for number, parameter in enumerate(module.entry.parameters)}
    for argument in report.capture.arguments:
        number = names.get(argument.path)
        if argument.donated and number is not None and number not in aliased:
            span = module.entry.parameters[number].span
            yield _found(report, argument, FindingPlace(argument.path, SourcePosition(), "hlo", span))


def _found(report: Report, argument: Value, place: FindingPlace) -> Finding:
    sharded = {(value.role, value.name): value for value in report.shardings}
    own = sharded.get(("argument", argument.path))
    size = jax_type(argument.type).bytes if own is None or own.local_type is None else own.local_type.bytes
    script = report.capture.script_text
    files = () if script is None else (script.name,)
    why, fix, is_lost = _why(report, argument, own, sharded)
    kept = "allocated beside the result" if is_lost else "donating it saves none"
    return finding(
        RULE,
        place,
        f"{argument.path} is donated, but no result reuses its memory",
        confidence="proved",
        severity=None if is_lost else "info",
        evidence=(
            ("reason", why),
            ("argument", f"{argument.type}, {'not known' if own is None else own.spec or 'not sharded'}"),
            ("memory", f"{format_bytes(size)} on each device; {kept}"),
        ),
        fixes=alternatives(fix, fewer_in_keyword(report.program, files, "donate_argnums")),
    )


def _why(
    report: Report, argument: Value, own: ShardedValue | None, sharded: dict[tuple[Role, str], ShardedValue]
) -> tuple[str, str, bool]:
    """Return why no result reuses its memory, what to do, and whether any result could."""
    outputs = report.capture.outputs
    dtype = jax_type(argument.type).dtype
    alike = [value for value in outputs if jax_type(value.type).shape == jax_type(argument.type).shape]
    same = [value for value in alike if jax_type(value.type).dtype == dtype]
    if same:
        other = sharded.get(("output", same[0].path))
        if own is not None and other is not None and own.spec != other.spec:
            return (
                f"{same[0].path} has its type, but is sharded as {other.spec}, and the argument as {own.spec}",
                f"give {same[0].path} the argument's sharding: out_shardings, or a constraint to {own.spec}",
                True,
            )
        competing = [value for value in report.capture.arguments if value.donated and value.type == argument.type]
        return (
            f"{same[0].path} has its type, but reuses another argument's memory, or has its own",
            f"donate only as many arguments of type {argument.type} as there are results of that type",
            len(competing) <= len(same),
        )
    if alike:
        return (
            f"{alike[0].path} has its shape, but another type: {alike[0].type}",
            f"return {alike[0].path} as {dtype}, or do not donate {argument.path}",
            True,
        )
    return (
        f"no result has the type {argument.type}",
        f"do not donate {argument.path}, or return what replaces it",
        False,
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
    tries="one fewer donated argument",
    saves="memory",
)
