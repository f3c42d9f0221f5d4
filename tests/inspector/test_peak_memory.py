"""What is alive at the peak: against the types in the program, and against what the compiler accounts for."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest
from shardscope.inspector.capture.model import Capture, Memory
from shardscope.inspector.cost.peak_memory import peak_memory
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture


@pytest.fixture
def trained(sample: SampleCapture) -> Capture:
    return sample("fsdp_tp:grad")


def test_every_value_has_its_instruction_and_size(trained: Capture) -> None:
    peak = inspect(trained).peak
    assert peak is not None
    if jax.__version_info__ < (0, 10):
        assert trained.peak is None
        pytest.skip("XLA of that time writes no live ranges for the CPU")
    assert peak.alive
    assert trained.memory is not None
    assert peak.bytes >= max(sum(value.bytes for value in peak.alive), trained.memory.peak or 0)
    assert peak.capacity is None
    assert peak.fits is None
    assert [value.bytes for value in peak.alive] == sorted((value.bytes for value in peak.alive), reverse=True)
    arguments = [value for value in peak.alive if value.opcode == "argument"]
    assert {value.op_name for value in arguments} <= {value.path for value in trained.arguments}
    for value in peak.alive:
        assert value.type, value
        type = str(value.type)
        if type.startswith("f32["):
            dims = [int(size) for size in type[4:-1].split(",") if size]
            elements = 1
            for size in dims:
                elements *= size
            assert value.bytes == 4 * elements
    assert any(value.source.frame is not None for value in peak.alive)


def test_accounts_of_all_kinds() -> None:
    assert peak_memory(Program(Capture())) is None
    assert peak_memory(Program(Capture(memory=Memory()))) is None
    held = peak_memory(Program(Capture(memory=Memory(arguments=10, outputs=5, temporaries=7, aliased=5, peak=12))))
    assert held is not None
    assert held.bytes == 17


def test_a_broken_list_is_no_error(trained: Capture) -> None:
    broken = Source(
        "peak", b"Live ranges at 5\n    a{0: 12\n    %{}: x bytes\n    \xff{}: 8 bytes (cumulative: 8 bytes)\n"
    )
    peak = peak_memory(Program(replace(trained, peak=broken)))
    assert peak is not None
    assert [value.bytes for value in peak.alive] == [8]
    assert peak.alive[0].source.frame is None
