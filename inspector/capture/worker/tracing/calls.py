"""How often each program is called.

A call through C++ ends with the hook that JAX has for its checks for NaNs, which is given the jitted function and the
arguments. Any other call goes through `ExecuteReplicated.__call__`, on whose stack the jitted function's `cache_miss`
is. Both know the variables of `cache_miss`: those tell which function it is, and the arguments which of its programs.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import weakref
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from .hooks import CallHook
from .signatures import NO_STATIC, Signature, Static, Telling, signature_of, static_of, telling_apart

MISSES = {"cache_miss": ("fun", "jit_info"), "call_impl_cache_miss": ("jaxpr",)}
"""JAX's functions for calls that C++ cannot make (JAX 0.7 to 0.12), and the variables that tell them apart."""

COMPILED_MISS = "aot_cache_miss"
"""That of a compiled function, `jit(f).lower(…).compile()`; its variable `self` has the executable."""

MAX_DEPTH = 40
"""Frames in which a `cache_miss` is searched for."""

_INSTANCES = itertools.count()


class Callee:
    """The programs of one jitted function; `only` is the number of the one, where there can be no other.

    Calls of a helper, a function of JAX's own that communicates nothing, are not counted.
    """

    def __init__(self, static: Static, internal: bool, is_known_from_start: bool, keep: Any = None) -> None:
        self.only: int | None = None
        self.keep = keep
        self._static = static
        self.is_helper = internal
        self._is_known_from_start = is_known_from_start
        self._numbers: dict[Signature, int] = {}
        self._telling = Telling()
        self._short: dict[Signature, int] = {}

    @property
    def numbers(self) -> set[int]:
        """The numbers of its programs."""
        return set(self._numbers.values())

    def learn(self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Calls with such arguments are those of this program."""
        signature = signature_of(args, kwargs, self._static)
        if self._numbers.get(signature) == number:
            return
        self._numbers[signature] = number
        self.only = number if self._is_known_from_start and len(self.numbers) == 1 else None
        self._telling = telling_apart(self._numbers) if self._is_known_from_start else Telling()
        self._short = {self._telling.of(each): number for each, number in self._numbers.items()}

    def number_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
        """The program that such arguments call; None where that is not known."""
        return self._short.get(signature_of(args, kwargs, self._static, self._telling))


class Calls:
    """Counts calls in `counts`, by program; `inexact` is called with those that cannot be distinguished.

    `called` is called with the program of each call through C++.
    """

    def __init__(
        self,
        counts: Any,
        inexact: Callable[[tuple[int, ...]], None],
        is_internal: Callable[[Any], bool],
        is_known_from_start: bool,
        called: Callable[[int], None] | None = None,
    ) -> None:
        self._counts = counts
        self._inexact = inexact
        self._is_internal = is_internal
        self._is_known_from_start = is_known_from_start
        self._called = called
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._callees: dict[tuple[int, ...], Callee] = {}
        self._told: set[int] = set()
        self._communicating: set[int] = set()
        self._attribute = f"_shardscope_callee_{next(_INSTANCES)}"

    def add(self, replicated: Any, number: int, communicates: bool) -> None:
        """What `ExecuteReplicated` runs is this program."""
        self._numbers[replicated] = number
        if communicates:
            self._communicating.add(number)

    def number(self, replicated: Any) -> int | None:
        """The program that `ExecuteReplicated` runs."""
        return self._numbers.get(replicated)

    def executed(self, replicated: Any) -> int | None:
        """Count a call that did not go through C++; its program."""
        number = self.number(replicated)
        if number is None:
            return None
        self._counts[number] += 1
        has_effects = getattr(replicated, "ordered_effects", ()) or getattr(replicated, "has_unordered_effects", False)
        found = None if has_effects else callers(sys._getframe(2))  # with effects, C++ never makes the call
        if found is not None and (callee := self._callee_of(found)) is not None:
            callee.is_helper = callee.is_helper and number not in self._communicating
            callee.learn(number, found.get("args_", found.get("args", ())), found.get("kwargs", {}))
        return number

    def hook(self, complain: Callable[[Exception], None]) -> CallHook:
        """What counts the calls that go through C++; as short as it can be, for it runs with each of them."""
        attribute, counts, called = self._attribute, self._counts, self._called

        def ended(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> None:
            number = None
            try:
                callee = getattr(jitted, attribute, None) or self._of_jitted(jitted)
                if callee.is_helper:
                    return
                number = callee.only
                if number is None:
                    number = callee.number_of(args, kwargs)
                    if number is None:
                        self._tell(callee)
                        return
                counts[number] += 1
            except Exception as error:
                complain(error)
            if called is not None and number is not None:
                called(number)

        return ended

    def _tell(self, callee: Callee) -> None:
        numbers = callee.numbers - self._told
        if numbers:
            self._told |= numbers
            self._inexact(tuple(sorted(numbers)))

    def _of_jitted(self, jitted: Any) -> Callee:
        miss = inspect.unwrap(jitted._cache_miss)
        cells = zip(miss.__code__.co_freevars, miss.__closure__ or (), strict=True)
        variables = {"": miss.__name__, **{name: cell.cell_contents for name, cell in cells if is_filled(cell)}}
        callee = self._callee_of(variables) or Callee(NO_STATIC, internal=True, is_known_from_start=True)
        setattr(jitted, self._attribute, callee)
        return callee

    def _callee_of(self, variables: Mapping[str, Any]) -> Callee | None:
        """That of a `cache_miss` with these variables; its name is under the empty one."""
        if variables[""] == COMPILED_MISS:
            number = self._numbers.get(getattr(variables.get("self"), "unsafe_call", None))
            callee = Callee(NO_STATIC, internal=False, is_known_from_start=True)
            callee.only = number
            return callee if number is not None else None
        names = MISSES.get(variables[""], ())
        if not names or not all(name in variables for name in names):
            return None
        owners = [variables[name] for name in names]
        key = tuple(map(id, owners))
        if key not in self._callees:
            callees = self._callees
            try:
                keep: Any = weakref.ref(owners[0], lambda _: callees.pop(key, None))
            except TypeError:
                keep = owners[0]
            internal = self._is_internal(variables.get("fun"))
            self._callees[key] = Callee(static_of(owners[-1]), internal, self._is_known_from_start, keep)
        return self._callees[key]


def callers(frame: FrameType | None) -> dict[str, Any] | None:
    """The variables of the innermost `cache_miss` on the stack, and its name under the empty one."""
    for _ in range(MAX_DEPTH):
        if frame is None:
            return None
        if (name := frame.f_code.co_name) in MISSES or name == COMPILED_MISS:
            return {"": name, **frame.f_locals}
        frame = frame.f_back
    return None


def is_filled(cell: Any) -> bool:
    """Whether a cell of a closure has a value."""
    try:
        cell.cell_contents  # noqa: B018 (it raises where there is nothing)
    except ValueError:
        return False
    return True
