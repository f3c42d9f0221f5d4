"""The pytest plugin: goldens beside the tests.

    def test_step(shardscope_golden):
        shardscope_golden(step, params, batch, budgets=["all-gather over tp: none"])

`pytest --shardscope-update` writes them. They lie in a folder `__shardscope__` beside the test's file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardscope.inspector.report import Report

FOLDER = "__shardscope__"

_UNFIT = re.compile(r"[^\w.-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shardscope-update`."""
    group = parser.getgroup("shardscope")
    group.addoption("--shardscope-update", action="store_true", help="write shardscope's goldens instead of comparing")


class Golden:
    """Compares calls with what they communicated before; made for one test."""

    def __init__(self, path: Path, *, update: bool) -> None:
        self._path = path
        self._update = update

    def __call__(
        self,
        function: Callable[..., Any] | Report,
        /,
        *args: Any,
        golden_name: str = "",
        budgets: Sequence[str] = (),
        validate: bool = False,
        **kwargs: Any,
    ) -> Report:
        """Fail unless a call communicates what it did, and within budgets; gives its report.

        `golden_name` distinguishes several goldens of one test. A report may stand in place of function and arguments.
        With `validate` it fails also if the compiled program computes something else than its source.
        """
        __tracebackhide__ = True
        from shardscope.golden_file import compare_with_golden

        suffix = _UNFIT.sub("-", f"-{golden_name}") if golden_name else ""
        path = self._path.with_name(f"{self._path.name}{suffix}.json")
        report, problem = compare_with_golden(
            path, function, args, kwargs, budgets, update=self._update, validate=validate
        )
        if problem:
            pytest.fail(problem, pytrace=False)
        return report


@pytest.fixture
def shardscope_golden(request: pytest.FixtureRequest) -> Golden:
    """Compare what a call communicates with a golden of this test: `shardscope_golden(function, *args)`."""
    file = Path(str(request.path))
    name = _UNFIT.sub("-", request.node.name).strip("-")
    update = bool(request.config.getoption("--shardscope-update"))
    return Golden(file.parent / FOLDER / file.stem / name, update=update)
