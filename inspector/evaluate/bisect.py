"""The pass of the compiler after which a program computes something else, and the first instruction that does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...parsers.hlo import ArrayShape, HloModule, Instruction
from ..capture.passes import pass_before, place_of
from ..capture.protocol.case import PASSES
from ..capture.protocol.values import DifferingInstruction, DifferingPass
from .case import Case
from .collectives import OnDevices
from .compare import TOLERANCE, compare, compare_whole, flat, results_of
from .element_types import Array, Value
from .errors import DeadlockError, NotEvaluatedError
from .interpreter import Interpreter, Watch, place_of_frame

MAX_EXECUTIONS = 64
"""Executions of an instruction in a loop whose values are compared."""


HANDING_ON = ("parameter", "get-tuple-element", "while", "opt-barrier")
"""Opcodes that compute nothing themselves."""


class Dump(NamedTuple):
    """The module after a pass."""

    pipeline: str
    name: str
    path: Path


class Search:
    """Looks for the pass among the modules after passes; `source` has evaluated the program before compilation."""

    def __init__(
        self,
        folder: Path,
        case: Case,
        expected: list[OnDevices],
        source: Interpreter,
        tolerance: float,
        deadline: float,
    ) -> None:
        self._case = case
        self._expected = expected
        self._source = source
        self._tolerance = tolerance
        self._deadline = deadline
        self.dumps = dumps_in(folder / PASSES)
        self._known: dict[int, bool | None] = {}

    def run(self) -> tuple[DifferingPass | None, DifferingInstruction | None]:
        """The pass and the instruction; None where the modules were not recorded, or cannot be evaluated."""
        found = neighbours(len(self.dumps), self._differs)
        if found is None:
            return None, None
        before, after = (self.dumps[index] for index in found)
        evaluated = sum(each is not None for each in self._known.values())
        named = DifferingPass(
            after.pipeline, after.name, before.name, len(self.dumps), evaluated, before.path.name, after.path.name
        )
        return named, self._first_instruction(before.path, after.path)

    def _differs(self, index: int) -> bool | None:
        """Return whether a module computes something else; None where it cannot be evaluated."""
        if index not in self._known:
            try:
                self._known[index] = self._evaluated(self.dumps[index].path)
            except DeadlockError:
                self._known[index] = True
            except NotEvaluatedError:
                self._known[index] = None
        return self._known[index]

    def _evaluated(self, path: Path) -> bool:
        interpreter, is_split = self._interpreter(path)
        inputs = self._case.split() if is_split else self._case.whole()
        found = results_of(interpreter.run(inputs), len(self._case.outputs))
        is_whole = all(parts[0].shape == output.shape for parts, output in zip(found, self._case.outputs, strict=True))
        compared = (compare_whole if is_whole else compare)(self._case, self._expected, found)
        return max((output.error for output in compared), default=0.0) > self._tolerance

    def _interpreter(self, path: Path, watch: Watch | None = None) -> tuple[Interpreter, bool]:
        text = path.read_text("utf-8", "replace")
        case = self._case
        interpreter = Interpreter(text, case.devices, deadline=self._deadline, watch=watch, places=case.places)
        interpreter.allowed = self._source.signatures
        return interpreter, self._is_split(interpreter.module)

    def _is_split(self, module: HloModule) -> bool:
        """Return whether the parameters are blocks."""
        parameters = module.entry.parameters if module.entry is not None else ()
        if len(parameters) != len(self._case.values):
            raise NotEvaluatedError("other parameters")
        types = [each.type for each in parameters]
        dims = [each.dims if isinstance(each, ArrayShape) else () for each in types]
        return dims != [value.shape for value in self._case.values]

    def _first_instruction(self, before: Path, after: Path) -> DifferingInstruction | None:
        """The first instruction of the module after the pass whose value is another than before it, by name."""
        values: list[dict[str, list[tuple[float, ...]]]] = [{}, {}]
        order: dict[str, Instruction] = {}
        for found, path in zip(values, (before, after), strict=True):
            watch = _recorder(found, order if path is after else {})
            interpreter, is_split = self._interpreter(path, watch)
            try:
                interpreter.run(self._case.split() if is_split else self._case.whole())
            except NotEvaluatedError:
                return None
        for name, instruction in order.items():
            is_plain = instruction.opcode in HANDING_ON
            if not is_plain and name in values[0] and _are_apart(values[0][name], values[1][name]):
                return DifferingInstruction(f"%{name}", instruction.opcode, place_of_frame(instruction))
        return None


def dumps_in(folder: Path) -> list[Dump]:
    """The modules after each pass, in order, of the program with the most bytes; one for each text."""
    modules: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.txt")):
        if place_of(path.name) is not None:
            modules.setdefault(path.name.split(".0")[0], []).append(path)
    paths = max(modules.values(), key=lambda each: sum(path.stat().st_size for path in each), default=[])
    places = [place for path in paths if (place := place_of(path.name)) is not None]
    found: list[Dump] = []
    last = b""
    for number, path in enumerate(paths):
        text = path.read_bytes()
        if text != last:
            found.append(Dump(*pass_before(places, number), path))
            last = text
    return found


def neighbours(count: int, differs: Callable[[int], bool | None]) -> tuple[int, int] | None:
    """The last of a number of modules that is the same and the first after it that differs, by halving.

    Modules for which `differs` gives None are passed over. None where there are no such two.
    """
    low = next((index for index in range(count) if differs(index) is not None), None)
    high = next((index for index in reversed(range(count)) if differs(index) is not None), None)
    if low is None or high is None or differs(low) or not differs(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        near = sorted(range(low + 1, high), key=lambda index: abs(index - middle))
        found = next((index for index in near if differs(index) is not None), None)
        if found is None:
            break
        low, high = (low, found) if differs(found) else (found, high)
    return low, high


def _recorder(found: dict[str, list[tuple[float, ...]]], order: dict[str, Instruction]) -> Watch:
    def watch(instruction: Instruction, values: OnDevices) -> None:
        order.setdefault(instruction.name, instruction)
        rows = found.setdefault(instruction.name, [])
        if len(rows) < MAX_EXECUTIONS:
            parts = (part for value in values for part in flat(value))
            rows.append(tuple(figure for part in parts for figure in _figures(part)))

    return watch


def _figures(value: Value) -> tuple[float, float, float]:
    """The product with fixed random numbers, the largest element, and how many elements there are."""
    if value is None or not value.size:
        return 0.0, 0.0, 0.0
    flat: Array = np.nan_to_num(np.abs(value) if value.dtype.kind == "c" else value.astype(np.float64)).reshape(-1)
    weights = np.random.default_rng(flat.size).uniform(-1, 1, min(flat.size, 4096))
    weights = np.resize(weights, flat.size)
    return float(flat @ weights), float(np.abs(flat).max()), float(flat.size)


def _are_apart(first: list[tuple[float, ...]], second: list[tuple[float, ...]]) -> bool:
    for before, after in zip(first, second, strict=False):
        if len(before) != len(after):
            return False
        for place in range(0, len(before), 3):
            scale = max(before[place + 1], after[place + 1])
            if before[place + 2] != after[place + 2]:
                break
            if (
                abs(before[place] - after[place]) > TOLERANCE * scale
                or abs(before[place + 1] - after[place + 1]) > TOLERANCE * scale
            ):
                return True
    return False
