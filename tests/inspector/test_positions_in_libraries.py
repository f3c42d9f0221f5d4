"""The user's line of a stack that goes through libraries, and the call of a helper that tells its stacks apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shardscope.inspector.report import FindingPlace, SourcePosition
from shardscope.inspector.report.position import (
    ARROW,
    call_sites,
    called_from,
    library_text,
    short_name,
    with_call_site,
)
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


def at(*lines: int, file: str = "m.py") -> SourcePosition:
    """A stack, innermost first."""
    return SourcePosition.exact(tuple(Frame(file, f"f{line}", line) for line in lines))


def test_calls_of_a_helper() -> None:
    """Named where stacks of one line part, and nowhere else; where one ends before the other, nothing tells them."""
    one, two, deep, alone, other = at(1, 5, 9), at(1, 6, 9), at(1, 5, 8), at(2, 5), at(1, 7, file="n.py")
    assert call_sites([one, two, deep, alone, other, SourcePosition()]) == {
        one: at(5, 9),
        two: at(6, 9),
        deep: at(5, 8),
    }
    assert call_sites([one, deep]) == {one: at(9), deep: at(8)}
    assert call_sites([one, one, alone]) == {}
    assert call_sites([at(1), one]) == {}
    assert call_sites([at(1, 5, 8, 9), one]) == {}  # a frame is lost
    three = [at(1, 5, 7), at(1, 5, 8), at(1, 5, 9)]
    assert call_sites(three) == {each: at(line) for each, line in zip(three, (7, 8, 9), strict=True)}
    sites = call_sites([one, two])
    assert with_call_site(sites, one, "line 1", "m.py") == f"line 5{ARROW}line 1"
    assert with_call_site(sites, alone, "line 2", "m.py") == "line 2"
    assert called_from(at(5), "m.py:1") == f"m.py:5{ARROW}m.py:1"
    assert called_from(None, "m.py:1") == "m.py:1"
    assert FindingPlace("it", at(1), call_site=at(5)).text == f"m.py:5{ARROW}m.py:1"


INSTALLED = "/lib/site-packages/flax/nn.py"


@pytest.mark.parametrize(
    ("stack", "text", "own", "function"),
    [
        ((), "", "", ""),
        ((Frame("/a/m.py", "step", 8),), "m.py:8", "m.py:8 step", "m.py:8 step"),
        ((Frame("/a/m.py", "", 8),), "m.py:8", "m.py:8", "m.py:8"),
        ((Frame("/a/m.py", "step", 0),), "m.py", "m.py step", "m.py step"),
        (
            (Frame(INSTALLED, "call", 4), Frame("/a/m.py", "step", 8)),
            "m.py:8", "m.py:8 step", "m.py:8 step, via flax/nn.py:4",
        ),
    ],
)  # fmt: skip
def test_positions_as_texts(stack: tuple[Frame, ...], text: str, own: str, function: str) -> None:
    position = SourcePosition.exact(stack)
    assert (position.text(), position.own_text(), position.function_text()) == (text, own, function)
    mine = next((frame for frame in stack if frame.file == "/a/m.py"), None)
    assert (position.frame, position.confidence) == (mine, "exact" if stack else "none")
    assert position.file == (None if mine is None else mine.file)
    assert position.line == (None if mine is None else mine.line)
    assert position.function == (None if mine is None else mine.function)
    assert position.library == (stack[0] if len(stack) > 1 else None)


def test_lines_of_installed_packages() -> None:
    assert library_text(Frame(INSTALLED, "call", 4)) == "flax/nn.py:4"
    assert library_text(Frame("/a/m.py", "step", 8)) == "m.py:8"
