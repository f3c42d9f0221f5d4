"""Products of explicit types whose `out_sharding` leaves partial sums over other axes than the product makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import instead
from ..report import Explanation, Fix, StoryStep
from .failed import Failed
from .operands import all_resharded, failing, resharded, resharded_at
from .operations import PRODUCTS

OTHER_AXES = re.compile(r"unreduced axes should be equal to.*?unreduced axes=(.*?) and contracting spec=(\(.*?\))\s*\Z")
UNLIKE = re.compile(
    r"contracting dims should be sharded identically.*?lhs_contracting_spec=(.*), rhs_contracting_spec=(.*)"
)
ONE_SIDE = re.compile(r"(lhs|rhs) is unreduced while (lhs|rhs) is not\. `(\w+)`")

PRODUCT = re.compile(
    r"lhs and rhs to `(\w+)` cannot be unreduced|unreduced rule for (\w+) is not implemented"
    r"|(\w+) is a non-linear operation and cannot accept input that is unreduced"
)

_AXIS = re.compile(r"'([^']*)'")


def explain_other_axes(failed: Failed, said: re.Match[str]) -> Explanation:
    """The axes that the contracting dimension is sharded over, and those that out_sharding names."""
    named, summed = (tuple(_AXIS.findall(text)) for text in said.groups())
    over = _listed(summed)
    makes = f"each device has a partial sum, to be reduced over {over}" if summed else "each device has full sums"
    steps = (
        StoryStep(f"both operands are sharded over {over} in the contracting dimension: {makes}", failed.place),
        StoryStep(f"out_sharding requests partial sums over {_listed(named)}", failed.place),
    )
    return Explanation(
        f"the product makes partial sums over {over}, but out_sharding requests them over {_listed(named)}",
        steps,
        (
            *_with_axes(failed, summed),
            Fix(f"or shard the contracting dimension of both operands over {_listed(named)}"),
        ),
    )


def explain_unlike(failed: Failed, said: re.Match[str]) -> Explanation:
    """The contracting dimension of each operand."""
    sides = [_listed(tuple(_AXIS.findall(text))) for text in said.groups()]
    steps = [
        StoryStep(f"the contracting dimension of the {which} operand is sharded over {axes}", failed.place)
        for which, axes in zip(("first", "second"), sides, strict=True)
    ]
    title = "partial sums require both operands to be sharded alike in the contracting dimension"
    return Explanation(title, tuple(steps), (Fix("reshard one operand in the contracting dimension like the other"),))


def explain_one_side(failed: Failed, said: re.Match[str]) -> Explanation:
    """A sum of partial sums and of whole ones."""
    partial, whole = ("first", "second") if said[1] == "lhs" else ("second", "first")
    title = f"reduce the {partial} operand first with jax.sharding.reshard, which keeps its other axes"
    reduced = [Fix(title, edits) for edits in resharded(failed, 0 if said[1] == "lhs" else 1, ())]
    return Explanation(
        f"`{said[3]}` of partial sums and of a value that is not a partial sum",
        (StoryStep(f"the {partial} operand is unreduced, the {whole} one is not", failed.place),),
        (*reduced,),
    )


def explain_products(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain what cannot be done with partial sums."""
    function = said[1] or said[2] or said[3]
    return Explanation(
        f"`{function}` of partial sums is not a partial sum of the result: reduce them first",
        (StoryStep("its operands are unreduced: each device has a partial sum", failed.place),),
        tuple(_reduced(failed)),
    )


def _reduced(failed: Failed) -> Iterator[Fix]:
    for edits in all_resharded(failed, ()):
        yield Fix("reduce first with jax.sharding.reshard, which keeps the operands' other axes", edits)
    for file, call in failing(failed, 1):
        for argument in call.args if isinstance(call, ast.Call) else ():
            for edits in resharded_at(failed, (file, argument), ()):
                yield Fix(f"reduce {ast.unparse(argument)} with jax.sharding.reshard before the call", edits)


def _with_axes(failed: Failed, axes: tuple[str, ...]) -> Iterator[Fix]:
    wanted = f"{{{', '.join(map(repr, axes))}}}" if axes else "frozenset()"
    for file, call in failed.calls(PRODUCTS):
        for spec in ast.walk(call):
            if isinstance(spec, ast.Call) and name_of(spec.func) in ("P", "PartitionSpec"):
                for keyword in spec.keywords:
                    if keyword.arg == "unreduced":
                        yield Fix(
                            f"keep the existing partial sums: unreduced={wanted}",
                            instead((file, keyword.value), wanted),
                        )


def _listed(axes: tuple[str, ...]) -> str:
    return ", ".join(map(repr, axes)) or "no axis"
