"""Records at the values and operations of a propagated module: shardings, origins of axes, names and lines."""

from __future__ import annotations

from collections.abc import Mapping

from ...parsers.errors import ParseError, readable
from ...parsers.mlir import Operation, Origins, Sharding, UnknownLoc, names
from ...parsers.mlir.lists import unquote
from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.mlir.sdy_parser import parse_origins
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ..catalog.spellings import SDY_REQUESTS
from ..dataflow.mlir import Dataflow, Node
from ..ir.array_sharding import ArraySharding
from ..ir.sharding_spellings import from_sdy
from ..report import NamedOperation, SourcePosition

_BY_ATTRIBUTE = SDY_REQUESTS | {"sdy.manual_computation"}


def sharding_at(flow: Dataflow, node: Node) -> Sharding | None:
    """The sharding of a value after propagation; None where nothing is said, which means replicated."""
    if node in flow.differing:
        return flow.differing[node]
    try:
        match node.kind:
            case "argument":
                arguments = flow.function.arguments
                return arguments[node.number].annotations.sharding if node.number < len(arguments) else None
            case "output":
                results = flow.function.results
                return results[node.number].annotations.sharding if node.number < len(results) else None
            case "block":
                listed = flow.operation(node.row).annotations.in_shardings or ()
            case "result":
                listed = shardings_at(flow, node.row)
    except ParseError:
        return None
    return listed[node.number] if node.number < len(listed) else None


def shardings_at(flow: Dataflow, row: int) -> tuple[Sharding, ...]:
    """The shardings of an operation's results; constraints and shard_maps have them in attributes of their own."""
    found = flow.rows[row]
    if flow.differing and len(found.results) == 1 and (node := Node("result", row, 0)) in flow.differing:
        return (flow.differing[node],)
    if found.shardings is not None or found.name not in _BY_ATTRIBUTE:
        return found.shardings or ()
    return flow.noted(("shardings", row), lambda: shardings_of(flow.operation(row)))


def shardings_of(operation: Operation) -> tuple[Sharding, ...]:
    """The same of an operation that was found in another way than by its row."""
    try:
        annotations = operation.annotations
        if annotations.shardings is not None or operation.name not in _BY_ATTRIBUTE:
            return annotations.shardings or ()
        if operation.name == "sdy.manual_computation":
            return annotations.out_shardings or ()
        return () if annotations.target is None else (annotations.target,)
    except ParseError:
        return ()


def array_sharding(
    flow: Dataflow, sharding: Sharding | None, manual: tuple[str, ...], rank: int
) -> ArraySharding | None:
    """A sharding where it stands; a value of which nothing is said is replicated. None where no mesh is known."""
    meshes = flow.module.meshes
    mesh = next((mesh for mesh in meshes.values() if mesh.axes), None)
    axes = tuple(map(AxisRef, manual))
    try:
        if sharding is not None and (mesh is None or _has_axes(sharding.mesh, meshes)):
            used = {axis.name for dim in sharding.dims for axis in dim.axes}
            return from_sdy(sharding, meshes, tuple(axis for axis in axes if axis.name not in used))
        if mesh is None:
            return None
        known = {name for name, _ in mesh.axes}
        # Over a mesh without axes a dimension is left open, or replicated.
        dims = (DimensionSharding(()),) * rank if sharding is None else sharding.dims
        return ArraySharding(mesh, dims, manual=tuple(axis for axis in axes if axis.name in known))
    except ValueError:
        return None


def _has_axes(mesh: str | MeshSyntax, meshes: Mapping[str, MeshSyntax]) -> bool:
    found = meshes.get(mesh) if isinstance(mesh, str) else mesh
    return found is not None and bool(found.axes)


def origins_at(flow: Dataflow, node: Node) -> Origins:
    """Shardy's origins of a value's axes."""
    try:
        match node.kind:
            case "argument":
                return _one(flow.function.arguments[node.number].attributes)
            case "output":
                return _one(flow.function.results[node.number].attributes)
            case "block" if flow.rows[node.row].name.endswith("manual_computation"):
                listed = flow.operation(node.row).annotations.block_argument_origins or ()
            case "block" | "result":
                listed = flow.records.origins(flow.rows[node.row])
    except ParseError:
        return ()
    if (given := given_to_added(flow, node)) is not None:
        return origins_at(flow, given)
    return listed[node.number] if node.number < len(listed) else ()


def given_to_added(flow: Dataflow, node: Node) -> Node | None:
    """The operand of a reshard that XLA put in front of a shard_map after propagation; None for other values."""
    if node.kind != "result" or (row := flow.rows[node.row]).name != "sdy.reshard":
        return None
    is_recorded = origin_name(flow, node.row) is not None or flow.records.has(row, b"sharding_origins")
    return None if is_recorded else next(iter(flow.operands(node.row)), None)


def origin_name(flow: Dataflow, row: int) -> str | None:
    """The name by which origins refer to a constraint or a shard_map."""
    return flow.noted(("name", row), lambda: readable(lambda: flow.operation(row).annotations.origin_name))


def _one(attributes: Mapping[str, str]) -> Origins:
    written = attributes.get("sdy.sharding_origins")
    return () if written is None else parse_origins(written)


class Places:
    """The names in a dataflow."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow

    def argument(self, number: int) -> str:
        """The path of an argument in the pytree, `params[0]['w1']`; its name in the text where there is no path."""
        arguments = self.flow.function.arguments
        if number >= len(arguments):
            # Of broken texts not all accounts agree.
            return f"argument {number}"
        argument = arguments[number]
        found = names(readable(lambda: argument.location) or UnknownLoc())
        return found[0] if found else argument.name

    def output(self, number: int) -> str:
        """The path of a result, `result[1]`."""
        results = self.flow.function.results
        if number >= len(results):
            return f"result {number}"
        result = results[number]
        written = (readable(lambda: result.attributes) or {}).get("jax.result_info", "")
        return (unquote(written) if written.startswith('"') else "") or f"result {number}"

    def operation(self, row: int) -> tuple[NamedOperation, SourcePosition]:
        """An operation, and its line."""
        found = self.flow.rows[row]
        name, place = self.at(found.location)
        return NamedOperation(name, found.name.rpartition(".")[2]), place

    def at(self, location: str | None) -> tuple[str, SourcePosition]:
        """The name in a location, without the path of transformations, and its line."""
        found, stack = self.flow.located(location)
        return found[0].rpartition("/")[2].rstrip(":") if found else "", SourcePosition.exact(stack)
