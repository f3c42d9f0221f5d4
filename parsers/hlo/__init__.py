"""HLO text: modules as XLA prints and dumps them, and as people write them."""

from ..pieces import Piece
from .call import Operand
from .computation import Computation
from .instruction import Instruction
from .metadata import Metadata
from .module import HloModule, parse_module
from .pieces import pieces
from .scan import Rows
from .types import ArrayShape, BufferShape, HloType, Layout, OtherType, TupleShape, parse_layout, parse_type

__all__ = [
    "ArrayShape",
    "BufferShape",
    "Computation",
    "HloModule",
    "HloType",
    "Instruction",
    "Layout",
    "Metadata",
    "Operand",
    "OtherType",
    "Piece",
    "Rows",
    "TupleShape",
    "parse_layout",
    "parse_module",
    "parse_type",
    "pieces",
]
