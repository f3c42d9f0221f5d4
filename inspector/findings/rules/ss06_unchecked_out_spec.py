"""SS06: a value that leaves an unchecked shard_map as shared, and is not."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Divergence, Finding, FindingPlace, Report
from ..rule import Rule, advice, finding
from ..support.jaxpr_flow import Flow, flow_of


def check(report: Report) -> Iterator[Finding]:
    """Each value that was seen to differ along an axis that its out_spec leaves out."""
    flow = flow_of(report)
    for divergence in report.divergences:
        if flow is not None and divergence.declared == "out_specs":
            yield _found(flow, divergence)


def _found(flow: Flow, differs: Divergence) -> Finding:
    place = flow.by_id[differs.equation]
    mapped = flow.shard_map_around(place)
    between = " and ".join(map(str, differs.devices))
    return finding(
        RULE,
        FindingPlace(f"{differs.value} = {differs.primitive}", differs.source, "jaxpr", place.span),
        f"{differs.value} leaves through an out_spec without {differs.axis}, and differs along {differs.axis}",
        confidence="proved",
        axes=(differs.axis,),
        related=() if mapped is None else (flow.place(mapped),),
        evidence=(("live", f"bits differ between devices {between}"),),
        fixes=advice(
            f"name {differs.axis!r} in the out_spec, or reduce the value over {differs.axis!r} before it leaves;"
            " check_vma=True finds such specs when it traces"
        ),
    )


RULE = Rule(
    id="SS06",
    slug="unchecked-out-spec",
    severity="error",
    finds="A value that leaves a shard_map with check_vma=False through an out_spec without an axis along which it"
    " differs.",
    why="The caller holds one array whose copies differ, and which copy is read is chance.",
    proof="A run: the bits differ between two devices along the axis.",
    faulty='jax.shard_map(lambda x: jnp.sum(x), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)',
    repaired='jax.shard_map(lambda x: lax.psum(jnp.sum(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())',
    check=check,
    by_hand="whether to reduce or to name the axis is meant, the program does not say; with the check on, it does not"
    " trace, and `shardscope run` tries these edits",
)
