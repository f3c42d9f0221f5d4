"""XLA's own parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ..conftest import read_in_cpp

Read = Callable[[Iterable[Path]], dict[Path, dict[str, Any]]]


@pytest.fixture(scope="session")
def xla() -> Read:
    """Reads texts as XLA does: for each {"computations"} or {"error"}; see `cpp_reader.py`."""
    if not find_spec("jaxlib._hlo"):
        pytest.skip("this jaxlib shows nothing of what its parser reads")
    return partial(read_in_cpp, Path(__file__).with_name("cpp_reader.py"))
