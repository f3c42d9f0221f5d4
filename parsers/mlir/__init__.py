"""MLIR text: StableHLO and Shardy, and what else is around them, as printed, dumped and written by hand."""

from .annotations import Annotations
from .function import Function, function_around
from .locations import CallSiteLoc, FileLoc, FusedLoc, Location, NameLoc, UnknownLoc, frames, names
from .module import MlirModule, parse_module
from .operation import Block, Operation
from .parameters import Parameter
from .sdy import DimensionSharding, Origin, Origins, PropagationStep, Sharding, ShardingRule, ValueRef
from .types import MlirType, OtherType, TensorType, parse_type
