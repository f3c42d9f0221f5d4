"""SS15: an operation for which the partitioner gathers all of an operand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources

from ....parsers.sharding_syntax.mesh import join_axes
from ...ir.types import types_text
from ...report import Collective, CollectiveCause, Finding, FindingPlace, Fix, Report
from ..compiled import at_most, compiled_to, dimension_of, moved_by_the_partitioner, platform_of
from ..fixes.batched import in_shard_map
from ..rule import Rule, advice, alternatives, finding

_WHOLE_MATRIX = "shard the dimensions of a batch of matrices: each matrix is worked on as a whole"

IDIOMS = {
    **dict.fromkeys(("cholesky", "eig", "eigh", "lu", "svd", "triangular_solve"), _WHOLE_MATRIX),
    **dict.fromkeys(
        ("geqrf", "householder_product", "qr"),
        "of a tall matrix, in a shard_map, jnp.linalg.qr of each shard, all_gather the triangles, and their qr again;"
        " or twice y @ inv(cholesky(y.T @ y)).T, which sums over the rows",
    ),
    "reduce_window_sum": "in a shard_map, jnp.cumsum each shard, then add the totals of the shards before it, from an"
    " all_gather of the last rows",
    "reduce_window": "in a shard_map, accumulate each shard, then combine it with the totals of the shards before it,"
    " from an all_gather of the last rows",
    "dynamic_slice": "shard another dimension, as of weights that a scan takes layer by layer; or in a shard_map each"
    " device takes its part of the slice, and a psum combines them",
    "dynamic_update_slice": "write with jnp.where on an iota, which works on each shard",
    "slice": "slice before the dimension is sharded, or along an unsharded one",
    "top_k": "in a shard_map, lax.top_k of each shard, all_gather the results, and lax.top_k again",
    "sort": "sort along an unsharded dimension; or first keep the needed elements with lax.top_k of each shard",
    "reduce": "in a shard_map, reduce each shard, then all_gather one value per shard",
    "fft": "transform along an unsharded dimension: swap it with the sharded one by lax.all_to_all before and after",
    "gather": "look few rows up in a shard_map: each device its own rows, zeros for the others, then a psum; of more"
    " rows than the operand has, that sends more",
}
"""Code to write instead, by JAX's name of the operation."""

MAX_LISTED = 4
"""Gathers of one value that are named."""

FUNCTIONS = {
    "fft": [f"{kind}{dims}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for dims in ("", "2", "n")],
    "top_k": ["top_k"],
}
"""The functions of `jax.numpy.fft` and `jax.lax` that call an operation along some dimensions alone."""


def check(report: Report) -> Iterator[Finding]:
    """Each gather by the partitioner for an operation that works across a cut dimension.

    The positions that the compiler sorts beside the program's values are gathered with those.
    """
    found: dict[tuple[object, object], dict[object, list[tuple[Collective, CollectiveCause]]]] = {}
    for collective, cause in moved_by_the_partitioner(report):
        if collective.kind != "all-gather":
            continue
        known = cause.primitive in IDIOMS
        is_lookup = cause.is_lookup  # where only what is looked up is meant, by rows, and not where to look
        crosses = cause.effect == "move" or (cause.effect in ("reshard", "own") and known and not is_lookup)
        moved = [type for type in collective.operand_types if type.elements == cause.elements]
        is_whole = cause.moved is not None and cause.moved.is_operand and moved
        if is_lookup and any(type.dtype[:1] in "iu" for type in moved):
            continue
        if crosses and is_whole and (known or cause.rule):
            found.setdefault((cause.operation, cause.place), {}).setdefault(cause.moved, []).append((collective, cause))
    for gathers in (list(each.values()) for each in found.values()):
        positions = [each for each in gathers if _is_positions(each[0][1])]
        named = [each for each in gathers if each not in positions]
        beside = [collective for each in positions for collective, _ in each] if named else []
        for number, alike in enumerate(named or positions):
            yield _found(report, [each for each, _ in alike], alike[0][1], beside if number == 0 else [])


def _is_positions(cause: CollectiveCause) -> bool:
    return cause.moved is not None and str(cause.moved.made_by) == "iota"


def _found(
    report: Report, alike: Sequence[Collective], cause: CollectiveCause, beside: Sequence[Collective]
) -> Finding:
    collective = alike[0]
    axes = collective.axes or ()
    gathers = [(target, jax) for target, jax, operations in _gathering() if cause.primitive in operations]
    evidence = [
        ("it is", f"{cause.moved}, sharded as {cause.before}"),
        *(compiled_to(each, f", {types_text(each.result_types)}") for each in alike[:MAX_LISTED]),
    ]
    if beside:
        evidence.append(("with it", f"positions of the elements: {', '.join(each.name for each in beside)}"))
    if gathers:
        evidence.append(("known to gather on", "; ".join(map(", ".join, gathers))))
    # What only the CPU does is no reason to change a program.
    only_here = platform_of(report) == "cpu" and {target for target, _ in gathers} == {"cpu"}
    return finding(
        RULE,
        FindingPlace(str(cause.operation), cause.place, collective.stage, collective.span),
        f"{cause.operation} all-gathers {dimension_of(cause)}, sharded over {join_axes(axes)}"
        + (", on CPUs only" if only_here else ""),
        severity="info" if only_here else "warning",
        confidence="proved",
        subject=f"{cause.operation} {dimension_of(cause)}",
        axes=axes,
        evidence=evidence,
        fixes=_fixes(report, cause),
        saves=at_most(*alike, *beside),
    )


def _fixes(report: Report, cause: CollectiveCause) -> tuple[Fix, ...]:
    if cause.primitive in FUNCTIONS and cause.effect == "own":  # along other dimensions: only XLA gathers this one
        spec = str(cause.before)
        return alternatives(
            f"call it in a shard_map, with {spec} in and out (line {cause.place.line}): it needs nothing of others",
            [in_shard_map(report.program, cause.place, FUNCTIONS[cause.primitive], spec)],
        )
    return advice(IDIOMS.get(cause.primitive, "shard another dimension, or work on each shard in a shard_map"))


@lru_cache(maxsize=1)
def _gathering() -> tuple[tuple[str, str, list[str]], ...]:
    """Platform, JAX, and the operations that were seen to gather their operand: `tools/gathering_ops.py` tries them."""
    text = resources.files(__package__).joinpath("gathering.toml").read_text(encoding="utf-8")
    tried = tomllib.loads(text)
    return tuple((platform, jax, names) for jax, found in tried.items() for platform, names in found.items())


RULE = Rule(
    id="SS15",
    slug="op-gathers-operand",
    severity="warning",
    finds="An operation along a sharded dimension for which the partitioner gathers the full operand.",
    why="Every device receives the full operand, and usually repeats all of the work.",
    proof="A gather of the compiled program, inserted by the partitioner, belongs to the operation. Which operations"
    " gather on which targets was tried with each supported compiler (findings/rules/gathering.toml); `info`"
    " where only CPUs gather.",
    faulty='jnp.cumsum(x, axis=0)  # x is P("x")',
    repaired="""def own(x):  # in a shard_map over "x": each part, and what the parts before it add up to
    sums = jnp.cumsum(x, axis=0)
    totals = lax.all_gather(sums[-1], "x")
    before = jnp.arange(len(totals)) < lax.axis_index("x")
    return sums + jnp.sum(jnp.where(before[:, None], totals, 0), axis=0)""",
    check=check,
    tries="of a Fourier transform, or the largest elements, along other dimensions, the call in a shard_map",
    by_hand="the alternative is another algorithm",
)
