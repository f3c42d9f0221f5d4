"""The user's line of a stack that goes through libraries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shardscope.inspector.report import SourcePosition
from shardscope.inspector.report.position import short_name
from shardscope.parsers.source import Frame

LIBRARY = "/env/lib/python3.13/site-packages/flax/nnx/nn/linear.py"
WRAPPER = "/env/lib/python3.13/site-packages/flax/nnx/transforms/compilation.py"
OTHER = "/env/lib/python3.13/site-packages/trainer/step.py"
DEBIAN = "/usr/lib/python3/dist-packages/optax/transform.py"


@pytest.mark.parametrize(
    ("files", "own", "library"),
    [
        (("/home/me/model.py", "/home/me/step.py"), "/home/me/model.py", None),
        ((LIBRARY, "/home/me/model.py", "/home/me/step.py"), "/home/me/model.py", LIBRARY),
        ((LIBRARY, "/home/me/model.py", LIBRARY, WRAPPER), "/home/me/model.py", LIBRARY),
        ((DEBIAN, "/home/me/step.py"), "/home/me/step.py", DEBIAN),
        ((LIBRARY, OTHER), OTHER, LIBRARY),
        ((OTHER,), OTHER, None),
        ((), None, None),
    ],
)
def test_the_first_frame_outside_of_libraries(files: tuple[str, ...], own: str | None, library: str | None) -> None:
    position = SourcePosition.exact(tuple(Frame(file, "f", line) for line, file in enumerate(files, 1)))
    assert position.file == own
    assert (None if position.library is None else position.library.file) == library


def test_the_way_into_the_library_is_beside_it() -> None:
    position = SourcePosition.exact((Frame(LIBRARY, "__call__", 434), Frame("/home/me/model.py", "loss", 8)))
    assert position.function_text() == "model.py:8 loss, via flax/nnx/nn/linear.py:434"


def test_a_function_goes_by_the_innermost_name() -> None:
    """Python's own `__qualname__` of functions in functions."""

    class Trainer:
        def fit(self) -> list[Callable[[], None]]:
            def step() -> Callable[[], None]:
                return lambda: None

            return [step, step()]

    named, nameless = Trainer().fit()
    assert short_name(named.__qualname__) == short_name(nameless.__qualname__) == "step"
    assert short_name(Trainer.fit.__qualname__) == "Trainer.fit"
    assert short_name("<lambda>") == "<lambda>"
