"""The request for one capture, and the overrides of the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from ... import records
from ...records import dataclass

PROBES = ("collectives", "constraints", "all", "none")
"""Whose values are recorded: of collectives in shard_maps; of these and of sharding constraints; of all equations in
shard_maps and of sharding constraints."""


@dataclass(frozen=True, slots=True)
class Request:
    """One function to capture, and how.

    Arguments:
        function: `script.py:fn`, `package.module:fn`, with attributes (`script.py:Model.step`); `script.py` for the
            program of it that matters most, or the `program`.
        program: its name, and how many of its name are compiled before it; None for the one that matters most.
        args: one specification per positional argument, as in `f32[8,16]@x,y` (see `arguments.py`).
        inputs: the name, in the script, of the arguments or of a function that makes them; `other.py:make` in a file.
        mesh: names and sizes of the mesh that it runs under.
        context: the name, in the script, of that mesh, of a context manager, or of a function that makes either.
        devices: how many fake CPU devices; None for as many as the script turns out to need.
        chosen: how many shardscope chose then, and may choose anew; 0 where it did not.
        target: what to compile for, as `inspector/targets/target.py` reads it.
        topology: in JSON, the fields of the worker's Topology for it; empty for the devices that exist.
        python: the interpreter that captures; None for the one that runs shardscope.
        live: whether the compiled function is also run.
        seed: from which the values of abstract inputs are made.
        probe: whose values are shown on each device: a word of `PROBES`, or equations by their ids, `3.1,3.4`.
        iterations: those of each loop whose values are kept, beside the last.
        window: where the recorded part of large arrays begins; the last dimensions of it if it is short.
        gentle: whether values of abstract inputs are such that most programs give finite results: not negative, and
            weights scaled by how many products are summed.
        reference: whether values are compared with those of a run on one device, which is another capture.
        nudged: whether arguments are changed by rounding, to see how far that goes.
        gradients: whether derivatives that the function takes are compared with differences of values, in float64.
        timeout: seconds after which the capture is ended; None for no limit.
        argv: `sys.argv[1:]` of the script.
        stdin: the file that is the script's standard input; None for an empty one.
        go_on: whether a script that is run goes on after the call that is captured.
        directory: the working directory; None for the current one.
        replaced: pairs of a file that may be imported and of another one, which holds the text to import in its place.
        is_trial: whether it is a trial of a change, of which costs and results count: it runs once, with other numbers
            in the place of those that are all alike, and what the script compiles besides is kept for other trials of
            this process.
        compiled: the folder where that is kept; empty where it is not.
        only_trace: whether it ends with the jaxpr.
        fingerprints: whether outputs are described so closely that two runs can be compared.
        passes: around which of XLA's passes the module is kept: those that change `communication`, or `all`.
        overrides: what is changed of the program from outside, as `read_overrides` reads it.
        shardings: paths of arguments and results, each with the spec that it gets in place of its own.
        case: a folder to which the files of a validation are written: see `case.py`.
        case_passes: whether these include the module after each of XLA's passes.
        case_evaluator: the command that evaluates a case, if a smaller program is to be found that differs as this one.
        case_seconds: for which that is tried.
        case_result: the result that differs.
    """

    function: str
    program: tuple[str, int] | None = None
    args: tuple[str, ...] = ()
    inputs: str | None = None
    mesh: tuple[tuple[str, int], ...] = ()
    context: str | None = None
    devices: int | None = None
    chosen: int = 0
    target: str = "cpu"
    topology: str = ""
    python: str | None = None
    live: bool = True
    seed: int = 0
    gentle: bool = False
    probe: str = "collectives"
    iterations: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7)
    window: tuple[int, ...] = ()
    reference: bool = False
    nudged: bool = False
    gradients: bool = False
    timeout: float | None = None
    argv: tuple[str, ...] = ()
    stdin: str | None = None
    go_on: bool = False
    directory: str | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    is_trial: bool = False
    compiled: str = ""
    only_trace: bool = False
    fingerprints: bool = True
    passes: str = ""
    overrides: tuple[str, ...] = ()
    shardings: tuple[tuple[str, str], ...] = ()
    case: str | None = None
    case_passes: bool = False
    case_evaluator: tuple[str, ...] = ()
    case_seconds: float = 0.0
    case_result: int = 0

    encode = records.encode
    decode = classmethod(records.decode)  # type: ignore[var-annotated]


class UsageError(Exception):
    """A request that cannot be carried out: `message` says why, `hint` what to do instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def split_function(text: str) -> tuple[str, str]:
    """`script.py:fn` as (`script.py`, `fn`); the second part is empty where there is no colon.

    A colon that belongs to a Windows drive (`C:\\\\x.py`) is not one that separates.
    """
    place, colon, name = text.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        return text, ""
    return place, name


def is_file(place: str) -> bool:
    """Return whether the first part of `place:fn` means a file, not a module."""
    return place.endswith((".py", ".ipynb")) or "/" in place or "\\" in place


ONE_DEVICE = "mesh=1"
"""The override that makes every mesh one of a single device."""

EXPECTED = "expected check_vma=on, check_vma=off, axis_types=auto, or mesh=x:2,y:4"


@dataclass(frozen=True, slots=True)
class Overrides:
    """Changes of a program by `--with`: `check_vma=on|off` of every shard_map, `mesh=x:2,y:4` of every mesh.

    `axis_types=auto` makes all axes of meshes automatic, `mesh=1` makes them of one device.

    `texts` are the changes as they were written, by what is changed.
    """

    check: bool | None = None
    is_auto: bool = False
    is_one: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def read_overrides(texts: Iterable[str]) -> Overrides:
    """Return the changes that are written so; of two to the same thing the last counts.

    Raises:
        UsageError: one of them is none of those that there are.
    """
    read = Overrides()
    for text in texts:
        name, _, value = text.partition("=")
        if name == "check_vma" and value in ("on", "off"):
            read = replace(read, check=value == "on")
        elif text == "axis_types=auto":
            read = replace(read, is_auto=True)
        elif text == ONE_DEVICE:
            read = replace(read, is_one=True)
        elif name == "mesh":
            read = replace(read, sizes=_sizes(text, value))
        else:
            raise UsageError(f"{text!r} cannot be overridden", EXPECTED)
        read.texts[name] = text
    return read


def _sizes(text: str, value: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in value.split(","):
        name, _, size = part.partition(":")
        if not name or not size.isdecimal() or not 0 < int(size) < 1 << 20:
            raise UsageError(f"{text!r}: {part!r} is not an axis with a size", EXPECTED)
        sizes[name] = int(size)
    return sizes
