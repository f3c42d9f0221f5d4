"""Shardy's propagation, run again with the origin of every sharding recorded. A process of its own: it may crash.

XLA runs Shardy while it compiles, but does not tell where a sharding came from; asked to (`shardy-verbose`), it crashes
on a shard_map in a loop. jaxlib carries the same passes for MLIR, which run here on the StableHLO text without devices
and without importing jax. What has to be done for them, beyond naming the passes:

- calls are inlined, as XLA does on HLO before it runs Shardy. MLIR's own inliner leaves those inside loops;
- the operand of a `sdy.manual_computation` (a shard_map) must not be what a loop carries, or what comes out of a loop,
  a branch or a barrier: Shardy keeps the sharding of such a value on a data-flow edge, looks for its origin in another
  place, and crashes (Shardy of JAX 0.10 and 0.12). An identity is put in between and taken away afterwards;
- elementwise CHLO operations, which have no sharding rule, have stand-ins while Shardy runs: XLA makes elementwise
  StableHLO of them before it does. `chlo.top_k` becomes StableHLO;
- MLIR's verifier is off: it refuses the edges that Shardy itself records on loops with several sources (JAX 0.10).

Sources: shardy/dialect/sdy/transforms/propagation/propagation_pipeline.cc and debugging/source_sharding.cc.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo
from jaxlib.mlir.passmanager import PassManager

from .channel import die_with_parent

IDENTITY = "shardscope.identity"
STANDS_FOR = "shardscope.stands_for"

STAND_INS = {1: "stablehlo.convert", 2: "stablehlo.add"}
"""Elementwise operations by how many operands they have: all that a sharding rule depends on."""

ORIGINS_OF = "sdy.sharding_origins"
EDGES_OF = "sdy.propagation_edges"

EDGES = "debug-propagation-edge-sharding=true"
ORIGINS = "debug-sharding-origins=true"


def main() -> None:
    """Wait for a job on standard input, then read one file and write the other.

    The lines of a job are the two paths, and `origins` if these are wanted. No job, no work.
    """
    die_with_parent()
    source, _, rest = sys.stdin.read().partition("\n")
    destination, _, wish = rest.partition("\n")
    if source:
        Path(destination).write_bytes(propagate(Path(source).read_bytes(), with_origins=bool(wish)))


def propagate(stablehlo_text: bytes, with_origins: bool) -> bytes:
    """The module after propagation, with source locations."""
    recorded = f"{EDGES} {ORIGINS}" if with_origins else EDGES
    with _context(), ir.Location.unknown():
        module = ir.Module.parse(stablehlo_text)
        own = [str(each["sdy.sharding"]) if "sdy.sharding" in each else "" for each in _argument_attributes(module)]
        _inline_calls(module)
        _stand_in(module)
        _run(
            module,
            *((_pass("chlo-legalize-to-stablehlo"),) if _find(module.operation, {"chlo.top_k"}) else ()),
            _pass("symbol-dce"),
            _pass("sdy-lift-inlined-meshes"),
            _pass("sdy-constant-or-scalar-splitter"),
            _pass("symbol-dce"),
            _pass("sdy-manual-axes-cleanup"),
        )
        _separate_operands(module)
        _run(
            module,
            _pass("sdy-add-data-flow-edges"),
            _pass("sdy-apply-sharding-constraints", recorded),
            _pass("sdy-sharding-group-import"),
            _pass("sdy-user-priority-propagate", f"{recorded} keep-sharding-rules=true"),
        )
        _keep_records_of_edges(module)
        _run(
            module,
            _pass("sdy-constant-or-scalar-merger"),
            _pass("sdy-sink-data-flow-edges"),
            _pass("sdy-update-non-divisible-input-output-shardings"),
            *_pass_if_there("sdy-remove-sub-axes-in-input-output-shardings"),
            _pass("sdy-close-shardings"),
        )
        _join_operands(module)
        _put_back(module)
        _keep_own_origins(module, own)
        text: bytes = module.operation.get_asm(enable_debug_info=True, assume_verified=True, binary=True)
        return text


def _context() -> ir.Context:
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, stablehlo, chlo):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    stablehlo.register_stablehlo_passes()
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    return context


def _run(module: ir.Module, *passes: str) -> None:
    manager = PassManager.parse(f"builtin.module({','.join(passes)})")
    manager.enable_verifier(False)
    manager.run(module.operation)


def _pass(name: str, options: str = "") -> str:
    """How this jaxlib spells a pass: some moved from functions to modules, some had no options at first."""
    plain = name
    full = f"{name}{{{options}}}" if options else name
    for spelling in (full, f"func.func({full})", plain, f"func.func({plain})"):
        try:
            PassManager.parse(f"builtin.module({spelling})")
        except Exception:  # MLIRError or ValueError, as the version has it
            continue
        return spelling
    raise ValueError(f"this jaxlib has no pass {name}")


def _pass_if_there(name: str) -> tuple[str, ...]:
    """A pass that the first jaxlibs with Shardy do without."""
    try:
        return (_pass(name),)
    except ValueError:
        return ()


def _inline_calls(module: ir.Module) -> None:
    """Put the body of each called function where it is called; the functions that stay behind are dead."""
    functions = {op.attributes["sym_name"].value: op.operation for op in module.body.operations if _is_function(op)}
    calls = _find(functions["main"], {"func.call"})
    while calls:
        call = calls.pop()
        callee = functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value].clone()
        calls += _find(callee, {"func.call"})
        body = callee.regions[0].blocks[0]
        for parameter, argument in zip(list(body.arguments), list(call.operands), strict=True):
            parameter.replace_all_uses_with(argument)
        *operations, terminator = list(body.operations)
        for operation in operations:
            operation.move_before(call)
        for result, value in zip(list(call.results), list(terminator.operands), strict=True):
            result.replace_all_uses_with(value)
        call.erase()
        callee.erase()


def _stand_in(module: ir.Module) -> None:
    """Put an elementwise operation of StableHLO in the place of each elementwise one of CHLO."""
    for operation in _find(module.operation, lambda name: name.startswith("chlo.")):
        shapes = {tuple(ir.RankedTensorType(value.type).shape) for value in (*operation.operands, *operation.results)}
        name = STAND_INS.get(len(operation.operands))
        if name and len(operation.results) == 1 and not len(operation.regions) and len(shapes) == 1:
            _replace(operation, name, {STANDS_FOR: ir.StringAttr.get(operation.name)})


def _put_back(module: ir.Module) -> None:
    for stand_in in _find(module.operation, set(STAND_INS.values())):
        if STANDS_FOR in stand_in.attributes:
            name = ir.StringAttr(stand_in.attributes[STANDS_FOR]).value
            del stand_in.attributes[STANDS_FOR]
            _replace(stand_in, name, {})


def _replace(operation: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    """The same operation under another name, with more attributes."""
    names = [each if isinstance(each, str) else each.name for each in operation.attributes]  # as the version has it
    other = ir.Operation.create(
        name,
        results=[result.type for result in operation.results],
        operands=list(operation.operands),
        attributes={name: operation.attributes[name] for name in names} | attributes,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for old, new in zip(operation.results, other.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _separate_operands(module: ir.Module) -> None:
    for computation in _find(module.operation, {"sdy.manual_computation"}):
        for index, operand in enumerate(list(computation.operands)):
            if _has_data_flow_edge(operand):
                identity = ir.Operation.create(
                    "stablehlo.convert",
                    results=[operand.type],
                    operands=[operand],
                    loc=computation.location,
                    ip=ir.InsertionPoint(computation),
                )
                identity.attributes[IDENTITY] = ir.UnitAttr.get()
                computation.operands[index] = identity.results[0]


def _has_data_flow_edge(value: Any) -> bool:
    if isinstance(value.owner, ir.Block):
        return not _is_function(value.owner.owner)
    return len(value.owner.regions) > 0 or value.owner.name == "stablehlo.optimization_barrier"


def _join_operands(module: ir.Module) -> None:
    for identity in _find(module.operation, {"stablehlo.convert"}):
        if IDENTITY in identity.attributes:
            identity.results[0].replace_all_uses_with(identity.operands[0])
            identity.erase()


def _keep_records_of_edges(module: ir.Module) -> None:
    """Put what was recorded on data-flow edges, which are about to go, on the operations that they belong to.

    Origins go where Shardy puts them, an array with one dictionary per result or block argument; edges to a dictionary
    by the number of the result or argument. Shardy's own way (`sink-debug-…=true`) will not do: depending on the
    version it leaves out empty entries, so that nobody knows whose the others are, or prints them as text that it
    cannot read.
    """
    origins: dict[tuple[Any, str], list[ir.Attribute]] = {}
    edges: dict[tuple[Any, str], dict[str, ir.Attribute]] = {}
    for edge in _find(module.operation, {"sdy.data_flow_edge"}):
        value = edge.operands[0]
        if isinstance(value.owner, ir.Block):
            side, owner, siblings = "block_arg", value.owner.owner.operation, value.owner.arguments
            index = ir.BlockArgument(value).arg_number
        else:
            side, owner, siblings = "result", value.owner.operation, value.owner.results
            index = ir.OpResult(value).result_number
        if ORIGINS_OF in edge.attributes:
            entries = origins.setdefault((owner, side), [ir.DictAttr.get({})] * len(siblings))
            entries[index] = edge.attributes[ORIGINS_OF]
        if EDGES_OF in edge.attributes:
            edges.setdefault((owner, side), {})[str(index)] = edge.attributes[EDGES_OF]
    for (owner, side), entries in origins.items():
        owner.attributes[f"sdy.{side}_sharding_origins"] = ir.ArrayAttr.get(entries)
    for (owner, side), by_index in edges.items():
        owner.attributes[f"shardscope.{side}_propagation_edges"] = ir.DictAttr.get(by_index)


def _keep_own_origins(module: ir.Module, own: Sequence[str]) -> None:
    """Let axes that arguments had from the beginning be their own: what a shard_map wants of them is recorded over it.

    `own` are the shardings of the arguments before.
    """
    changed = []
    for attributes, before in zip(_argument_attributes(module), chain(own, repeat("")), strict=False):
        named = {each.name: each.attr for each in attributes}
        if ORIGINS_OF in named:
            origins = {each.name: each.attr for each in named[ORIGINS_OF]}
            mine = {axis for axis in origins if f'"{axis.partition(":")[0]}"' in before}
            kept = origins | {axis: ir.StringAttr.get("self") for axis in mine}
            named[ORIGINS_OF] = ir.DictAttr.get(kept)
        changed.append(ir.DictAttr.get(named))
    if changed:
        _main(module).attributes["arg_attrs"] = ir.ArrayAttr.get(changed)


def _argument_attributes(module: ir.Module) -> list[Any]:
    main = _main(module)
    return list(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []


def _main(module: ir.Module) -> ir.Operation:
    functions = [op for op in module.body.operations if _is_function(op)]
    return next(op.operation for op in functions if op.attributes["sym_name"].value == "main")


def _find(root: ir.Operation, names: Collection[str] | Callable[[str], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    root.walk(_collector(found, names if callable(names) else names.__contains__))
    return found


def _collector(found: list[ir.Operation], is_wanted: Callable[[str], bool]) -> Callable[[Any], Any]:
    def visit(operation: Any) -> Any:
        if is_wanted(operation.name):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    return visit


def _is_function(operation: Any) -> bool:
    return bool(operation.operation.name == "func.func")
