"""Matrix products, and the mesh axes along which all devices compute them from the same values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...correspondence.numbers import equations_by_number, tags_in
from ...correspondence.rows import rows_by_tag
from ...cost.products import Product
from ...report import Report
from ...shardings.recorded import sharding_at
from ...shardings.table import propagated
from .device_values import operands_over
from .jaxpr_flow import flow_of

PRODUCTS = frozenset(("stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution"))


def unused_axes(report: Report, products: Sequence[Product]) -> Iterator[tuple[Product, dict[str, int]]]:
    """The mesh axes, with their sizes, over which nothing that a product takes or gives is sharded.

    In a shard_map, those over which its operands do not vary.
    """
    program = report.program
    stage, flow = propagated(program)
    compiled, jaxpr = program.stage("hlo-spmd"), flow_of(report)
    mesh = next((each for each in program.meshes if each.size == program.partitions > 1), None)
    if stage is None or flow is None or compiled is None or mesh is None:
        return
    numbered = {} if jaxpr is None else equations_by_number(jaxpr.text, program.capture.equations)
    rows = rows_by_tag(flow, stage)
    for product in products:
        tags = [tag for tag in tags_in(compiled, product.instruction.span) if rows.get(tag)]
        row = rows[tags[0]][0] if tags else None
        if row is None or flow.rows[row].name not in PRODUCTS:
            continue
        nodes = [node for node in (*flow.operands(row), *flow.results(row)) if node is not None]
        shardings = [each for node in nodes if (each := sharding_at(flow, node)) is not None]
        used = {axis.name for each in shardings for dim in each.dims for axis in dim.axes}
        if manual := set(flow.rows[row].manual):
            place = numbered.get(tags[0])
            operands = operands_over(jaxpr, place) if jaxpr is not None and place is not None else ()
            used |= {held.axis for value in operands for held in value} if operands else manual
        yield product, {name: size for name, size in mesh.axes if size > 1 and name not in used}
