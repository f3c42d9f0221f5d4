"""Records are what `dataclasses.dataclass(frozen=True, slots=True)` makes of the same class."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import field
from typing import Any

import pytest
from shardscope.inspector.records import dataclass


def made_by(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        name: str = "origin"
        seen: dict[str, int] = field(default_factory=dict)

        @property
        def double(self) -> int:
            return 2 * self.x

    return Point


@pytest.fixture
def ours() -> Any:
    return made_by(dataclass)


@pytest.fixture
def theirs() -> Any:
    return made_by(dataclasses.dataclass)


def test_objects(ours: Any, theirs: Any) -> None:
    for args, kwargs in [((1,), {}), ((2, "a"), {}), ((3,), {"seen": {"a": 1}}), ((), {"x": 4})]:
        mine, other = ours(*args, **kwargs), theirs(*args, **kwargs)
        assert repr(mine) == repr(other)
        assert dataclasses.asdict(mine) == dataclasses.asdict(other)
        assert repr(dataclasses.replace(mine, x=7)) == repr(dataclasses.replace(other, x=7))
        assert mine == ours(*args, **kwargs) != ours(9)
        assert mine.double == other.double
        assert not hasattr(mine, "__dict__")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        ours()


def test_classes_before_any_object(ours: Any, theirs: Any) -> None:
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert (ours.__doc__, ours.__name__, ours.__qualname__) == (theirs.__doc__, theirs.__name__, theirs.__qualname__)
    assert [(each.name, each.type, each.default) for each in dataclasses.fields(ours)] == [
        (each.name, each.type, each.default) for each in dataclasses.fields(theirs)
    ]
    assert dataclasses.is_dataclass(ours)


def test_nothing_changes(ours: Any) -> None:
    point = ours(1)
    for change in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    with pytest.raises((AttributeError, TypeError)):
        point.other = 1


def test_the_first_objects_of_many_threads(ours: Any) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(ours(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ours(1)] * 8
