"""Every text of the corpus, read by us and by XLA: the same instructions."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.hlo.printed import doubtful
from shardscope.parsers.source import Source

from tests.sweeps import examples

from .agreement import differences
from .conftest import Read
from .coverage import untold


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[Path]:
    """The texts of HLO modules; dumps hold other files too."""
    found = [path for path in corpus if path.suffix != ".mlir" and path.read_bytes().startswith(b"HloModule ")]
    assert len(found) > examples(150, 500)
    return found


@pytest.fixture(scope="module")
def modules(texts: list[Path]) -> dict[Path, HloModule]:
    return {path: parse_module(Source(path.name, path.read_bytes())) for path in texts}


def test_reads_every_text_without_a_problem(modules: dict[Path, HloModule]) -> None:
    assert [str(problem) for module in modules.values() for problem in module.problems] == []


def test_finds_what_xla_finds(modules: dict[Path, HloModule], xla: Read) -> None:
    answers = xla(modules)
    read = {path: answer for path, answer in answers.items() if "error" not in answer}
    # XLA does not read all that it prints for GPUs: an attribute of theirs is unknown to its parser.
    assert len(read) > 0.9 * len(modules)
    disagreements = [each for path in read for each in differences(modules[path], read[path]["computations"])]
    assert disagreements == []


def test_each_byte_is_of_an_instruction(modules: dict[Path, HloModule]) -> None:
    assert [text for module in modules.values() for text in untold(module)] == []


def test_scans_agree_with_the_instructions_one_by_one(modules: dict[Path, HloModule]) -> None:
    for module in modules.values():
        instructions = [each for computation in module.computations for each in computation.instructions]
        assert list(module.rows()) == [(each.name, each.type_text, each.opcode) for each in instructions]
        for opcodes in ({"parameter"}, {"all-reduce", "all-reduce-start", "add", "fusion"}):
            wanted = [each.span for each in instructions if each.opcode in opcodes]
            assert [each.span for each in module.with_opcode(opcodes)] == wanted
        last = instructions[-1]
        assert module.instruction_at(last.span.end - 1).name == last.name


def test_nothing_that_a_printer_wrote_is_doubted(modules: dict[Path, HloModule]) -> None:
    """The grammar is asked about what one pattern over all lines doubts; about printed text it would take minutes."""
    for module in modules.values():
        body = module.computations[0].body_start, module.computations[-1].body_end
        assert [match[0] for match in doubtful().finditer(module.source.data, *body)] == []
