"""Work of each instruction of a scheduled program: its operations, and the bytes that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...parsers.errors import ParseError
from ...parsers.hlo import ArrayShape, Computation, HloModule, Instruction
from ...parsers.hlo.fields import number
from ...parsers.hlo.types import HloType, leaves, parse_layout
from ...parsers.record import Record
from ..catalog.custom_calls import LOCAL
from ..catalog.spellings import CUSTOM_CALLS
from ..dataflow.meaning import Does, does
from ..ir.types import size
from .matmul import matmul_flops

FREE = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
        "while", "conditional", "call", "opt-barrier", "add-dependency", "domain", "iota",
    }
)  # fmt: skip
"""Opcodes that move nothing by themselves."""

SLICING = Does.SLICE | Does.LOOKUP
"""Classes of operations that read only as much of their first operand as they give."""

ELSEWHERE = frozenset({1, 2, 3, 4, 5, 6})
"""Memory spaces of a TPU that are not its HBM: vector, scalar, common (of v4), and synchronization memory, the host's,
and the SparseCores'."""

EIGHT_BIT = frozenset({"s8", "u8", "s4", "u4"})


class Work(Record, frozen=True):
    """`flops` of products of wide numbers, `narrow` of those of eight bits and less, `bytes` of device memory."""

    flops: int = 0
    narrow: int = 0
    bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.narrow + other.narrow, self.bytes + other.bytes)


class Workload:
    """The work of each instruction of a module; fused computations are looked at once."""

    def __init__(self, module: HloModule, platform: str) -> None:
        self._module = module
        self._elsewhere = ELSEWHERE if platform == "tpu" else frozenset[int]()
        self._fused: dict[str, _Fused] = {}

    def of(self, instruction: Instruction) -> Work:
        """The work of one instruction, not that of the computations that it calls as a loop or a branch."""
        if instruction.opcode in FREE or instruction.opcode.endswith("-done"):
            return Work()
        operands = instruction.operand_types
        if instruction.opcode == "fusion" and (fused := self.called(instruction)) is not None:
            moved = sum(map(self._bytes, fused.results(instruction.type)))
            for number, type in enumerate(operands):
                read = fused.read_of(number)
                moved += self._bytes(type) if read is None else min(read, self._bytes(type))
            return Work(fused.flops, fused.narrow, moved)
        if instruction.opcode == "custom-call" and (own := stated(instruction)):
            return Work(own.get("flops", 0), bytes=own.get("bytes_accessed") or self._moved(instruction, operands))
        return self._products(instruction, operands) + Work(bytes=self._moved(instruction, operands))

    def _moved(self, instruction: Instruction, operands: Sequence[HloType | None]) -> int:
        result = self._bytes(instruction.type)
        if does(instruction.opcode) in SLICING:
            return 2 * result
        if instruction.opcode == "dynamic-update-slice" and len(operands) > 1:
            return 2 * self._bytes(operands[1])
        if instruction.opcode == "copy-start":
            return sum(map(self._bytes, list(leaves(instruction.type))[:2]))
        return result + sum(map(self._bytes, operands))

    def _products(self, instruction: Instruction, operands: Sequence[HloType | None]) -> Work:
        flops = matmul_flops(instruction, operands)
        if not flops:
            return Work()
        first = operands[0]
        narrow = isinstance(first, ArrayShape) and (first.dtype in EIGHT_BIT or first.dtype.startswith("f8"))
        return Work(narrow=flops) if narrow else Work(flops * _passes(instruction))

    def called(self, instruction: Instruction) -> _Fused | None:
        """The computation of a fusion."""
        names = instruction.callees.get("calls", ())
        computation = self._module.computation(names[0]) if len(names) == 1 else None
        if computation is None:
            return None
        if computation.name not in self._fused:
            self._fused[computation.name] = _Fused(computation, self)
        return self._fused[computation.name]

    def inner(self, computation: Computation) -> Work:
        """The products of all instructions of a fused computation."""
        total = Work()
        for instruction in computation.instructions:
            if instruction.opcode == "fusion" and (fused := self.called(instruction)) is not None:
                total += Work(fused.flops, fused.narrow)
            elif instruction.opcode == "custom-call" or does(instruction.opcode) is Does.CONTRACT:
                total += self._products(instruction, instruction.operand_types)
        return total

    def _bytes(self, type: HloType | None) -> int:
        """Bytes in the device's own memory; types of unknown size count as nothing."""
        if type is None:
            return 0
        return sum(size((leaf,)) or 0 for leaf in leaves(type) if not self._is_elsewhere(leaf))

    def _is_elsewhere(self, leaf: HloType) -> bool:
        if not self._elsewhere or not isinstance(leaf, ArrayShape) or leaf.layout is None or "S(" not in leaf.layout:
            return False
        try:
            return parse_layout(leaf.layout).memory_space in self._elsewhere
        except ParseError:
            return False


class _Fused:
    """A fused computation: its products, and how much of each parameter it reads."""

    def __init__(self, computation: Computation, workload: Workload) -> None:
        self._computation = computation
        self._graph = computation.module.graph
        self._workload = workload
        work = workload.inner(computation)
        self.flops, self.narrow = work.flops, work.narrow

    def read_of(self, number: int) -> int | None:
        """Bytes that are read of a parameter that is only sliced, or updated in place; None for all of it."""
        parameters = self._computation.parameters
        return self._read(parameters[number]) if number < len(parameters) else None

    def _read(self, made: Instruction) -> int | None:
        """The bytes that the users of a value read; None if one reads all of it, or there is none."""
        total, users, name = 0, self._graph.takers(made), made.name
        for user in users:
            inner = self._inner_read(user, name)
            if inner is not None:
                total += inner
            elif does(user.opcode) in SLICING and user.operands[:1] == (name,) and user.operands.count(name) == 1:
                total += size((user.type,)) or 0
            elif user.opcode == "dynamic-update-slice" and user.operands[:1] == (name,):
                total += 0
            else:
                return None
        return total if users else None

    def _inner_read(self, user: Instruction, name: str) -> int | None:
        """Return the bytes read through a bitcast or a nested fusion; None for other users, and if all is read."""
        if user.opcode == "bitcast":
            return self._read(user)
        if user.opcode == "fusion" and user.operands.count(name) == 1:
            fused = self._workload.called(user)
            return None if fused is None else fused.read_of(user.operands.index(name))
        return None

    def results(self, type: HloType) -> Iterable[HloType | None]:
        """Return the bytes written: for an array that is updated in place, only the update."""
        root = self._computation.root
        if root is not None and root.opcode == "dynamic-update-slice" and len(root.operands) > 1:
            update = self._computation.instruction(root.operands[1])
            return (None if update is None else update.type,)
        return (type,)


def _passes(instruction: Instruction) -> int:
    """Return the number of passes of a TPU's matrix unit for more than bfloat16 precision (jax.lax.Precision)."""
    precision = instruction.attributes.get("operand_precision", "")
    return 6 if "highest" in precision else 3 if "high" in precision else 1


def is_estimated(instruction: Instruction) -> bool:
    """Return whether an instruction's time is known: not that of kernels without estimates, or with transfers."""
    if instruction.opcode != "custom-call":
        return True
    target = instruction.call_target
    if target in LOCAL or target in CUSTOM_CALLS:
        return True
    return bool(stated(instruction)) and _configuration(instruction).get("has_communication") is not True


def stated(instruction: Instruction) -> dict[str, int]:
    """`flops` and `bytes_accessed` of a Pallas kernel for TPUs with a `cost_estimate`."""
    estimate = _configuration(instruction).get("cost_estimate")
    found = estimate if isinstance(estimate, Mapping) else {}
    return {name: size for name, value in found.items() if (size := number(str(value))) is not None}


def _configuration(instruction: Instruction) -> Mapping[str, object]:
    config = instruction.backend_config
    found = config.get("custom_call_config") if isinstance(config, Mapping) else None
    return found if isinstance(found, Mapping) else {}
