"""A module on all of its devices, in lock-step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...parsers.hlo import ArrayShape, HloModule, HloType, Instruction, Operand, TupleShape, parse_module
from ...parsers.source import Source
from ..capture.model import Device
from . import arithmetic, arrays, custom_calls, indexing, windows
from .borders import ENTER, LEAVE, Borders, mesh_of
from .collectives import KINDS, OnDevices, collective
from .custom_calls import Signature, operands_of, signature_of, target_of, unknown
from .element_types import Array, Value, rounded, unwritten
from .errors import DeadlockError, NotEvaluatedError, OutOfTimeError
from .literals import literal
from .observed import Observer
from .operation import Meaning, Operation
from .slices import Slices

MEANINGS: dict[str, Callable[[Operation], Meaning]] = (
    arithmetic.MEANINGS | arrays.MEANINGS | custom_calls.MEANINGS | indexing.MEANINGS | windows.MEANINGS
)
"""The meaning of each opcode on one device. Control, communication and devices are `Interpreter`'s own."""

CALLS = ("call", "fusion", "async-start", "call-start", "fusion-start")
STAND_INS = ("opt-barrier", "optimization-barrier", "after-all", "add-dependency")
UNKNOWN = ("rng-bit-generator", "rng-get-and-update-state")
"""Opcodes that are one unknown function of their operands, as kernels are."""

UNFINISHED = ("get-tuple-element", "parameter")
"""Opcodes that hand on parts of an asynchronous instruction before its end, which have the value that it will have."""

Watch = Callable[[Instruction, OnDevices], None]


class _Step:
    """An instruction with all that is known before it runs."""

    __slots__ = ("dropped", "instruction", "meaning", "opcode", "operation", "references")

    def __init__(
        self, instruction: Instruction, operation: Operation, references: Sequence[Operand], dropped: tuple[str, ...]
    ) -> None:
        self.instruction = instruction
        self.operation = operation
        self.opcode = instruction.opcode
        self.references: Sequence[Operand] = () if self.opcode == "iota" else references
        self.dropped = dropped
        """The values that nothing needs after it."""
        self.meaning: Meaning | None = None


class Interpreter:
    """Evaluates one module.

    `signatures` collects those of unknown functions. `watch` is called with the result of each instruction outside of
    computations on scalars, `observer` with each execution of a collective. `places` are the devices, by
    partition. After `deadline`, by `time.monotonic`, evaluation stops with OutOfTimeError.
    """

    def __init__(
        self,
        text: str,
        devices: int,
        *,
        deadline: float | None = None,
        watch: Watch | None = None,
        observer: Observer | None = None,
        places: Sequence[Device] = (),
    ) -> None:
        self.module: HloModule = parse_module(Source("module", text.encode()))
        self.devices = devices
        self.signatures: Counter[Signature] = Counter()
        self.allowed: Counter[Signature] | None = None
        """The signatures that an unknown function may have: those of the program before compilation."""
        self._deadline = deadline
        self._watch = watch
        self._observer = observer
        self._slices = Slices(self.module, places)
        self._loops: list[tuple[str, int]] = []
        self._prepared: dict[str, list[_Step]] = {}
        self._roots: dict[str, str] = {}
        self._simple: dict[str, str | None] = {}
        self._constants: dict[int, Value] = {}
        self._begun: dict[str, str] = {}
        """Computations of asynchronous calls that get their operands later, by the names of their starts."""
        self._borders: Borders | None = None
        self.doubtful: NotEvaluatedError | None = None
        """The first instruction whose result had another shape than its type, and was replaced by unwritten memory."""
        self._is_scalar = False
        self._is_constant = False
        self.stands: dict[int, str] = {}
        """The instruction and the line at which devices wait for others that never come."""
        self._deadlock: DeadlockError | None = None

    @property
    def unequal(self) -> list[Operation]:
        """The ends of shard_maps at which devices held unequal copies of what is declared to be one value."""
        return self._borders.unequal if self._borders is not None else []

    def run(self, inputs: list[OnDevices]) -> OnDevices:
        """The result on each device, from each parameter on each device.

        Raises:
            NotEvaluatedError: an instruction has no known meaning.
            DeadlockError: devices wait for others; those that others do not wait for have gone on to their end.
        """
        entry = self.module.entry
        if entry is None:
            raise NotEvaluatedError("the module has no entry computation")
        if len(entry.parameters) != len(inputs):
            raise NotEvaluatedError(f"{len(entry.parameters)} parameters for {len(inputs)} inputs")
        try:
            with np.errstate(all="ignore"):
                found = self._call(entry.name, inputs)
        except NotEvaluatedError as error:
            raise (self._deadlock or error) from None
        if self._deadlock is not None:
            raise self._deadlock
        return found

    def _steps(self, name: str) -> list[_Step]:
        if name not in self._prepared:
            computation = self.module.computation(name)
            if computation is None or computation.root is None:
                raise NotEvaluatedError(f"the module has no computation {name}")
            instructions = computation.instructions
            made = {each.name: each for each in instructions}
            types = {each.name: each.type for each in instructions}
            last = {operand.name: each.name for each in instructions for operand in _references(each)}
            dropped: dict[str, list[str]] = {}
            for value, user in last.items():
                if value != computation.root.name:
                    dropped.setdefault(user, []).append(value)
            self._prepared[name] = [
                _Step(each, self._operation(each, types), operands_of(each, made), tuple(dropped.get(each.name, ())))
                for each in instructions
            ]
            self._roots[name] = computation.root.name
        return self._prepared[name]

    def _operation(self, instruction: Instruction, types: dict[str, HloType]) -> Operation:
        operand_types = []
        for operand in _references(instruction):
            type = types.get(operand.name)
            for index in operand.index:
                type = type.elements[index] if isinstance(type, TupleShape) else type
            if type is not None:
                operand_types.append(type)
        return Operation(instruction, instruction.opcode, instruction.type, operand_types, self.apply, self.simple)

    def _call(self, name: str, arguments: list[OnDevices], constant: Sequence[bool] = ()) -> OnDevices:
        """The result of a computation. `constant` says of each argument whether it depends on constants alone.

        Such values are rounded to their type: the compiler computes them, or may, and both programs are to have the
        same. `_is_constant` says so of the result afterwards.
        """
        steps = self._steps(name)
        values: dict[str, OnDevices] = {}
        constants: set[str] = set()
        for step in steps:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise OutOfTimeError("not evaluated to its end in the seconds allowed", place_of(step.instruction))
            try:
                operands = [_selected(values[each.name], each.index) for each in step.references]
                flags = [each.name in constants for each in step.references]
                self._is_constant = False
                found = self._evaluated(step, step.opcode, step.operation, operands, arguments, flags)
                if self._is_folded(step, flags, constant):
                    constants.add(step.instruction.name)
                    found = _rounded(step.instruction.type, found)
            except NotEvaluatedError as error:
                error.place = error.place or place_of(step.instruction)
                raise
            except (
                ValueError,
                IndexError,
                KeyError,
                TypeError,
                AttributeError,
                ArithmeticError,
                AssertionError,
            ) as error:
                reason = f"{step.opcode}: {type(error).__name__}: {error}"
                raise NotEvaluatedError(reason, place_of(step.instruction)) from error
            if not self._is_scalar and _has_other_shape(step.instruction, found):
                # A repetition inside of an asynchronous collective, as a rule, whose result nothing needs.
                reason = f"{step.opcode} gives {found[0].shape} for {step.instruction.type}"
                self.doubtful = self.doubtful or NotEvaluatedError(reason, place_of(step.instruction))
                found = [None if each is None else unwritten(step.instruction.type) for each in found]
            values[step.instruction.name] = found
            if self._watch is not None:
                self._watch(step.instruction, found)
            for each in step.dropped:
                values.pop(each, None)
        self._is_constant = self._roots[name] in constants
        return values[self._roots[name]]

    def _is_folded(self, step: _Step, flags: list[bool], constant: Sequence[bool]) -> bool:
        """Return whether a value depends on constants alone."""
        if step.opcode == "parameter":
            number = int(step.instruction.literal or 0)
            return number < len(constant) and constant[number]
        if step.opcode in CALLS:
            return self._is_constant
        return step.opcode in ("constant", "iota") or (step.opcode in MEANINGS and bool(flags) and all(flags))

    def apply(self, name: str, *operands: Array) -> Value:
        """A computation on scalars, on arrays element by element, outside of any device."""
        state = self.devices, self._watch, self._is_scalar
        self.devices, self._watch, self._is_scalar = 1, None, True
        try:
            return self._call(name, [[operand] for operand in operands])[0]
        finally:
            self.devices, self._watch, self._is_scalar = state

    def simple(self, name: str) -> str | None:
        """The opcode of a computation that is one reduction of its two parameters; `second` if it is the second."""
        if name not in self._simple:
            steps = self._steps(name)
            *before, last = steps
            root = next(step for step in steps if step.instruction.name == self._roots[name])
            only = all(step.opcode == "parameter" for step in before)
            is_one = only and len(steps) == 3 and last is root and len({each.name for each in last.references}) == 2
            found = last.opcode if is_one and last.opcode in arithmetic.REDUCTIONS else None
            if len(steps) == 2 and root.opcode == "parameter" and root.instruction.literal == "1":
                found = "second"
            self._simple[name] = found
        return self._simple[name]

    def _evaluated(
        self,
        step: _Step,
        opcode: str,
        operation: Operation,
        operands: list[OnDevices],
        arguments: list[OnDevices],
        constant: list[bool],
    ) -> OnDevices:
        instruction = step.instruction
        devices = self.devices
        if opcode == "parameter":
            return arguments[int(instruction.literal or 0)]
        if opcode == "constant":
            key = instruction.start
            if key not in self._constants:
                self._constants[key] = literal(instruction.call.inside, instruction.type)
            return [self._constants[key]] * devices
        if opcode == "tuple":
            rows = zip(*operands, strict=True) if operands else [()] * devices
            return [None if any(each is None for each in row) else tuple(row) for row in rows]
        if opcode == "get-tuple-element":
            return _selected(operands[0], (operation.number("index"),))
        if opcode in CALLS or (opcode == "custom-call-start" and not operands):
            names = ("calls", "to_apply", "called_computations")
            callees = next(filter(None, map(instruction.callees.get, names)), ())
            if not callees:
                raise NotEvaluatedError(f"{opcode} without a computation")
            if opcode.endswith("-start") and not operands and self._takes(callees[0]):
                self._begun[instruction.name] = callees[0]
                return [()] * devices
            return self._call(callees[0], operands, constant)
        if opcode == "while":
            return self._loop(instruction, operands[0])
        if opcode == "conditional":
            return self._branches(instruction, operands)
        if opcode.removesuffix("-start") in KINDS:
            return self._communicated(opcode.removesuffix("-start"), operation, operands)
        if opcode == "copy-start":
            return operands[0]
        if opcode.endswith("-start") and opcode.removesuffix("-start") in MEANINGS:
            inner = operation.type.elements[1] if isinstance(operation.type, TupleShape) else operation.type
            base = opcode.removesuffix("-start")
            alone = Operation(instruction, base, inner, operation.operand_types, self.apply, self.simple)
            return self._evaluated(step, base, alone, operands, arguments, constant)
        if opcode == "send":
            return self._slices.send(operation, operands[0], operands[1])
        if opcode == "recv":
            return self._slices.begin(operation, operands[0])
        if opcode == "recv-done":
            return self._slices.received(operation)
        if opcode.endswith("-update") and len(operands) > 1:
            return self._call(self._begun[step.references[0].name], operands[1:], constant[1:])
        if opcode.endswith(("-done", "-update")):
            return operands[0]
        if opcode == "partition-id":
            return [np.uint32(place).reshape(()) for place in self._slices.places(devices)]
        if opcode == "replica-id":
            return [np.uint32(0).reshape(())] * devices
        if opcode in STAND_INS:
            return operands[0] if operands else [np.zeros((), bool)] * devices
        if opcode == "custom-call" and target_of(operation) == "SliceId":
            return [np.uint32(number).reshape(()) for number in self._slices.numbers]
        if opcode == "custom-call" and target_of(operation) in (ENTER, LEAVE):
            self._borders = self._borders or Borders(mesh_of(self.module, devices))
            return self._borders.cross(target_of(operation), operation, operands)
        return self._local(step, opcode, operation, operands)

    def _takes(self, name: str) -> bool:
        return any(each.opcode == "parameter" for each in self._steps(name))

    def _local(self, step: _Step, opcode: str, operation: Operation, operands: list[OnDevices]) -> OnDevices:
        """Each device by itself; what all of them share is computed once."""
        if step.meaning is None:
            if opcode in UNKNOWN:
                step.meaning = self._as_unknown(opcode, operation)
            elif opcode not in MEANINGS:
                raise NotEvaluatedError(f"opcode {opcode}")
            elif opcode == "custom-call" and target_of(operation) in custom_calls.UNKNOWN:
                step.meaning = self._as_unknown(target_of(operation), operation)
            else:
                step.meaning = MEANINGS[opcode](operation)
        if not operands:
            return [step.meaning()] * self.devices
        found: OnDevices = []
        known: dict[tuple[int, ...], Value] = {}
        for row in zip(*operands, strict=True):
            if any(each is None for each in row):
                found.append(None)
                continue
            key = tuple(map(id, row))
            if key not in known:
                known[key] = step.meaning(*row)
            found.append(known[key])
        return found

    def _as_unknown(self, target: str, operation: Operation) -> Meaning:
        signature = signature_of(target, operation)
        self.signatures[signature] += 1
        if self.allowed is not None and signature not in self.allowed:
            is_known = any(name == target for name, *_ in self.allowed)
            why = "is called with other shapes than before compilation" if is_known else "has no known meaning"
            raise NotEvaluatedError(f"{target} {why}")
        return unknown(target, operation)

    def _communicated(self, kind: str, operation: Operation, operands: list[OnDevices]) -> OnDevices:
        if self._is_scalar:
            raise NotEvaluatedError(f"{kind} in a computation on scalars")
        is_permuted = kind == "collective-permute"
        slices, instruction = self._slices, operation.instruction
        groups = slices.pairs(instruction) if is_permuted else slices.groups(instruction, self.devices)
        while True:
            operands = [[None if at in self.stands else v for at, v in enumerate(each)] for each in operands]
            if all(value is None for each in operands for value in each):
                return [None] * self.devices
            try:
                found = collective(operation, kind, operands, groups)
                break
            except DeadlockError as error:
                error.place = place_of(instruction)
                self._deadlock = self._deadlock or error
                where = place_of_frame(instruction).rpartition("/")[2] or error.place
                self.stands |= dict.fromkeys(error.devices, f"{kind} at {where}")
        if self._observer is not None:
            self._observer.collective(operation, operands, found, self._loops)
        return found

    def _loop(self, instruction: Instruction, state: OnDevices) -> OnDevices:
        """`while`: devices may leave it one after another."""
        condition, body = instruction.callees["condition"][0], instruction.callees["body"][0]
        state = list(state)
        for number in count():
            goes_on = [each is not None and bool(each) for each in self._call(condition, [state])]
            if not any(goes_on):
                break
            inside = [each if on else None for each, on in zip(state, goes_on, strict=True)]
            self._loops.append((f"%{instruction.name}", number))
            found = self._call(body, [inside])
            self._loops.pop()
            state = [new if on else old for new, old, on in zip(found, state, goes_on, strict=True)]
        return state

    def _branches(self, instruction: Instruction, operands: list[OnDevices]) -> OnDevices:
        """`conditional`: each device takes its own branch; a number that none has means the last."""
        callees = instruction.callees
        names = callees.get("branch_computations") or (*callees["true_computation"], *callees["false_computation"])
        chosen = [_branch(each, len(names)) for each in operands[0]]
        found: OnDevices = [None] * self.devices
        for number, name in enumerate(names):
            if number not in chosen:
                continue
            inside = [
                each if taken == number else None for each, taken in zip(operands[1 + number], chosen, strict=True)
            ]
            results = self._call(name, [inside])
            found = [new if taken == number else old for new, old, taken in zip(results, found, chosen, strict=True)]
        return found


def _rounded(type: HloType, values: OnDevices) -> OnDevices:
    if not isinstance(type, ArrayShape):
        return values
    known = {id(value): rounded(value, type.dtype) if not isinstance(value, tuple) else value for value in values}
    return [known[id(value)] for value in values]


def _has_other_shape(instruction: Instruction, values: OnDevices) -> bool:
    type = instruction.type
    if not isinstance(type, ArrayShape) or instruction.opcode in UNFINISHED:
        return False
    return any(value is not None and not isinstance(value, tuple) and value.shape != type.dims for value in values)


def _references(instruction: Instruction) -> Sequence[Operand]:
    return () if instruction.opcode in ("parameter", "constant", "iota") else instruction.references


def _branch(index: Any, count: int) -> int | None:
    if index is None:
        return None
    if index.dtype == bool:
        return 0 if index else 1
    return int(index) if 0 <= int(index) < count else count - 1


def _selected(values: OnDevices, path: Sequence[int]) -> OnDevices:
    """An element of a tuple on each device.

    The start of an asynchronous instruction has the instruction's result alone, in place of the tuple that its type
    has: it is each of its elements.
    """
    for index in path:
        values = [each[index] if isinstance(each, tuple) else each for each in values]
    return values


def place_of(instruction: Instruction) -> str:
    """Return an instruction's name, and the line that it comes from, if the text says it: `%add.3 (model.py:12)`."""
    where = place_of_frame(instruction)
    return f"%{instruction.name} ({where})" if where else f"%{instruction.name}"


def place_of_frame(instruction: Instruction) -> str:
    """Return the line that an instruction comes from, `model.py:12`; empty if the text does not say it."""
    frames = instruction.frames
    return f"{frames[0].file}:{frames[0].line}" if frames else ""
