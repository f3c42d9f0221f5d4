"""SS35: results that are made of no argument, and come out whole where a value of their type is sharded."""

from __future__ import annotations

from collections.abc import Iterator

from ...dataflow.jaxpr import At, GlobalFlow, global_flow_of
from ...report import Finding, FindingPlace, Fix, Report, ShardedValue
from ...units import format_bytes, plural, with_more
from ..fixes.specs import with_result_specs
from ..rule import MIN_SPLIT_ELEMENTS, Rule, finding


def check(report: Report) -> Iterator[Finding]:
    """The results of one program that depend on no argument and are whole."""
    text = report.program.jaxpr
    outputs = [each for each in report.shardings if each.role == "output"]
    if text is None or len(text.program.jaxprs[0].outputs) != len(outputs):
        return
    flow = global_flow_of(text)
    sharded: dict[object, ShardedValue] = {}
    for role in ("argument", "output"):
        for each in report.shardings:
            is_large = (each.type.elements or 0) >= MIN_SPLIT_ELEMENTS
            if each.role == role and is_large and each.sharding is not None and each.sharding.sharded:
                sharded.setdefault(each.type, each)
    found = [
        each
        for each, name in zip(outputs, flow.jaxprs[0].outputs, strict=True)
        if each.type in sharded
        and (each.type.elements or 0) >= MIN_SPLIT_ELEMENTS
        and (each.sharding is None or not each.sharding.sharded)
        and _is_free(flow, name)
    ]
    if found:
        yield _found(report, found, sharded)


def _is_free(flow: GlobalFlow, name: str) -> bool:
    inputs = {variable.name for variable in flow.jaxprs[0].inputs}
    if name in inputs:
        return False
    makers = flow.makers(At(0, name), lambda _: False)
    return not any(place.jaxpr == 0 and inputs & set(place.equation.inputs) for place in makers)


def _found(report: Report, values: list[ShardedValue], sharded: dict[object, ShardedValue]) -> Finding:
    values.sort(key=lambda each: -(each.type.bytes or 0))
    first, like = values[0], sharded[values[0].type]
    names = with_more(first.name, len(values))
    verbs = "depend on no argument, and come" if len(values) > 1 else "depends on no argument, and comes"
    total = sum(each.type.bytes or 0 for each in values)
    specs = {each.name: sharding for each in values if (sharding := sharded[each.type].sharding) is not None}
    return finding(
        RULE,
        FindingPlace(f"output {first.name}", first.source, first.stage, first.span),
        f"{names} {verbs} out whole: {like.name} is sharded",
        confidence="proved",
        subject=first.name,
        axes=() if like.sharding is None else like.sharding.sharded,
        evidence=(
            ("per device", f"{format_bytes(total)} in {plural(len(values), 'result')}"),
            (f"another {like.role.replace('output', 'result')} of its type", f"{like.name} {like.type} as {like.spec}"),
        ),
        fixes=(
            Fix(
                f"ask for {first.name} as {like.spec}, by out_shardings or a constraint",
                with_result_specs(report, specs),
            ),
        ),
    )


RULE = Rule(
    id="SS35",
    slug="result-of-no-argument",
    severity="warning",
    finds="Results that depend on no argument, whole on every device, while an argument or another result of their type"
    " is sharded.",
    why="Shardings propagate along values. `zeros_like(p)` needs the shape of p alone: under jit nothing leads from the"
    " parameter to its moments, so jit(optimizer.init) gives each device all of them.",
    proof="No equation that makes the result takes an argument, and its sharding after propagation has no axis.",
    faulty="""state = jax.jit(lambda p: jnp.zeros_like(p))(params)""",
    repaired="""state = jax.jit(lambda p: jnp.zeros_like(p), out_shardings=params.sharding)(params)""",
    check=check,
    tries="out_shardings, or a constraint where it is returned, as the argument's sharding",
    saves="memory",
    is_observation=True,
)
