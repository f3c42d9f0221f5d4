"""Bytes by module: of each module as many as those of the paths that begin with its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.render.modules import Module, Path, module_tree, modules_of, rows_of_tree
from shardscope.inspector.report import Collective, CollectivePart, SourcePosition
from shardscope.parsers.source import Span

PATHS = ("a",), ("a", "b"), ("a", "b", "c"), ("a", "d"), ("e", "b"), ("e", "0"), ("e", "1"), ()


def collective(wire: int | None, executions: int | None, module: Path, parts: Iterable[tuple[Path, int]]) -> Collective:
    listed = tuple(
        CollectivePart(ArrayType("f32", (size,)), SourcePosition(), None, "unknown", "unknown", path, None)
        for path, size in parts
    )
    return Collective(
        *("hlo", "all-reduce", "s", "main", Span(0, 1), None, None, (), (), (), 8, 8, wire, executions),
        is_async=False, origin="unknown", direction="unknown", source=SourcePosition(), parts=listed, module=module,
    )  # fmt: skip


def nodes(module: Module, path: Path = ()) -> Iterator[tuple[Path, int]]:
    yield path, module.wire_bytes
    for key, inside in module.inside.items():
        yield from nodes(inside, (*path, key))


@pytest.mark.parametrize("seed", range(20))
def test_a_module_has_the_bytes_of_all_in_it(seed: int) -> None:
    """The parts share a collective's bytes by their sizes, and numbers of layers are one module."""
    chosen = random.Random(seed)
    found, expected = [], Counter[Path]()
    for _ in range(chosen.randrange(1, 5)):
        sizes = [chosen.randrange(1, 5) for _ in range(chosen.randrange(4))]
        parts = [(chosen.choice(PATHS), size) for size in sizes]
        unit, executions, module = chosen.randrange(4), chosen.choice((1, 3, None)), chosen.choice(PATHS)
        found.append(collective(unit * sum(sizes or [1]) or None, executions, module, parts))
        for path, size in parts or [(module, 1)]:
            keys = tuple("*" if key.isdecimal() else key for key in path)
            expected.update({keys[:depth]: unit * size * (executions or 1) for depth in range(len(keys) + 1)})
    tree = module_tree(found)
    assert Counter(dict(nodes(tree))) == expected
    below = {path: size for path, size in nodes(tree) if path}
    shown = [(depth, label, module.wire_bytes) for depth, label, module in rows_of_tree(tree.inside)]
    assert {size for _, _, size in shown} == {*below.values()}
    for depth in {depth for depth, _, _ in shown}:
        assert sum(size for at, _, size in shown if at == depth) <= tree.wire_bytes
    firsts = [size for depth, _, size in shown if depth == 0]
    assert firsts == sorted(firsts, reverse=True)


def test_an_only_module_is_one_with_that_which_it_is_in() -> None:
    only = collective(8, 1, ("layers", "3", "w"), ()), collective(4, 1, ("layers", "5", "w"), ())
    assert [(depth, label) for depth, label, _ in rows_of_tree(module_tree(only).inside)] == [(0, "layers[*].w")]
    both = *only, collective(1, 1, ("layers", "7"), ())
    assert [(depth, label, module.wire_bytes) for depth, label, module in rows_of_tree(module_tree(both).inside)] == [
        *((0, "layers[*]", 13), (1, "w", 12))
    ]


def test_of_numbers_and_arrays_only_the_arrays_count_where_that_is_asked() -> None:
    mixed = collective(8, 1, (), [(("loss",), 1), (("a", "2"), 4)])
    assert modules_of(mixed) == [("loss",), ("a", "*")]
    assert modules_of(mixed, scalars=False) == [("a", "*")]
    assert modules_of(collective(8, 1, (), [(("loss",), 1)]), scalars=False) == [("loss",)]
