"""MLIR text: StableHLO and Shardy, and what else is around them, as printed, dumped and written by hand."""

from .annotations import Annotations
from .function import Function, function_around
from .locations import CallSiteLoc, FileLoc, FusedLoc, Location, NameLoc, UnknownLoc, frames, names
from .module import MlirModule, parse_module
from .operation import Block, Operation, Region
from .parameters import Argument, Result
from .sdy import (
    DimensionSharding,
    Exchange,
    Origin,
    Origins,
    PropagationEdge,
    PropagationStep,
    Sharding,
    ShardingRule,
    ValueRef,
)
from .types import FunctionType, MlirType, OtherType, TensorType, TokenType, TupleType, parse_type

__all__ = [
    "Annotations",
    "Argument",
    "Block",
    "CallSiteLoc",
    "DimensionSharding",
    "Exchange",
    "FileLoc",
    "Function",
    "FunctionType",
    "FusedLoc",
    "Location",
    "MlirModule",
    "MlirType",
    "NameLoc",
    "Operation",
    "Origin",
    "Origins",
    "OtherType",
    "PropagationEdge",
    "PropagationStep",
    "Region",
    "Result",
    "Sharding",
    "ShardingRule",
    "TensorType",
    "TokenType",
    "TupleType",
    "UnknownLoc",
    "ValueRef",
    "frames",
    "function_around",
    "names",
    "parse_module",
    "parse_type",
]
