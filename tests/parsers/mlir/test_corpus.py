"""Every text of the corpus, read by us and by MLIR: the same operations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from shardscope.parsers.mlir import MlirModule, parse_module
from shardscope.parsers.source import Source

from ..pieces import mlir_pieces
from .agreement import differences
from .conftest import Read


@pytest.fixture(scope="module")
def modules(corpus: list[Path]) -> dict[Path, MlirModule]:
    # Among the passes are kernels that some XLAs emit for CPUs, in LLVM's dialect, which jaxlib does not read.
    texts = [path for path in corpus if path.suffix == ".mlir" and path.parent.suffix != ".passes"]
    return {path: parse_module(Source(path.name, path.read_bytes())) for path in texts}


def test_reads_every_text_without_a_problem(modules: dict[Path, MlirModule]) -> None:
    assert modules
    assert [str(problem) for module in modules.values() for problem in module.problems] == []


def test_finds_what_mlir_finds(modules: dict[Path, MlirModule], mlir: Read) -> None:
    answers = mlir(modules)
    assert [f"{path.name}: {answer['error']}" for path, answer in answers.items() if "error" in answer] == []
    found = [each for path, answer in answers.items() for each in differences(modules[path], answer["operations"])]
    assert found == []
    print(f"\n{sum(len(answer['operations']) for answer in answers.values())} operations in {len(answers)} texts")


def test_pieces_put_together_are_the_text(modules: dict[Path, MlirModule]) -> None:
    for module in modules.values():
        data = module.source.data
        parts = list(mlir_pieces(module))
        assert b"".join(data[part.span.start : part.span.end] for part in parts) == data
        # Between the pieces of these texts there are only white space and the braces of regions.
        between = b"".join(data[part.span.start : part.span.end] for part in parts if part.kind == "other")
        assert not between.translate(None, b"{} \n\t")


def test_counts_agree_with_the_operations_one_by_one(modules: dict[Path, MlirModule]) -> None:
    for module in modules.values():
        operations = [each for each in module.walk() if each.text is module.text]
        assert module.opcode_counts() == Counter(each.name for each in operations)


def test_finds_operations_by_name_and_by_place(modules: dict[Path, MlirModule]) -> None:
    for module in modules.values():
        operations = [each for each in module.walk() if each.text is module.text]
        for name in ("stablehlo.all_reduce", "stablehlo.add", "sdy.sharding_constraint", "func.func", "return"):
            wanted = [each.span for each in operations if each.name == name]
            assert [each.span for each in module.operations({name})] == wanted
        for operation in operations:
            for place in (operation.span.start, operation.span.end - 1):
                at = module.operation_at(place)
                assert at is not None
                assert at.span == operation.span
        for operation in operations[:: len(operations) // 9 + 1]:
            assert operation.parent is None or operation in {
                each for region in operation.parent.regions for block in region.blocks for each in block.operations
            }
