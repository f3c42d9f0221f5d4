"""Records are what frozen dataclasses of the same fields are."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import pytest
from shardscope.parsers.record import Record


class Base(Record, frozen=True):
    kind: ClassVar[str] = "base"
    name: str
    numbers: tuple[int, ...] = ()


class Ours(Base, frozen=True, order=True):
    last: float = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class _Base:
    kind: ClassVar[str] = "base"
    name: str
    numbers: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Theirs(_Base):
    last: float = 0.5


GIVEN: tuple[dict[str, Any], ...] = (
    {"name": "a"},
    {"name": "a", "numbers": (1, 2)},
    {"name": "a", "numbers": (1, 2), "last": 2.0},
    {"name": "b", "last": float("inf")},
)


def test_equality_order_and_hashes() -> None:
    ours, theirs = [Ours(**each) for each in GIVEN], [Theirs(**each) for each in GIVEN]
    for mine, other in zip(ours, theirs, strict=True):
        assert [mine == each for each in ours] == [other == each for each in theirs]
        assert [mine < each for each in ours] == [other < each for each in theirs]
        assert [hash(mine) == hash(each) for each in ours] == [hash(other) == hash(each) for each in theirs]
        assert repr(mine).removeprefix("Ours") == repr(other).removeprefix("Theirs")
        assert pickle.loads(pickle.dumps(mine)) == mine
    assert Ours("a") != Base("a")
    with pytest.raises(TypeError, match="unhashable"):
        hash(Base("a", numbers=[1]))  # type: ignore[arg-type]


def test_fields_and_copies_as_of_dataclasses() -> None:
    assert [(each.name, each.type) for each in dataclasses.fields(Ours)] == [  # type: ignore[arg-type]
        (each.name, each.type) for each in dataclasses.fields(Theirs)
    ]
    for given in GIVEN:
        mine, other = (dataclasses.replace(each, numbers=(7,)) for each in (Ours(**given), Theirs(**given)))
        assert repr(mine).removeprefix("Ours") == repr(other).removeprefix("Theirs")
    with pytest.raises(TypeError, match="size"):
        dataclasses.replace(Ours("a"), size=1)  # type: ignore[call-arg]


def test_fields_do_not_change() -> None:
    record = Ours("a")
    with pytest.raises(AttributeError):
        record.name = "b"  # type: ignore[misc]
    assert not hasattr(record, "__dict__")
    assert Ours.__match_args__ == ("name", "numbers", "last")
