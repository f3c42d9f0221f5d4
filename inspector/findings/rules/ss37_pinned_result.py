"""SS37: a result that is asked for whole, although it is the next value of an argument that is sharded."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.spellings import CONSTRAINTS
from ...ir.name_scopes import Leaf, counterparts
from ...report import Finding, FindingPlace, Fix, Report, ShardedValue
from ...units import format_bytes, plural, with_more
from ..fixes.specs import with_result_specs
from ..rule import Rule, finding

Pair = tuple[ShardedValue, ShardedValue]
"""A result, and the argument that it is the next value of."""


def check(report: Report) -> Iterator[Finding]:
    """The results of a program that are requested with fewer axes than their arguments have."""
    if _only_reshards(report):
        return
    arguments = [each for each in report.shardings if each.role == "argument"]
    outputs = [each for each in report.shardings if each.role == "output"]
    leaves = ([Leaf(each.name, each.type) for each in values] for values in (arguments, outputs))
    pairs = [(outputs[number], arguments[found[0]]) for number, found in counterparts(*leaves).items()]
    first = _first_call(report)
    pinned = [(output, each) for output, each in pairs if _is_pinned(output, each, each.name in first)]
    if pinned:
        yield _found(report, pinned, first)


def _first_call(report: Report) -> dict[str, str]:
    """The specs of the arguments that an earlier program of the function has received sharded, by their paths."""
    return {each.path: each.spec for each in report.capture.earlier_arguments if "'" in each.spec}


def _only_reshards(report: Report) -> bool:
    """Return whether a program computes nothing: what it returns has the shardings that it is there for."""
    jaxpr = report.program.jaxpr
    if jaxpr is None:
        return False
    equations = (place.equation for place in jaxpr.equations)
    return all(each.bodies or each.primitive in CONSTRAINTS for each in equations)


def _is_pinned(output: ShardedValue, argument: ShardedValue, was_split: bool) -> bool:
    if output.sharding is None or argument.sharding is None or not output.agrees:
        return False
    own = {axis.name for axis in output.sharding.sharded}
    return not own and (was_split or bool(argument.sharding.sharded))


def _found(report: Report, pinned: list[Pair], first: dict[str, str]) -> Finding:
    pinned.sort(key=lambda pair: -(pair[0].type.bytes or 0))
    output, argument = pinned[0]
    assert argument.sharding is not None
    names = with_more(output.name, len(pinned))
    asked = "are asked for as" if len(pinned) > 1 else "is asked for as"
    total = sum(one.replicated_bytes or 0 for one, _ in pinned)
    specs = {
        one.name: str(each.spec) if each.sharding and each.sharding.sharded else first[each.name]
        for one, each in pinned
    }
    spec, when = specs[output.name], "" if argument.sharding.sharded else " in the first call"
    return finding(
        RULE,
        FindingPlace(f"output {output.name}", output.source, output.stage, output.span),
        f"{names} {asked} P(): {argument.name} is sharded as {spec}{when}",
        confidence="likely",
        subject=output.name,
        axes=argument.sharding.sharded,
        evidence=(
            (
                "requested",
                ", ".join(f"{one.name} {one.requested}, {each.name} {specs[one.name]}" for one, each in pinned[:4]),
            ),
            ("copies per device", f"{format_bytes(total)} in {plural(len(pinned), 'result')}"),
        ),
        fixes=(Fix(f"ask for {output.name} as {spec}", with_result_specs(report, specs)),),
    )


RULE = Rule(
    id="SS37",
    slug="pinned-result",
    severity="warning",
    finds="A result that out_shardings or a constraint makes whole, while the argument that it replaces is sharded.",
    why="It is gathered in every step, each device holds all of it afterwards, and the next step has another sharding:"
    " jit compiles again. Mostly out_shardings gives one sharding for a whole tree, or P() for a cache.",
    proof="What was requested of the result, and the sharding of the argument of the same path and type."
    " `likely`, because parameters may be wanted whole after the last step.",
    faulty="""step = jax.jit(update, out_shardings=NamedSharding(mesh, P()))""",
    repaired="""step = jax.jit(update, out_shardings=params_shardings)""",
    check=check,
    tries="out_shardings, or a constraint where it is returned, as the argument's sharding",
    is_observation=True,
)
