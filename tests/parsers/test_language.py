"""HLO, MLIR, and what is neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.parsers import parse
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule
from shardscope.parsers.text.modules import exported_bytecode, language, other_format

HLO = """\
HloModule m

%g {
  ROOT %x = f32[] parameter(0)
}

ENTRY %e (a: f32[8], b: f32[]) -> (f32[8], f32[]) {
  %a = f32[8]{0} parameter(0)
  ROOT %t = (f32[8]{0}, /*index=1*/f32[]) tuple(%a, %b)
}
"""
MLIR = """\
#loc = loc(unknown)
module @m {
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %a : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


@pytest.mark.parametrize("before", ["", "// a remark\n", "I think\nthat this is it:\n\n```\n", "x = 3\n\n"])
def test_wherever_it_begins(before: str) -> None:
    for text, expected in ((HLO, "hlo"), (MLIR, "mlir")):
        assert language((before + text).encode()) == expected
        assert language((before + text + HLO + MLIR).encode()) == expected


def test_parts() -> None:
    for first in range(len(HLO.splitlines()) - 1):
        assert language("\n".join(HLO.splitlines()[first:]).encode()) == "hlo"
    for first in range(4):
        assert language("\n".join(MLIR.splitlines()[first:]).encode()) == "mlir"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        # The first bytes of what jaxlib 0.10.2 wrote of one module.
        (b"ML\xefR\rMLIR23.0.0git\x00\x01!\x07\x01\x05\t\x0b\x01\x03\x0f", "bytecode"),
        (b"\n\x0bjit__lambda\x12\x06main.1\x1a\xda\x02\n\x11fused_computation\x128\n\x07param_0", "protocol buffer"),
        (b"\n\xa6\t\n\x0bjit__lambda\x12\x06main.1\x1a\xda\x02\n\x11fused_computation\x128\n", "protocol buffer"),
        (b'# RUN: translate\nhlo_module {\n  name: "m"\n  entry_computation_name: "e"\n', "text of a protocol buffer"),
        (b'name: "main"\nentry_computation_name: "main.3"\n', "text of a protocol buffer"),
    ],
)
def test_modules_that_are_no_text(data: bytes, words: str) -> None:
    assert language(data) is None
    assert words in (other_format(data) or "")


@pytest.mark.parametrize("text", ["", "\n", "once upon a time", "x = foo(1)\n", "int main() {\n}\n", '{"name": "x"}'])
def test_other_texts(text: str) -> None:
    assert language(text.encode()) is None
    assert other_format(text.encode()) is None


def test_every_program_of_the_corpus(corpus: list[Path]) -> None:
    for path in corpus:
        data = path.read_bytes()
        if path.suffix == ".mlir" or data.startswith(b"HloModule"):
            assert language(data) == ("mlir" if path.suffix == ".mlir" else "hlo"), path


def test_parse(tmp_path: Path) -> None:
    """A path, a text, or its bytes; what is wanted by name is one name, and not its letters."""
    for text, opcode in ((HLO, "parameter"), (MLIR, "stablehlo.add")):
        (tmp_path / "f.txt").write_text(text)
        for given in (text, text.encode(), tmp_path / "f.txt", str(tmp_path / "f.txt"), f"HLO:\n {text}"):
            module = parse(given)
            assert type(module).__name__ == ("HloModule" if text == HLO else "MlirModule")
            search = module.with_opcode if isinstance(module, HloModule) else module.operations
            assert len(search(opcode)) == len(search({opcode})) == text.count(f" {opcode}")
    with pytest.raises(ParseError, match="neither HLO nor MLIR"):
        parse("once upon\na time")
    with pytest.raises(FileNotFoundError):
        parse("nowhere.hlo")


@pytest.mark.parametrize("size", [0, 3, 4, 5, 40, 41])
@pytest.mark.parametrize("behind", [b"", b"more"])
def test_bytecode_in_a_flat_buffer(size: int, behind: bytes) -> None:
    """A vector says how long it is: as long as more than the mark of bytecode, and no longer than the file."""
    module = b"ML\xefR" + bytes(36)
    data = (8).to_bytes(4, "little") + bytes(12) + size.to_bytes(4, "little") + module + behind
    expected = (module + behind)[:size] if 4 < size <= len(module + behind) else None
    assert exported_bytecode(data) == expected
    decoy = data[:16] + (2).to_bytes(4, "little") + b"ML\xefR" + data[16:]
    assert exported_bytecode(decoy) == expected
    assert exported_bytecode(b"\x03" + data[1:]) is None
    assert exported_bytecode(len(data).to_bytes(4, "little") + data[4:]) is None
