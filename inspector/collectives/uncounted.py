"""Communication without a collective, certain or possible: kernels with remote copies, the host, unknown calls."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...parsers.hlo import Instruction
from ...parsers.hlo.fields import plain
from ...parsers.hlo.types import leaves
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Frame
from ..catalog.custom_calls import HOST, HOST_PRIMITIVES, KERNELS, LOCAL
from ..catalog.spellings import CUSTOM_CALLS, is_kernel
from ..dataflow.device_integers import MAX_EVALUATED, Numbers, coordinates, position
from ..dataflow.jaxpr import At, JaxprFlow, flow_of
from ..ir.derived import derived
from ..ir.jaxpr import Equation
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, JaxType, array_type
from ..report import SourcePosition, UncountedCommunication
from .dcn_transfers import is_host_transfer

_TO_ANOTHER_DEVICE = re.compile(r"\b(?:PeerMemRef|RemoteRef|MulticastRef)\b")
HOST_OPCODES = frozenset({"infeed", "outfeed", "send", "recv"})


def uncounted_communication(program: Program) -> tuple[UncountedCommunication, ...]:
    """The remote copies and signals of kernels by the jaxpr; by the HLO the host's part, and calls that are unknown."""
    jaxpr = program.jaxpr
    stage = next(filter(None, map(program.stage, ("hlo", "hlo-spmd", "hlo-before"))), None)
    calls = () if stage is None else _outside_collectives(stage, jaxpr is None)
    if jaxpr is None:
        return calls
    host = _calls_of_the_host(jaxpr)
    return (*_in_kernels(jaxpr), *host, *(each for each in calls if each.does != "host" or not host))


@derived
def _calls_of_the_host(jaxpr: JaxprText) -> tuple[UncountedCommunication, ...]:
    """Calls of the host, which a compiler for devices that are not attached leaves out."""
    found = (place.equation for place in jaxpr.equations if place.equation.primitive in HOST_PRIMITIVES)
    return _counted(
        UncountedCommunication(each.primitive, "host", None, SourcePosition.exact(jaxpr.stack(each))) for each in found
    )


@derived
def _in_kernels(jaxpr: JaxprText) -> tuple[UncountedCommunication, ...]:
    kernels = [place for place in jaxpr.equations if is_kernel(place.equation.primitive)]
    budget = Budget()
    return _counted(found for place in kernels for found in _in_kernel(jaxpr, place, budget))


def _counted(found: Iterable[UncountedCommunication]) -> tuple[UncountedCommunication, ...]:
    return tuple(replace(each, count=count) for each, count in Counter(found).items())


def _in_kernel(jaxpr: JaxprText, kernel: EquationPlace, budget: Budget) -> Iterator[UncountedCommunication]:
    given = dict(kernel.equation.params).get("name", "None").strip("'")
    waiting, seen = [body for _, body in kernel.equation.bodies], set[int]()
    while waiting:
        body = waiting.pop()
        if body in seen:
            continue
        seen.add(body)
        inside = jaxpr.program.jaxprs[body]
        types = {variable.name: variable.type for variable in (*inside.constants, *inside.inputs)}
        for index, equation in enumerate(inside.equations):
            waiting += [inner for _, inner in equation.bodies]
            types |= {variable.name: variable.type for variable in equation.outputs}
            does = _reaches(equation)
            if does is not None:
                stack = jaxpr.stack(equation) or jaxpr.stack(kernel.equation)
                source = SourcePosition(stack, "exact" if stack else "none")
                moved = JaxType(equation.remote) if equation.remote else None
                if equation.remote is None and equation.inputs:  # a reference on another GPU
                    moved = types.get(equation.inputs[0])
                name = given if given != "None" else _function_of(stack, jaxpr.stack(kernel.equation))
                flow = flow_of(jaxpr)
                printed = flow.by_id.get(f"{body}.{index}")  # what is nested too deeply is not
                axes, pairs = (None if printed is None else pairs_of(flow, printed, budget)) or (None, ())
                yield UncountedCommunication(
                    name or kernel.equation.primitive, does, None if moved is None else moved.array, source, axes, pairs
                )


def _function_of(inside: Sequence[Frame], around: Sequence[Frame]) -> str:
    """The function of a kernel without a name: the outermost frame inside of it, by stacks from the innermost on."""
    while inside and around and inside[-1] == around[-1]:
        inside, around = inside[:-1], around[:-1]
    return inside[-1].function if inside else ""


def _reaches(equation: Equation) -> Literal["copy", "signal"] | None:
    """Return the remote effects of a kernel's equation."""
    params = " ".join(text for _, text in equation.params)
    if _TO_ANOTHER_DEVICE.search(params):
        return "copy"
    if equation.remote is None:
        return None
    return "signal" if equation.primitive == "semaphore_signal" else "copy"


@derived
def _outside_collectives(stage: ParsedStage, with_kernels: bool) -> tuple[UncountedCommunication, ...]:
    """Transfers with the host, and custom calls that may communicate.

    Kernels are among these only where no jaxpr says what they do.
    """
    module = stage.hlo
    if module is None:
        return ()
    found = list[UncountedCommunication]()
    for instruction in module.with_opcode({"custom-call", *HOST_OPCODES}):
        name, does = _reach(instruction, with_kernels)
        if does is not None:
            source = SourcePosition.exact(instruction.frames)
            found.append(UncountedCommunication(name, does, _moved(instruction) if does == "host" else None, source))
    return _counted(found)


def _reach(instruction: Instruction, with_kernels: bool) -> tuple[str, Literal["host", "unknown"] | None]:
    """The name of a custom call or a transfer, and whom it reaches; None for one that stays on its device."""
    if instruction.opcode != "custom-call":
        is_to_host = instruction.opcode in ("infeed", "outfeed") or is_host_transfer(instruction)
        return instruction.opcode, "host" if is_to_host else None
    name = plain(instruction.attributes.get("custom_call_target", ""))
    if name in HOST:
        return name, "host"
    if name in LOCAL or name in CUSTOM_CALLS:
        return name, None
    if name in KERNELS:
        has_no_part = name == "tpu_custom_call" and '"has_communication":true' not in instruction.text
        return name, None if has_no_part or not with_kernels else "unknown"
    return name or "custom call", "unknown"


def _moved(instruction: Instruction) -> ArrayType | None:
    """The type of what goes to the host or comes from there; None for what is no single array."""
    types = [each for each in map(array_type, leaves(instruction.type)) if each.dtype != "token"]
    return types[0] if types and types[0].dims is not None else None


Pairs = tuple[tuple[int, int], ...]
Guard = tuple[At, int, int]
"""The predicate of a conditional, the branch that an equation stands in, and the number of branches."""


@dataclass(slots=True)
class Budget:
    """The equations that may still be evaluated for one program, on all devices together: about a second's."""

    left: int = 300_000


def pairs_of(flow: JaxprFlow, place: EquationPlace, budget: Budget) -> tuple[tuple[AxisRef, ...], Pairs] | None:
    """Return the axes along which something is sent, and each partition that may send, with the one that it sends to.

    Partitions are numbered in row-major order of the mesh of the shard_map around. None where a number depends on more
    than the position in this mesh, and where the budget is spent.
    """
    mapped, atoms = flow.shard_map_around(place), place.equation.device
    sizes = {} if mapped is None or mapped.equation.shard_map is None else dict(mapped.equation.shard_map.sizes)
    if not 0 < len(atoms) <= len(sizes):
        return None
    # A reference on another GPU says it among its transforms.
    types = (text for name, text in place.equation.params if name == "device_id_type" or "PeerMemRef" in text)
    is_number = any("LOGICAL" in text.upper() for text in types)
    axes, guards, found, along = tuple(sizes), list(_guards(flow, place)), [], dict[str, None]()
    for partition, source in enumerate(coordinates(axes, sizes)):
        numbers = Numbers(flow, sizes, source)
        is_passed_by = any(_takes_another(numbers, *guard) for guard in guards)
        values = [] if is_passed_by else [numbers.value(At(place.jaxpr, atom)) for _, atom in atoms]
        budget.left -= 1 + MAX_EVALUATED - numbers.left
        if budget.left < 0:
            return None
        if is_passed_by:
            continue
        known, target = [value for value in values if value is not None], None
        if len(known) == len(values):
            named = [axis for axis, _ in atoms]
            target = _by_number(known, sizes) if is_number else _by_axes(source, named, known, sizes)
        if target is None:
            return None
        along |= dict.fromkeys(axis for axis in axes if source[axis] != target[axis])
        found.append((partition, position(target, axes, sizes)))
    return tuple(AxisRef(axis) for axis in axes if axis in along), tuple(found)


def _guards(flow: JaxprFlow, place: EquationPlace) -> Iterator[Guard]:
    for _ in range(len(flow.jaxprs)):
        callers = flow.callers.get(place.jaxpr, ())
        if len(callers) != 1 or is_kernel(callers[0].equation.primitive):
            return
        (around,) = callers
        branches = [body for _, body in around.equation.bodies]
        if around.equation.primitive == "cond" and around.equation.inputs and branches.count(place.jaxpr) == 1:
            yield At(around.jaxpr, around.equation.inputs[0]), branches.index(place.jaxpr), len(branches)
        place = around


def _takes_another(numbers: Numbers, predicate: At, branch: int, branches: int) -> bool:
    taken = numbers.value(predicate)
    return taken is not None and max(0, min(taken, branches - 1)) != branch


def _by_number(numbers: Sequence[int], sizes: Mapping[str, int]) -> Mapping[str, int] | None:
    if len(numbers) != 1 or not 0 <= numbers[0] < math.prod(sizes.values()):
        return None
    (rest,), found = numbers, dict[str, int]()
    for axis in reversed(list(sizes)):
        rest, found[axis] = divmod(rest, sizes[axis])
    return found


def _by_axes(
    source: Mapping[str, int], named: Sequence[str], numbers: Sequence[int], sizes: Mapping[str, int]
) -> Mapping[str, int] | None:
    """The coordinates of a device with these along its axes: along all of them, or those named, else the sender's."""
    named = named if any(named) else tuple(sizes)
    if len(named) != len(numbers) or not sizes.keys() >= set(named):
        return None
    found = {**source, **dict(zip(named, numbers, strict=True))}
    return found if all(0 <= found[axis] < sizes[axis] for axis in sizes) else None
