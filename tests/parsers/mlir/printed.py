"""What we have read, in the words of MLIR's printer, so that it can be compared with what that prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shardscope.parsers.mlir import (
    Annotations,
    CallSiteLoc,
    DimensionSharding,
    FileLoc,
    FusedLoc,
    Location,
    MlirModule,
    NameLoc,
    Operation,
    Origins,
    Parameter,
    PropagationStep,
    Sharding,
    ShardingRule,
    UnknownLoc,
)
from shardscope.parsers.mlir.lists import UNIT, quote
from shardscope.parsers.mlir.sdy import mesh_text
from shardscope.parsers.mlir.text import MlirText
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from shardscope.parsers.sharding_syntax.replica_groups import ListGroups, MeshGroups

Attributes = dict[str, Any]


def location(place: Location) -> str:
    """As it is written between the parentheses of `loc(…)`."""
    match place:
        case NameLoc(name, None | UnknownLoc()):
            return quote(name)
        case NameLoc(name, child) if child is not None:
            return f"{quote(name)}({location(child)})"
        case FileLoc(file, line, column, end_line, end_column):
            if (line, column) == (end_line, end_column):
                end = ""
            else:
                end = f" to {end_line if end_line != line else ''}:{end_column}"
            return f"{quote(file)}:{line}:{column}{end}"
        case CallSiteLoc(callee, callers):
            *before, last = map(location, (callee, *callers))
            return "".join(f"callsite({each} at " for each in before) + last + ")" * len(before)
        case FusedLoc(parts, metadata):
            kind = "" if metadata is None else f"<{metadata}>"
            return f"fused{kind}[{', '.join(map(location, parts))}]"
    return "unknown"


def dictionary(entries: Mapping[str, str]) -> str:
    """Attributes in braces, in MLIR's order."""
    each = (_key(key) if entries[key] == UNIT else f"{_key(key)} = {entries[key]}" for key in sorted(entries))
    return f"{{{', '.join(each)}}}"


def annotations(found: Annotations, of_operation: bool) -> Iterable[tuple[str, str]]:
    """What of the attributes was interpreted; an argument has one sharding, an operation one for each result."""
    if found.shardings is not None:
        one_each = _per_value(found.shardings) if of_operation else f"#sdy.sharding{found.sharding}"
        yield "sdy.sharding", one_each
    if found.gspmd_sharding is not None:
        # What it means is compared in `test_gspmd.py`.
        yield "mhlo.sharding", found.attributes["mhlo.sharding"]
    if found.target is not None:
        yield "sharding" if "sharding" in found.attributes else "out_sharding", f"#sdy.sharding{found.target}"
    for key, shardings in (("in_shardings", found.in_shardings), ("out_shardings", found.out_shardings)):
        if shardings is not None:
            yield key, _per_value(shardings)
    if found.manual_axes is not None:
        yield "manual_axes", f"#sdy<manual_axes{{{', '.join(map(quote, found.manual_axes))}}}>"
    if found.reduction_axes is not None:
        yield "reduction_axes", f"#sdy<axis_ref_list{_axes(found.reduction_axes)}>"
    if found.axes_of_dims is not None:
        key = next(key for key in found.attributes if key.endswith("ing_axes") or key == "reduce_scatter_axes")
        yield key, f"#sdy<list_of_axis_ref_lists[{', '.join(map(_axes, found.axes_of_dims))}]>"
    if found.exchanges is not None:
        parts = (f"{_axes(each.axes)}: {each.source}->{each.target}" for each in found.exchanges)
        yield "params", f"#sdy<all_to_all_param_list[{', '.join(parts)}]>"
    if found.sharding_rule is not None:
        yield "sdy.sharding_rule", sharding_rule(found.sharding_rule)
    if found.origin_name is not None:
        yield "sdy.sharding_origin_name", quote(found.origin_name)
    if found.origins is not None:
        key = "sdy.sharding_origins" if "sdy.sharding_origins" in found.attributes else "sdy.result_sharding_origins"
        yield key, _several(_origins, found.origins, found.attributes[key])
    for key, each_origins in (("sdy.block_arg_sharding_origins", found.block_argument_origins),):
        if each_origins is not None:
            yield key, _several(_origins, each_origins, found.attributes[key])
    if found.propagation is not None:
        yield "sdy.propagation_edges", propagation(found.propagation)
    for key, edges in (
        ("sdy.result_propagation_edges", found.result_propagation),
        ("sdy.block_arg_propagation_edges", found.block_argument_propagation),
    ):
        if edges is not None:
            yield key, _several(propagation, edges, found.attributes[key])


def interpreted(module: MlirModule, operation: Operation) -> Attributes:
    """The attributes of an operation that we give a meaning to."""
    found: Attributes = dict(annotations(operation.annotations, of_operation=True))
    if operation.name == "sdy.mesh":
        mesh = module.meshes[operation.attributes["sym_name"].strip('@"')]
        found["mesh"] = f"#sdy.mesh{mesh_text(mesh)}"
    match operation.replica_groups:
        case ListGroups(groups):
            found["replica_groups"] = [list(group) for group in groups]
        case MeshGroups(mesh, axes):
            found["replica_groups"] = _mesh_groups(mesh, axes, operation.attributes["replica_groups"])
    if operation.source_target_pairs is not None:
        found["source_target_pairs"] = [list(pair) for pair in operation.source_target_pairs]
    if operation.channel is not None:
        found["channel_handle"] = operation.channel
    return found


def parameters(key: str, listed: Iterable[Parameter], text: MlirText) -> Attributes:
    """The attributes of a function's arguments or results, if there are any."""
    each = []
    for parameter in listed:
        kept = {key: text.resolved(value) for key, value in parameter.attributes.items()}
        each.append(dictionary(kept | dict(annotations(parameter.annotations, of_operation=False))))
    return {key: f"[{', '.join(each)}]"} if set(each) - {"{}"} else {}


def sharding_rule(rule: ShardingRule) -> str:
    def side(tensors: tuple[tuple[tuple[str, ...], ...], ...]) -> str:
        return ", ".join(f"[{', '.join(map(_joined, tensor))}]" for tensor in tensors)

    sizes = f" {{{', '.join(f'{name}={size}' for name, size in rule.sizes)}}}" if rule.sizes else ""
    kinds = "".join(
        f" {kind}={{{', '.join(factors)}}}"
        for kind in ("reduction", "need_replication", "permutation", "blocked_propagation")
        if (factors := getattr(rule, kind))
    )
    custom = ", custom" if rule.is_custom else ""
    return f"#sdy.op_sharding_rule<({side(rule.operands)})->({side(rule.results)}){sizes}{kinds}{custom}>"


def propagation(steps: Iterable[PropagationStep]) -> str:
    def values(refs: Iterable[Any]) -> str:
        return ", ".join(f"{ref.kind}-{ref.index}" for ref in refs)

    written = []
    for step in steps:
        edges = (f"{{{_axis(edge.axis)} = {values([edge.source])} -> [{values(edge.targets)}]}}" for edge in step.edges)
        written.append(f"{{step-{step.index} = [{', '.join(edges)}]}}")
    return f"#sdy.propagation_edges<[{', '.join(written)}]>"


def _several(printed: Callable[[Any], str], values: Iterable[Any], as_written: str) -> str:
    each = ", ".join(map(printed, values))
    return f"[{each}]" if as_written.startswith("[") else each


def _origins(origins: Origins) -> str:
    def spelled(origin: Any) -> str:
        name = "" if origin.name is None else origin.name
        if origin.index is None:
            return name or "self"
        return f"{name}_{origin.kind}: {origin.index}" if name else f"{origin.kind}: {origin.index}"

    return dictionary({str(axis): quote(spelled(origin)) for axis, origin in origins})


def _mesh_groups(mesh: MeshSyntax, axes: Iterable[AxisRef], as_written: str) -> str:
    def axis_ref(axis: AxisRef) -> str:
        sub = f", sub_axis_info = ({axis.sub[0]}){axis.sub[1]}" if axis.sub else ""
        return f"#stablehlo.axis_ref<name = {quote(axis.name)}{sub}>"

    symbol = re.search(r"mesh = (@[^,]+),", as_written)
    written = symbol[1] if symbol else _mesh(mesh)
    return f"#stablehlo.replica_group_mesh_axes<mesh = {written}, axes = [{', '.join(map(axis_ref, axes))}]>"


def _mesh(mesh: MeshSyntax) -> str:
    axes = ", ".join(f"<name = {quote(name)}, size = {size}>" for name, size in mesh.axes)
    ids = mesh.device_ids
    devices = "" if ids is None else f", device_ids=dense<{list(ids)}> : tensor<{len(ids)}xi64>"
    return f"#stablehlo.mesh<axes=[{axes}]{devices}>"


def _per_value(shardings: Iterable[Sharding]) -> str:
    return f"#sdy.sharding_per_value<[{', '.join(map(str, shardings))}]>"


def _axis(axis: AxisRef) -> str:
    return str(DimensionSharding((axis,)))[1:-1]


def _axes(axes: Iterable[AxisRef]) -> str:
    return str(DimensionSharding(tuple(axes)))


def _joined(factors: tuple[str, ...]) -> str:
    return "".join(factors)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][\w$.]*", key) else quote(key)
