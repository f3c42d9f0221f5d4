"""HLO text: modules as XLA prints and dumps them, and as people write them."""

from .call import Operand
from .computation import Computation
from .fields import Metadata
from .instruction import Instruction
from .module import HloModule, parse_module
from .scan import Rows
from .types import ArrayShape, BufferShape, HloType, Layout, OtherType, TupleShape, parse_layout, parse_type
