"""Observations of a run: outputs, and values on each device, compared, timed. A part of the Capture.

Times are in seconds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Literal

from ...records import dataclass
from .trace import Place


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """One output of a live run. The statistics are over finite elements; None for types that have none.

    `spec` is how it came out; `values` are all of them, where they are few. Where runs are to be compared, `digest` is
    the same for the same bits, and `projections` are the norm and the products with two fixed random vectors.
    """

    path: str
    type: str
    spec: str | None
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None
    non_finite: int | None = None
    values: str | None = None
    digest: str | None = None
    projections: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a live run: `seconds` per run after one warm-up.

    `seeded_inputs` is true where arguments had types but no values, and were given pseudo-random ones, `uniform_inputs`
    where the floats of one are all alike, in place of which a trial has others. Where runs are to be compared, `inputs`
    is the same for arguments of the same bits; where they are on different numbers of devices, `arguments` describes
    these, too, without their paths, and in a trial those that results may replace.
    """

    outputs: tuple[OutputSummary, ...] = ()
    seconds: tuple[float, ...] = ()
    seeded_inputs: bool = False
    inputs: str | None = None
    arguments: tuple[OutputSummary, ...] = ()
    uniform_inputs: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """A collective of the compiled program on one device, as profiled over several `runs`.

    It is executed `count` times in a run, and takes so many `seconds` in it, waiting for other devices included;
    `late` is by how much it begins after the first device. Medians.
    """

    name: str
    device: int
    runs: int
    count: int
    seconds: float
    late: float


@dataclass(frozen=True, slots=True)
class CollectiveTimes:
    """The time that each collective takes on each device."""

    values: tuple[Timing, ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """One device's value: where along the probe's axes the device stands, and figures of the value.

    `digest` is the same for the same bits. `part` is what of the whole array it is (`0:4, :`), where that is known.
    """

    device: int
    coordinates: tuple[int, ...]
    digest: str
    part: str = ""
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None
    non_finite: int | None = None


def digest_of(array: Any) -> str:
    """The digest of the bytes of a shard."""
    return hashlib.blake2b(array.tobytes(), digest_size=8).hexdigest()


def statistics_of(finite: Any, size: int) -> dict[str, Any]:
    """Minimum, mean and maximum of the finite elements of an array of a size, and how many are not."""
    found: dict[str, Any] = {"non_finite": size - finite.size}
    if finite.size:
        figures = {"minimum": finite.min(), "mean": finite.mean(dtype="float64"), "maximum": finite.max()}
        found |= {name: float(figure) for name, figure in figures.items() if math.isfinite(figure)}
    return found


def part_text(block: Sequence[slice], shape: Sequence[int]) -> str:
    """`0:4, :`: the part of a whole of this shape that a block is."""
    places = (
        (each.start or 0, size if each.stop is None else each.stop, size)
        for each, size in zip(block, shape, strict=False)
    )
    return ", ".join(":" if (start, stop) == (0, size) else f"{start}:{stop}" for start, stop, size in places)


@dataclass(frozen=True, slots=True)
class Probe:
    """One value on each device, at one place and in one iteration.

    `path` are the ids of the equation and of those around it, outermost first; empty for an argument or an output of
    the function, of which `position` is the number, as it is of operands (`before`) and results (`after`). In a
    program that was evaluated, not run, the path is the name of a compiled collective, `%all-reduce.1`, floats are
    float64, and `device` of a shard is its partition.
    `iteration` counts in the loops `loops` from 0, in the order in which they run. `shape` is one shard's. `elements`
    are the bits of a part of each shard, the shards one after another, row-major: from `start`, of `extent`; they are
    empty where there would have been too many.
    """

    path: tuple[str, ...]
    when: Literal["argument", "before", "after", "output"]
    position: int
    type: str
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    shards: tuple[Shard, ...]
    iteration: tuple[int, ...] = ()
    loops: tuple[str, ...] = ()
    start: tuple[int, ...] = ()
    extent: tuple[int, ...] = ()
    elements: bytes = b""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two devices along an axis that hold different bits, in the first iteration in which any two do."""

    axis: str
    iteration: tuple[int, ...]
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One equation's result whose shards were compared along `axes`, those of the shard_maps around it."""

    path: tuple[str, ...]
    position: int
    axes: tuple[str, ...]
    differs: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """The results whose shards were compared."""

    values: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class Probed:
    """Collectives by opcode in the program that was shown, and in the one that was run to look at its values.

    `seconds` is what a run of the latter takes; of its values, `left_out` are neither recorded nor compared.
    """

    shown: dict[str, int]
    probed: dict[str, int]
    seconds: float = 0.0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """A result of floats in one iteration, where it is the same on all devices: an equation's, at a line of the user's.

    `projections` are its norm and the products with two fixed vectors, `nans` the number of its NaNs. `epsilon` is that
    of the coarsest type that was computed with before.
    """

    path: tuple[str, ...]
    position: int
    iteration: tuple[int, ...]
    primitive: str
    shape: str
    projections: tuple[float, float, float]
    nans: int
    epsilon: float
    line: Place | None = None


@dataclass(frozen=True, slots=True)
class Summaries:
    """The values inside a program, in program order."""

    values: tuple[Summary, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """A value that is not what a run on one device gives, beyond rounding.

    The place is given as in `Probe`, `coordinates` too; they are empty where the value as a whole differs.
    `distance` is a multiple of the largest one that rounding explains. With a `factor`, it is that many times the value
    of one device; or its change is, where it is that `argument` after an update. `primitive` and `line` are of its
    equation.
    """

    path: tuple[str, ...]
    when: Literal["before", "after", "output"]
    position: int
    iteration: tuple[int, ...]
    coordinates: tuple[int, ...]
    distance: float
    factor: float | None = None
    primitive: str = ""
    line: Place | None = None
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A run of the same function on one device: the number of values compared, and those that differ, in order.

    A value in a loop is one in each iteration. `left_out` is how many more `differs` would have. `amplified` counts
    values farther apart than rounding alone explains, but no farther than arguments that are changed by rounding put
    them. `undefined` is why it could not be run so, where it could not.
    """

    compared: int
    differs: tuple[Apart, ...]
    undefined: str | None = None
    left_out: int = 0
    amplified: int = 0


@dataclass(frozen=True, slots=True)
class Derivative:
    """A derivative that a function takes `of` another one, along a random direction of one `argument`.

    `slope` is what JAX's gives, `difference` the central difference of values, `spread` how far that varies with the
    size of the step. `file` and `line` are of the user's call.
    """

    of: str
    argument: str
    slope: float
    difference: float
    spread: float
    file: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Gradients:
    """The derivatives that were compared; `undefined` is why none were, where none could be.

    `left_out` are derivatives of arrays with values that were not compared.
    """

    checked: tuple[Derivative, ...]
    undefined: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """An output of the compiled program on all devices, compared with that of the program before compilation.

    `error` is the largest difference, in multiples of the output's largest element, `scale`. `devices` are those whose
    block differs, in up to `elements` of its `block` elements; `is_alike` is true if all have the same wrong block.
    `projections` are those of the compiled program's output, as in `OutputSummary`.
    """

    path: str
    shape: tuple[int, ...]
    error: float
    devices: tuple[int, ...] = ()
    elements: int = 0
    block: int = 0
    scale: float = 1.0
    is_alike: bool = False
    projections: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class DifferingPass:
    """The first pass of the compiler after which the program computes something else.

    `previous` is the pass before it that changed the program; of `recorded` modules, `evaluated` were. The files are
    XLA's dumps before the pass and after it.
    """

    pipeline: str
    name: str
    previous: str
    recorded: int
    evaluated: int
    file_before: str = ""
    file_after: str = ""


@dataclass(frozen=True, slots=True)
class DifferingInstruction:
    """The first instruction after that pass whose value differs from the one of its name before the pass."""

    name: str
    opcode: str
    place: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The compiled program evaluated in exact arithmetic, and compared with the program before compilation.

    `error` is the largest of all outputs. Where it was not evaluated, `reason` says why, `place` at which instruction,
    and `program` in which of the two; where it differs, they say why it never ends, if it does not. `kernels` are those
    that were evaluated as unknown functions of their operands.
    `rounding` is a narrow type of constants that the compiler folded, where their rounding explains the error.
    `not_finite` are outputs of the source with NaN or infinity. `compiler` is the version of the compiler, and
    `reproduction` the folder with the files that show a difference; `reduced` says how much smaller its program is.
    `stands` says where devices are that wait for each other, and which of them have ended.
    """

    status: Literal["same", "differs", "not evaluated"]
    devices: int = 0
    error: float = 0.0
    outputs: tuple[ComparedOutput, ...] = ()
    differing_pass: DifferingPass | None = None
    first: DifferingInstruction | None = None
    reason: str = ""
    place: str = ""
    program: str = ""
    kernels: tuple[str, ...] = ()
    rounding: str | None = None
    seconds: float = 0.0
    source_seconds: float = 0.0
    optimized_seconds: float = 0.0
    not_finite: tuple[str, ...] = ()
    compiler: str = ""
    reproduction: str | None = None
    reduced: str = ""
    stands: str = ""
