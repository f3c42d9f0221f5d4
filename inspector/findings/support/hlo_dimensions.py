"""Dimensions of operands that become dimensions of results in compiled programs, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ....parsers.errors import ParseError
from ....parsers.hlo import ArrayShape, Instruction
from ....parsers.hlo.fields import number
from ....parsers.hlo.types import HloType, element_type, parse_layout
from ...catalog.opcodes import HLO_ELEMENTWISE
from ...dataflow.hlo import HloUse

MOVING = ("bitcast", "reshape", "transpose", "broadcast", "concatenate", "slice", "dot", "gather")
"""Opcodes that move, add or take away dimensions, of any of their operands."""


def passes(use: HloUse) -> bool:
    """Return whether blocks of the result may be computed from blocks of the operand."""
    opcode = use.instruction.opcode
    if opcode in ("dynamic-update-slice", "reduce", "pad"):
        return use.position == 0 or (opcode == "dynamic-update-slice" and use.position == 1)
    return opcode in HLO_ELEMENTWISE or opcode in MOVING


class Split(NamedTuple):
    """Dimension `dim` in `repeats` equal runs of `parts` blocks each: a device has the same block of every run."""

    dim: int
    parts: int
    repeats: int = 1


def splits_before(use: HloUse, split: Split) -> tuple[Split, ...] | None:
    """Return the operand's split that corresponds to the result's: into as many parts, the major ones first."""
    before, after = operand_type(use), use.instruction.type
    match use.instruction.opcode:
        case "reshape":
            old, new = dims_of(before), dims_of(after)
            return None if old is None or new is None else _reshaped(old, new, split)
        case "bitcast":
            return _bitcast(before, after, split)
    dim = _dimension_before(use, split.dim)
    return None if dim is None else (split._replace(dim=dim),)


def _dimension_before(use: HloUse, dim: int) -> int | None:
    """The dimension of the operand that is all of `dim` of the result."""
    before, after = dims_of(operand_type(use)), dims_of(use.instruction.type)
    if before is None or after is None:
        return None
    opcode = use.instruction.opcode
    listed = _numbers(use.instruction, "dimensions")
    found: int | None = dim
    match opcode:
        case "transpose":
            return listed[dim] if len(listed) == len(after) else None
        case "broadcast":
            found = listed.index(dim) if dim in listed else None
        case "reduce":
            kept = [each for each in range(len(before)) if each not in listed]
            found = kept[dim] if len(kept) == len(after) else None
        case "dot":
            found = _of_product(use, len(before), len(after), dim)
        case "gather":
            found = _of_lookup(use, len(before), len(after), dim)
        case "concatenate" if dim in listed:
            return None
        case "pad":
            found = dim if _padding(use.instruction)[dim : dim + 1] == ["0_0"] else None
        case "dynamic-update-slice" | "concatenate" | "slice":
            pass
        case _:
            return dim if before == after else None
    return found if found is not None and found < len(before) and before[found] == after[dim] else None


def _padding(instruction: Instruction) -> list[str]:
    return instruction.attributes.get("padding", "").split("x")


def _of_product(use: HloUse, rank: int, result: int, dim: int) -> int | None:
    """A dimension of a product is one of its batch, or one that an operand does not contract: first the left one's."""
    side = ("lhs", "rhs")[use.position]
    batch, contracted = (_numbers(use.instruction, f"{side}_{of}_dims") for of in ("batch", "contracting"))
    free = [each for each in range(rank) if each not in (*batch, *contracted)]
    first = len(batch) if use.position == 0 else result - len(free)
    if dim < len(batch):
        return batch[dim]
    return free[dim - first] if 0 <= dim - first < len(free) else None


def _of_lookup(use: HloUse, rank: int, result: int, dim: int) -> int | None:
    """A dimension of what is looked up is one of the indices, or one of which each index takes everything."""
    offset = _numbers(use.instruction, "offset_dims")
    if use.position == 1:
        vector = _numbers(use.instruction, "index_vector_dim")
        of, kept = [each for each in range(result) if each not in offset], [d for d in range(rank) if d not in vector]
    else:
        batching = _numbers(use.instruction, "operand_batching_dims")
        dropped = (*_numbers(use.instruction, "collapsed_slice_dims"), *batching)
        of, kept = offset, [each for each in range(rank) if each not in dropped]
    return kept[of.index(dim)] if dim in of and len(of) == len(kept) else None


def _reshaped(before: Sequence[int], after: Sequence[int], split: Split) -> tuple[Split, ...] | None:
    """The same elements of the flat array: after `ahead` runs of it, one of `parts` equal pieces of each."""
    if math.prod(before) != math.prod(after):
        return None
    ahead, parts = math.prod(after[: split.dim]) * split.repeats, split.parts
    found = []
    while parts > 1:
        inside = _dimension_of_run(before, ahead)
        if inside is None:
            return None
        dim, repeats = inside
        room = before[dim] // repeats
        if room % parts and parts % room:
            return None
        found.append(Split(dim, min(room, parts), repeats))
        ahead, parts = ahead * min(room, parts), parts // min(room, parts)
    return tuple(found)


def _dimension_of_run(dims: Sequence[int], ahead: int) -> tuple[int, int] | None:
    """The dimension inside of which each of `ahead` equal runs of a flat array is, and how many of them are in it."""
    for dim, size in enumerate(dims):
        passed = math.prod(dims[:dim])
        if ahead % passed == 0 and size % (ahead // passed) == 0 and size > ahead // passed:
            return dim, ahead // passed
    return None


def _bitcast(before: HloType | None, after: HloType, split: Split) -> tuple[Split, ...] | None:
    """A bitcast leaves elements where they are in memory: it is a reshape of dimensions in the order of the layout."""
    old, new, olds, sizes = _in_memory(before), _in_memory(after), dims_of(before), dims_of(after)
    if old is None or new is None or olds is None or sizes is None:
        return None
    found = _reshaped([olds[d] for d in old], [sizes[d] for d in new], split._replace(dim=new.index(split.dim)))
    return None if found is None else tuple(each._replace(dim=old[each.dim]) for each in found)


def _in_memory(type: HloType | None) -> tuple[int, ...] | None:
    """The dimensions of an array from the slowest in its memory to the fastest."""
    if not isinstance(type, ArrayShape):
        return None
    if type.layout is None:
        return tuple(range(len(type.dims)))
    try:
        order = tuple(reversed(parse_layout(type.layout).minor_to_major))
    except ParseError:
        return None
    return order if sorted(order) == list(range(len(type.dims))) else None


def operand_type(use: HloUse) -> HloType | None:
    """The type of what an instruction takes."""
    return element_type(use.value.instruction.type, use.value.path)


def dims_of(type: HloType | None) -> tuple[int, ...] | None:
    """The sizes of an array's dimensions."""
    return type.dims if isinstance(type, ArrayShape) else None


def _numbers(instruction: Instruction, attribute: str) -> list[int]:
    text = instruction.attributes.get(attribute, "").strip("{} ")
    return [found for part in text.split(",") if (found := number(part.strip())) is not None]
