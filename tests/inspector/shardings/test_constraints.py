"""What a constraint requests is what its line of the program says, wherever calls and loops put it."""

from __future__ import annotations

import ast
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect

PROGRAM = Path(__file__).parent / "programs" / "nested_constraints.py"


def requested() -> dict[tuple[int, str], str]:
    """The PartitionSpec at each line and column with a constraint, read from the source."""
    found = {}
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "on":
            found[node.lineno, ast.unparse(node)] = f"P({', '.join(ast.unparse(each) for each in node.args)})"
    return found


def test_each_constraint_requests_what_its_line_says() -> None:
    *_, final = capture(Request(f"{PROGRAM}:step", live=False))
    assert final.failure is None, final.failure
    rows = [row for row in inspect(final).shardings if row.role == "constraint"]
    by_line: dict[int, set[str]] = {}
    for (line, _), spec in requested().items():
        by_line.setdefault(line, set()).add(spec)
    seen: dict[int, set[str]] = {}
    for row in rows:
        assert row.source.line is not None
        assert row.agrees
        seen.setdefault(row.source.line, set()).add(str(row.requested))
    # `inner` is called three times, so its line has more than one row.
    assert len(rows) > len(by_line)
    assert seen == by_line
