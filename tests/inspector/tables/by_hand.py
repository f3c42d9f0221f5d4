"""Reports written by hand: each row of a table for a reason that the test says."""

from __future__ import annotations

from typing import Any

from shardscope.inspector.capture.model import Capture
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.pipeline import on_demand
from shardscope.inspector.render.table import Table, plain_text
from shardscope.inspector.report import (
    Collective,
    CollectivePart,
    Finding,
    FindingPlace,
    Report,
    ShardedValue,
    SourcePosition,
    StrategyTotal,
)
from shardscope.inspector.report.cost import FunctionCost
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Frame, Span

FUNCTION_OF_ALL = "step"


def at(*lines: int) -> SourcePosition:
    """A position by the lines of its frames, innermost first, all in one function of one file."""
    return SourcePosition.exact(tuple(Frame("/code/model.py", FUNCTION_OF_ALL, line) for line in lines))


def axes(*names: str) -> tuple[AxisRef, ...]:
    """Whole axes."""
    return tuple(map(AxisRef, names))


def part(module: str = "", size: int = 4, **fields: Any) -> CollectivePart:
    """A part of a combined collective, an array of that many floats."""
    known = {"source": SourcePosition(), "op_name": None} | fields
    return CollectivePart(ArrayType("f32", (size,)), module=tuple(filter(None, module.split("."))), **known)


def collective(module: str = "", **fields: Any) -> Collective:
    """A forward all-reduce over tp that sends 48 bytes once, but for the fields that are given."""
    known: dict[str, Any] = {
        "stage": "hlo", "kind": "all-reduce", "name": "all-reduce.1", "computation": "main", "span": Span(0, 1),
        "axes": axes("tp"), "groups": None, "pairs": (), "operand_types": (), "result_types": (), "bytes_in": 64,
        "bytes_out": 64, "wire_bytes": 48, "executions": 1, "is_async": False, "origin": "user", "direction": "forward",
        "source": SourcePosition(), "module": tuple(filter(None, module.split("."))),
    }  # fmt: skip
    return Collective(**known | fields)


def total(*members: Collective, **fields: Any) -> StrategyTotal:
    """All of one strategy, which sends 48 bytes."""
    known = {"strategy": "tensor parallelism", "kind": "all-reduce", "axes": axes("tp"), "wire_bytes": 48}
    return StrategyTotal(**{**known, "seconds": None, "collectives": members or (collective(),), **fields})


def report(**fields: Any) -> Report:
    """A report of eight devices, of which only these fields are known, and what is asked of analyses."""
    program = Program(fields.pop("capture", Capture()))
    return Report(**{"program": program, "partitions": 8, "on_demand": on_demand(program), **fields})


def texts(table: Table) -> list[list[str]]:
    """The cells' texts, row by row."""
    return [list(map(plain_text, row.cells)) for row in table.rows]


def column(table: Table, title: str) -> list[str]:
    """The texts of one column."""
    number = [each.title for each in table.columns].index(title)
    return [row[number] for row in texts(table)]


def of_step(total: float = 8.0, unknown: tuple[str, ...] = (), **fields: Any) -> FunctionCost:
    """The cost of a step that communication bounds, but for the fields that are given."""
    known = {"flops": 3000, "bytes": 2048, "compute": 1.0, "memory": 2.0, "communication": 4.0, "waiting": 0.5}
    return FunctionCost(**{"chip": "v5p", **known, "total": total, "unknown": unknown, "figures": (), **fields})


def finding(line: int = 7, **fields: Any) -> Finding:
    """A warning about a sum on a line, or on none, but for the fields that are given."""
    place = FindingPlace("a sum", at(line) if line else SourcePosition())
    known = {"rule": "SS01", "slug": "slug", "severity": "warning", "confidence": "likely", "axes": axes("tp")}
    return Finding(**{**known, "message": "Words.", "place": place, **fields})


def sharded(name: str = "w", **fields: Any) -> ShardedValue:
    """An argument that is sharded as requested, but for the fields that are given."""
    known: dict[str, Any] = {
        "stage": "sdy", "role": "argument", "value": "%arg0", "name": name, "span": Span(0, 1), "requested": "P('x')",
        "type": ArrayType("f32", (8,)), "local_type": ArrayType("f32", (2,)), "sharding": None, "spec": "P('x')",
        "agrees": True, "replicated_bytes": 0, "source": SourcePosition(),
    }  # fmt: skip
    return ShardedValue(**known | fields)
