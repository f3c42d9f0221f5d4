"""Random modules in generic form, printed and spelled in any other way: read as what they were made from."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from shardscope.parsers.mlir import MlirModule, Operation, parse_module
from shardscope.parsers.mlir.lists import quote
from shardscope.parsers.source import Source


@dataclass(frozen=True)
class Made:
    """An operation as it was made; of its regions each is a list of blocks, each of these arguments and operations."""

    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    operand_types: tuple[str, ...]
    result_types: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    regions: tuple[tuple[tuple[tuple[tuple[str, str], ...], tuple[Made, ...]], ...], ...] = ()


TAB, NEW_LINE, COMMENT = "\t", "\n    ", "  // it is so\n"
LETTERS = "abcxyz_019"
CHARACTERS = 'ab "\\{}()[]<>%#@^:,=/\n\t\x00é→-'
ELEMENTS = ("f32", "i1", "complex<f32>")
SIZES = ("", "8x", "4x?x")
PLAIN = ("true", "-7 : i64", "@f", '@"a b"', "dense<[[0, 1]]> : tensor<1x2xi64>", "array<i64: 1, 2>", "#a.b<c = (1)2>")


def word(chance: random.Random) -> str:
    return chance.choice("abcz_") + "".join(chance.choices(LETTERS, k=chance.randrange(8)))


def value(chance: random.Random) -> str:
    return f"%{chance.choice((word(chance), str(chance.randrange(1000))))}"


def some(chance: random.Random, make: Callable[[random.Random], str], most: int) -> list[str]:
    return [make(chance) for _ in range(chance.randrange(most + 1))]


def type_text(chance: random.Random, depth: int = 2) -> str:
    match chance.randrange(5 if depth else 4):
        case 0 | 1:
            return f"tensor<{chance.choice(SIZES)}{chance.choice(ELEMENTS)}>"
        case 2:
            return chance.choice(("!stablehlo.token", "tensor<?xf32, #stablehlo.bounds<4>>"))
        case 3:
            return "!a.b<c, d>"
        case _:
            return f"tuple<{', '.join(some(chance, lambda inner: type_text(inner, depth - 1), 3))}>"


def attribute(chance: random.Random, depth: int = 2) -> str:
    match chance.randrange(4 if depth else 2):
        case 0:
            return chance.choice(PLAIN)
        case 1:
            return quote("".join(chance.choices(CHARACTERS, k=chance.randrange(9))))
        case 2:
            return f"[{', '.join(some(chance, lambda inner: attribute(inner, depth - 1), 3))}]"
        case _:
            entries = some(chance, lambda inner: f"{word(inner)} = {attribute(inner, depth - 1)}", 3)
            return f"{{{', '.join(entries)}}}"


def made_up(chance: random.Random, depth: int = 3) -> Made:
    operands = some(chance, value, 3)
    results = tuple(dict.fromkeys(some(chance, value, 2)))
    regions = []
    for _ in range(chance.randrange(3) if depth else 0):
        blocks = []
        for _ in range(chance.choice((1, 1, 2))):
            arguments = tuple((name, type_text(chance)) for name in some(chance, value, 2))
            blocks.append((arguments, tuple(made_up(chance, depth - 1) for _ in range(chance.randrange(1, 3)))))
        regions.append(tuple(blocks))
    return Made(
        f"{chance.choice(('stablehlo', 'sdy', 'brand_new'))}.{word(chance)}",
        results,
        tuple(operands),
        tuple(type_text(chance) for _ in operands),
        tuple(type_text(chance) for _ in results),
        tuple({word(chance): attribute(chance) for _ in range(chance.randrange(4))}.items()),
        tuple(regions),
    )


def spelled(made: Made, blank: str = " ", line: str = "\n", indent: str = "") -> str:
    """In generic form; `blank` and `line` are what is between words and at the end of lines."""
    results = f"{', '.join(made.results)}{blank}={blank}" if made.results else ""
    attributes = f",{blank}".join(f"{key} = {value}" for key, value in made.attributes)
    regions = f",{blank}".join(
        "{"
        + "".join(
            f"{line}{indent}^bb{number}({', '.join(f'{name}: {kind}' for name, kind in arguments)}):"
            + "".join(f"{line}{indent}  {spelled(each, blank, line, indent + '  ')}" for each in inner)
            for number, (arguments, inner) in enumerate(blocks)
        )
        + f"{line}{indent}}}"
        for blocks in made.regions
    )
    return (
        f'{results}"{made.name}"({", ".join(made.operands)})'
        + (f"{blank}<{{{attributes}}}>" if made.attributes else "")
        + (f"{blank}({regions})" if made.regions else "")
        + f"{blank}:{blank}({', '.join(made.operand_types)}) ->{blank}({', '.join(made.result_types)})"
    )


def read(text: str) -> MlirModule:
    return parse_module(Source("made", text.encode()))


def made_of(operation: Operation) -> Made:
    return Made(
        operation.name,
        operation.results,
        operation.operands,
        tuple(map(str, operation.operand_types)),
        tuple(map(str, operation.result_types)),
        tuple(operation.attributes.items()),
        tuple(
            tuple(
                (tuple((each.name, str(each.type)) for each in block.arguments), tuple(map(made_of, block.operations)))
                for block in region.blocks
            )
            for region in operation.regions
        ),
    )


@pytest.mark.once
@pytest.mark.parametrize("seed", range(60))
def test_printed(seed: int) -> None:
    chance = random.Random(seed)
    made = [made_up(chance) for _ in range(3)]
    module = read("".join(f"{spelled(each)}\n" for each in made))
    assert list(map(str, module.problems)) == []
    assert list(map(made_of, module.body)) == made
    assert module.opcode_counts() == Counter(each.name for each in module.walk())


@pytest.mark.parametrize("seed", range(60))
def test_spelled_anyhow(seed: int) -> None:
    """With comments, which may look like operations, and with other white space."""
    chance = random.Random(seed)
    made = [made_up(chance) for _ in range(3)]
    text = "".join(
        f"{chance.choice(('', '  ', '// a comment: %0 = a.b() {'))}\n"
        f"{spelled(each, chance.choice((' ', '  ', TAB, NEW_LINE)), chance.choice((NEW_LINE, COMMENT)))}\n"
        for each in made
    )
    module = read(text)
    assert list(map(str, module.problems)) == []
    assert list(map(made_of, module.body)) == made
    assert module.opcode_counts() == Counter(each.name for each in module.walk())
