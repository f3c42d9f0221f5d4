"""MLIR's own parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ..conftest import read_in_cpp

Read = Callable[[Iterable[Path]], dict[Path, dict[str, Any]]]


@pytest.fixture(scope="session")
def mlir() -> Read:
    """Reads texts as MLIR does: for each {"operations"} or {"error"}; see `cpp_reader.py`."""
    return partial(read_in_cpp, Path(__file__).with_name("cpp_reader.py"))
