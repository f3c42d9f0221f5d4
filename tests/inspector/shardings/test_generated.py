"""Programs made at random: requested and actual shardings of arguments and outputs against those that JAX has."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.placement import same
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.shardings.requested import requested_sharding

from tests.sweeps import sampled

PROGRAMS = Path(__file__).parent / "programs"
FUNCTIONS = [f"generated.py:program_{n}" for n in (0, 4, 10, 17)] + [f"forms.py:form_{n}" for n in (2, 4, 7, 8)]


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 4, 2))
def test_shardings_are_those_of_jax(function: str) -> None:
    *_, found = capture(Request(f"{PROGRAMS}/{function}", live=False))
    assert found.failure is None, found.failure
    report = inspect(found)
    assert [placed for placed in report.messages if placed.message.text.startswith("internal")] == []
    rows = {(row.role, row.name): row for row in report.shardings if row.role in ("argument", "output")}
    for role, known in (("argument", found.arguments), ("output", found.outputs)):
        for value in known:
            row = rows.get((role, value.path))
            if row is None:
                # What nothing uses has no place in the compiled program.
                assert value.actual is None
                continue
            # On explicit axes the type asks for a sharding.
            assert row.requested is None or value.spec is not None or "@" in value.type
            # JAX names the axes of the compiled program; of requested ones, those that are longer than 1 count.
            if value.actual is not None:
                assert row.sharding is not None
                actual = requested_sharding(type(value)(value.path, value.type, value.actual), report.meshes)
                assert actual is not None
                assert same(row.sharding.closed(), actual), (role, value.path, row.spec, value.actual)
                if value.spec is not None:
                    wanted = requested_sharding(value, report.meshes)
                    assert wanted is not None
                    assert row.agrees is same(wanted, actual)
