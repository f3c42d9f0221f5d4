"""How an operand is split where a result is, against numpy's own arrays of indices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from shardscope.inspector.dataflow.hlo import HloUse, HloValue
from shardscope.inspector.findings.support.hlo_dimensions import Split, passes, splits_before
from shardscope.parsers.hlo import Instruction, parse_module
from shardscope.parsers.source import Source

pytestmark = pytest.mark.once


def instruction_of(operands: list[str], line: str) -> Instruction:
    parameters = "\n".join(f"  %p{number} = {type} parameter({number})" for number, type in enumerate(operands))
    text = f"HloModule m\n\nENTRY %main ({', '.join(f'p{n}: {t}' for n, t in enumerate(operands))}) -> f32[] {{\n"
    module = parse_module(Source("m", f"{text}{parameters}\n  ROOT %r = {line}\n}}\n".encode()))
    found = module.instruction("main", "r")
    assert found is not None
    return found


def use_of(instruction: Instruction, position: int = 0) -> HloUse:
    operand = instruction.computation.instruction(instruction.operands[position])
    assert operand is not None
    return HloUse(HloValue(operand, ()), instruction, position)


def dimension_before(use: HloUse, dim: int, parts: int) -> int | None:
    """The dimension of the operand that is partitioned where `dim` of the result is, where that is one alone."""
    found = splits_before(use, Split(dim, parts))
    return found[0].dim if found is not None and [each[1:] for each in found] == [(parts, 1)] else None


def blocks_of(index: np.ndarray, size: int, split: Split) -> np.ndarray:
    """Of each element, by its index along a dimension of a `size`, which block of its run it is in."""
    return index // (size // (split.repeats * split.parts)) % split.parts


def spelled(shape: tuple[int, ...], layout: tuple[int, ...] | None = None) -> str:
    order = "" if layout is None else f"{{{','.join(map(str, layout))}}}"
    return f"f32[{','.join(map(str, shape))}]{order}"


SHAPES = [(4, 6), (2, 3, 4), (24,), (4, 1, 6), (2, 2, 6), (8, 3)]


def every_split(shape: tuple[int, ...]) -> list[Split]:
    tried = itertools.product(range(len(shape)), (2, 3, 4), (1, 2, 3))
    return [Split(*each) for each in tried if shape[each[0]] % (each[1] * each[2]) == 0]


def check(shape: tuple[int, ...], operands: list[str], line: str, result: np.ndarray) -> None:
    """`result` has, for each of its elements, the number of the operand's element."""
    use = use_of(instruction_of(operands, line))
    assert passes(use)
    before = np.unravel_index(result, shape)
    possible = {blocks_of(before[split.dim], shape[split.dim], split).tobytes() for split in every_split(shape)}
    for split in every_split(result.shape):
        blocks = blocks_of(np.indices(result.shape)[split.dim], result.shape[split.dim], split)
        found = splits_before(use, split)
        if found is None:
            assert result.size != math.prod(shape) or blocks.tobytes() not in possible, (line, split)
            continue
        assert math.prod(each.parts for each in found) == split.parts
        number = np.zeros_like(blocks)
        for each in found:
            number = number * each.parts + blocks_of(before[each.dim], shape[each.dim], each)
        assert np.array_equal(number, blocks), (line, split)


@pytest.mark.parametrize("before", SHAPES)
@pytest.mark.parametrize("after", SHAPES)
def test_reshapes_and_bitcasts(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    if math.prod(before) != math.prod(after):
        return
    numbers = np.arange(math.prod(before))
    check(before, [spelled(before)], f"{spelled(after)} reshape(%p0)", numbers.reshape(after))
    check(before, [spelled(before)], f"{spelled(after)} bitcast(%p0)", numbers.reshape(after))
    for old in itertools.permutations(range(len(before))):
        for new in itertools.permutations(range(len(after))):
            # From the slowest in memory to the fastest; a layout is written from the fastest.
            memory = numbers.reshape(before).transpose(old).ravel()
            result = memory.reshape([after[each] for each in new]).transpose(np.argsort(new))
            line = f"{spelled(after, new[::-1])} bitcast(%p0)"
            check(before, [spelled(before, old[::-1])], line, result)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f32[4,6]{0,0}", "f32[4,6]{1,0}"),
        ("f32[4,6]{1,0}", "f32[4,6]{0}"),
        ("token[]", "f32[4,6]{1,0}"),
        ("f32[4,6]{1,0}", "(f32[4,6]{1,0})"),
    ],
)
def test_of_layouts_and_types_that_say_nothing(before: str, after: str) -> None:
    use = use_of(instruction_of([before], f"{after} bitcast(%p0)"))
    assert splits_before(use, Split(0, 2)) is None


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4)])
def test_transpositions(shape: tuple[int, ...]) -> None:
    numbers = np.arange(math.prod(shape)).reshape(shape)
    for order in itertools.permutations(range(len(shape))):
        result = numbers.transpose(order)
        line = f"{spelled(result.shape)} transpose(%p0), dimensions={{{','.join(map(str, order))}}}"
        check(shape, [spelled(shape)], line, result)


def test_others() -> None:
    numbers = np.arange(24).reshape(4, 6)
    wide = np.broadcast_to(numbers[:, None], (4, 3, 6))
    check((4, 6), ["f32[4,6]"], "f32[4,3,6] broadcast(%p0), dimensions={0,2}", wide)
    check((4, 6), ["f32[4,6]"], "f32[4,6] negate(%p0)", numbers)
    check((4, 6), ["f32[4,6]"], "f32[4,3] slice(%p0), slice={[0:4], [0:3]}", numbers[:, :3])
    twice = np.concatenate([numbers, numbers], 1)
    check((4, 6), ["f32[4,6]"], "f32[4,12] concatenate(%p0, %p0), dimensions={1}", twice)


PRODUCTS = {
    "bij,bjk->bik": "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    "ji,jk->ik": "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "ij,kj->ik": "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "ibj,jb->bi": "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
}


@pytest.mark.parametrize("equation", PRODUCTS)
def test_products_keep_the_letters_of_einsum(equation: str) -> None:
    operands, result = equation.split("->")
    sizes = dict(zip("bijk", (2, 4, 6, 8), strict=True))
    types = [spelled(tuple(sizes[each] for each in operand)) for operand in operands.split(",")]
    line = f"{spelled(tuple(sizes[each] for each in result))} dot(%p0, %p1), {PRODUCTS[equation]}"
    instruction = instruction_of(types, line)
    for position, operand in enumerate(operands.split(",")):
        use = use_of(instruction, position)
        for dim, letter in enumerate(result):
            expected = operand.index(letter) if letter in operand else None
            assert dimension_before(use, dim, 2) == expected


def test_what_is_reduced_or_padded_is_no_dimension_of_the_result() -> None:
    types = ["f32[4,6,8]", "f32[]"]
    reduced = instruction_of(types, "f32[4,8] reduce(%p0, %p1), dimensions={1}, to_apply=%sum")
    assert [dimension_before(use_of(reduced), dim, 2) for dim in range(2)] == [0, 2]
    assert [passes(use_of(reduced, position)) for position in range(2)] == [True, False]
    padded = instruction_of(types, "f32[4,7,8] pad(%p0, %p1), padding=0_0x0_1x0_0")
    assert [dimension_before(use_of(padded), dim, 2) for dim in range(3)] == [0, None, 2]
    assert [passes(use_of(padded, position)) for position in range(2)] == [True, False]
    types = ["f32[4,6]", "f32[2,6]", "s32[]", "s32[]"]
    updated = instruction_of(types, "f32[4,6] dynamic-update-slice(%p0, %p1, %p2, %p3)")
    assert [passes(use_of(updated, position)) for position in range(4)] == [True, True, False, False]
    assert [dimension_before(use_of(updated, position), dim, 2) for position in (0, 1) for dim in (0, 1)] == [
        0,
        1,
        None,
        1,
    ]


def test_lookups() -> None:
    """`table[tokens]`: rows of 8 for indices of [4, 6]."""
    types = ["f32[16,8]", "s32[4,6,1]"]
    line = (
        "f32[4,6,8] gather(%p0, %p1), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=2, slice_sizes={1,8}"
    )
    instruction = instruction_of(types, line)
    assert [dimension_before(use_of(instruction, 0), dim, 2) for dim in range(3)] == [None, None, 1]
    assert [dimension_before(use_of(instruction, 1), dim, 2) for dim in range(3)] == [0, 1, None]
