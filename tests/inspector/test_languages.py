"""Languages of stages: what each tells of a text agrees, and another one is one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from shardscope.inspector.capture.model import STAGES, Stage
from shardscope.inspector.correspondence.positions import frames_at, spans_of
from shardscope.inspector.ir import stage as stages
from shardscope.inspector.ir.language import KINDS, Embedded, Language, Module, Operation
from shardscope.inspector.ir.languages import LANGUAGES
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.report.stage_summary import summarize
from shardscope.parsers.errors import ParseError, Problem
from shardscope.parsers.source import Frame, Source, Span
from shardscope.tui import drawn_text

from .test_program import captured


@pytest.fixture(params=captured(0).stages, ids=lambda stage: stage.name)
def stage(request: pytest.FixtureRequest) -> ParsedStage:
    return ParsedStage(request.param)


def test_every_stage_has_a_language() -> None:
    assert {kind.dialect for kind in STAGES.values()} == LANGUAGES.keys()
    assert all(name == language.name for name, language in LANGUAGES.items())


def test_the_operations_of_a_text_agree_with_each_other(stage: ParsedStage) -> None:
    module = stage.module
    assert module is not None
    located = list(module.located())
    assert len({each.span for each in located}) == len(located)
    assert 0 < len(located) <= sum(module.opcode_counts().values())
    assert module.opcode_counts()["stablehlo.tanh" if stage.dialect == "mlir" else "tanh"] == 1
    for each in located:
        # A line of HLO begins with white space.
        offset = each.span.end - 1 if stage.dialect == "hlo" else each.span.start
        at = module.operation_at(offset)
        assert at is not None
        assert at.stack == each.stack
        assert frames_at(stage, offset) == each.stack
        assert (each.stack[0].file, each.stack[0].line) == ("model.py", 7)
        assert stage.text.line_around(offset) in spans_of(stage, "model.py", 7)
    assert module.operation_at(len(module.source.data) + 5) is None


def test_what_stands_out_lies_in_the_line(stage: ParsedStage) -> None:
    found = set()
    for line in stage.text.text().splitlines():
        position = 0
        for start, end, kind in LANGUAGES[stage.dialect].tokens(line):
            assert position <= start < end <= len(line)
            found.add(kind)
            position = end
    assert {"operation", "type"} <= found <= set(KINDS)


def test_a_text_in_no_language_is_a_problem() -> None:
    for dialect in LANGUAGES:
        broken = ParsedStage(Stage("s", dialect, Source("s", b"?")))  # type: ignore[arg-type]
        assert broken.module is None
        assert len(broken.problems) == 1
        assert frames_at(broken, 0) == ()
        assert summarize(broken).instructions == 0
        assert broken.text.data == b"?"


@dataclass(frozen=True)
class Listing:
    """A module of a made-up language: a line is an operation, and says from which line it comes; `+` is a kernel."""

    source: Source
    problems: tuple[Problem, ...] = ()
    devices: int = 1

    @property
    def embedded(self) -> tuple[Embedded, ...]:
        bodies = self.source.data.partition(b"+")[2].strip()
        return (Embedded("kernel", "listing", Source("kernel", bodies)),) if bodies else ()

    def opcode_counts(self) -> Counter[str]:
        return Counter(line.split()[0].decode() for line in self.source.data.partition(b"+")[0].splitlines())

    def operation_at(self, offset: int) -> Operation | None:
        line = self.source.line_around(offset)
        words = self.source.text(line).split()
        return Operation(line, (Frame("kernel.py", "", int(words[1])),)) if len(words) == 2 else None

    def located(self) -> Iterator[Operation]:
        starts = [0, *(at + 1 for at, byte in enumerate(self.source.data) if byte == ord("\n"))]
        return (found for start in starts if (found := self.operation_at(start)) is not None)


def read(source: Source) -> Module:
    if source.data.startswith(b"?"):
        raise ParseError(Problem("a question", source, Span(0, 1)))
    return Listing(source)


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> None:
    languages = {**LANGUAGES, "listing": Language("listing", read, r"(?P<operation>^\w+)")}
    monkeypatch.setattr(stages, "LANGUAGES", languages)
    monkeypatch.setattr(drawn_text, "LANGUAGES", languages)


@pytest.mark.usefixtures("listing")
def test_another_language() -> None:
    text = Source("s", b"load 3\nadd 4\nload 3\n")
    stage = ParsedStage(Stage("s", "listing", text))  # type: ignore[arg-type]
    assert summarize(stage).opcodes == {"load": 2, "add": 1}
    assert frames_at(stage, 9) == (Frame("kernel.py", "", 4),)
    assert spans_of(stage, "kernel.py", 3) == (Span(0, 6), Span(13, 19))
    assert drawn_text.of_dialect("listing")(0, "load 3") == [(0, 4, "operation")]  # type: ignore[arg-type]


@pytest.mark.usefixtures("listing")
def test_modules_inside_of_a_module() -> None:
    broken = ParsedStage(Stage("s", "listing", Source("s", b"load 3\n+\n? 5\n")))  # type: ignore[arg-type]
    assert list(broken.modules) == ["s"]
    assert [problem.message for problem in broken.problems] == ["a question"]
    whole = Source("s", b"load 3\n+\ndot 5\ndot 6\n")
    stage = ParsedStage(Stage("s", "listing", whole))  # type: ignore[arg-type]
    assert list(stage.modules) == ["s", "kernel"]
    assert summarize(stage).opcodes == {"dot": 2, "load": 1}
    assert stage.text is whole


@pytest.mark.parametrize("data", [b"x", b"{}", b"[1]\n\n"])
def test_what_is_no_recorded_jaxpr_is_wrong_from_its_beginning(data: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        LANGUAGES["jaxpr"].read(Source("f", data))
    assert raised.value.problem.span == Span(0, 1)
