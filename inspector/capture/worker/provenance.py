"""Shardy's propagation, run again with the origin of every sharding recorded. A process of its own: it may crash.

XLA runs Shardy while it compiles, but does not tell where a sharding came from; asked to (`shardy-verbose`), it crashes
on a shard_map in a loop. jaxlib carries the same passes for MLIR, which run here without devices and without importing
jax: on the module that XLA propagated, where it dumped that (`dumped.py`), else on the StableHLO. What has to be done
for them, beyond naming the passes:

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

import os
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..protocol.workspace import without_constants
from . import modules
from .channel import die_with_parent
from .dumped import Dump, with_records

IDENTITY = "shardscope.identity"
STANDS_FOR = "shardscope.stands_for"

ASKED = re.compile(r"\{(?!\?\})|=")
"""In a sharding, a dimension that is closed or has axes, or other axes that are named."""

STAND_INS = {1: "stablehlo.convert", 2: "stablehlo.add"}
"""Elementwise operations by how many operands they have: all that a sharding rule depends on."""

ORIGINS_OF = "sdy.sharding_origins"
EDGES_OF = "sdy.propagation_edges"

RECORDING = {"steps": "debug-propagation-edge-sharding=true", "origins": "debug-sharding-origins=true"}
"""Records that propagation can write, each with the options for it."""


def main() -> None:
    """Wait for a job on standard input, then read its files and write another.

    The lines of a job are the path of the StableHLO, that of the result, what to record (`origins` and `steps`, `steps`
    alone, or nothing), and, where XLA has dumped its own propagation, the HLO behind it and the modules before and
    after. No job, no work.
    """
    die_with_parent()
    job = sys.stdin.read()
    if job:
        source, destination, wish, *dumped = job.split("\n")
        Path(destination).write_bytes(propagated(Path(source), wish, map(Path, dumped)))
    os._exit(0)  # taking an interpreter with jaxlib apart takes longer than many a job


def propagated(source: Path, wish: str, dumped: Iterable[Path]) -> bytes:
    """The module in a file after propagation, as XLA had it in the files that it dumped, if there are any."""
    files = [without_constants(each.read_bytes()) for each in dumped]
    return propagate(source.read_bytes(), wish, Dump(*files) if files else None)


def propagate(stablehlo: bytes, wish: str, dump: Dump | None = None) -> bytes:
    """The module after propagation, with source locations."""
    with modules.context(), ir.Location.unknown():
        module = ir.Module.parse(stablehlo)
        if dump is None:
            _propagate(module, wish)
        else:
            module = with_records(dump, module, wish, _propagate)
        text: bytes = module.operation.get_asm(enable_debug_info=True, assume_verified=True, binary=True)
        return text


def _propagate(module: ir.Module, wish: str) -> None:
    recorded = " ".join(option for name, option in RECORDING.items() if name in wish)
    arguments = modules.attributes(modules.main_of(module), "arg_attrs")
    own = [str(each.get("sdy.sharding", "")) for each in arguments]
    modules.inline_calls(module)
    stand_in(module)
    modules.run(
        module,
        *((modules.pass_of("chlo-legalize-to-stablehlo"),) if modules.find(module.operation, {"chlo.top_k"}) else ()),
        modules.pass_of("symbol-dce"),
        modules.pass_of("sdy-lift-inlined-meshes"),
        modules.pass_of("sdy-constant-or-scalar-splitter"),
        modules.pass_of("symbol-dce"),
        modules.pass_of("sdy-manual-axes-cleanup"),
    )
    _separate_operands(module)
    modules.run(
        module,
        modules.pass_of("sdy-add-data-flow-edges"),
        modules.pass_of("sdy-apply-sharding-constraints", recorded),
        modules.pass_of("sdy-sharding-group-import"),
        modules.pass_of("sdy-user-priority-propagate", f"{recorded} keep-sharding-rules=true"),
    )
    _keep_records_of_edges(module)
    modules.run(
        module,
        modules.pass_of("sdy-constant-or-scalar-merger"),
        modules.pass_of("sdy-sink-data-flow-edges"),
        modules.pass_of("sdy-update-non-divisible-input-output-shardings"),
        *modules.pass_if_there("sdy-remove-sub-axes-in-input-output-shardings"),
        modules.pass_of("sdy-close-shardings"),
    )
    _join_operands(module)
    _put_back(module)
    _keep_own_origins(module, own)


def stand_in(module: ir.Module) -> None:
    """Put an elementwise operation of StableHLO in the place of each elementwise one of CHLO.

    And of each constraint that asks for nothing, as XLA puts in front of what loops use: it would pass for an origin.
    """
    for operation in modules.find(module.operation, lambda name: name.startswith("chlo.")):
        shapes = {tuple(ir.RankedTensorType(value.type).shape) for value in (*operation.operands, *operation.results)}
        name = STAND_INS.get(len(operation.operands))
        if name and len(operation.results) == 1 and not len(operation.regions) and len(shapes) == 1:
            _replace(operation, name, {STANDS_FOR: ir.StringAttr.get(operation.name)})
    for operation in modules.find(module.operation, {"sdy.sharding_constraint"}):
        if not ASKED.search(str(operation.attributes["sharding"])):
            _replace(operation, STAND_INS[1], {STANDS_FOR: ir.StringAttr.get(operation.name)})


def _put_back(module: ir.Module) -> None:
    for stand_in in modules.find(module.operation, set(STAND_INS.values())):
        if STANDS_FOR in stand_in.attributes:
            name = ir.StringAttr(stand_in.attributes[STANDS_FOR]).value
            del stand_in.attributes[STANDS_FOR]
            _replace(stand_in, name, _of_constraint(stand_in) if name.startswith("sdy.") else {})


def _of_constraint(stand_in: ir.Operation) -> dict[str, ir.Attribute]:
    """Return the sharding of a constraint, which has it as its own where other operations have it for each result."""
    own = {"sharding": "sdy.sharding", ORIGINS_OF: ORIGINS_OF}
    found = {name: stand_in.attributes[key] for name, key in own.items() if key in stand_in.attributes}
    for key in own.values():
        if key in stand_in.attributes:
            del stand_in.attributes[key]
    return {
        name: sdy.TensorShardingPerValueAttr(each).shardings[0] if name == "sharding" else each[0]
        for name, each in found.items()
    }


def _replace(operation: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    other = ir.Operation.create(
        name,
        results=[result.type for result in operation.results],
        operands=list(operation.operands),
        attributes=modules.attributes_of(operation) | attributes,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for old, new in zip(operation.results, other.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _separate_operands(module: ir.Module) -> None:
    for computation in modules.find(module.operation, {"sdy.manual_computation"}):
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
        return not modules.is_function(value.owner.owner)
    return len(value.owner.regions) > 0 or value.owner.name == "stablehlo.optimization_barrier"


def _join_operands(module: ir.Module) -> None:
    for identity in modules.find(module.operation, {"stablehlo.convert"}):
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
    for edge in modules.find(module.operation, {"sdy.data_flow_edge"}):
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
    main = modules.main_of(module)
    changed = modules.attributes(main, "arg_attrs")
    for named, before in zip(changed, chain(own, repeat("")), strict=False):
        if ORIGINS_OF in named:
            origins = {each.name: each.attr for each in named[ORIGINS_OF]}
            mine = {axis for axis in origins if f'"{axis.partition(":")[0]}"' in before}
            kept = origins | {axis: ir.StringAttr.get("self") for axis in mine}
            named[ORIGINS_OF] = ir.DictAttr.get(kept)
    if changed:
        modules.set_attributes(main, "arg_attrs", changed)
