"""The number of calls of each program.

A call through C++ ends with the tree of the results, which JAX keeps with the program that it calls: the outermost node
is ours, and building it counts. Calls of other programs cost nothing. A call that C++ does not make goes through
`ExecuteReplicated.__call__`.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any


class Calls:
    """Counts calls in `counts`, by program; `called` gets the program and the results of each call through C++."""

    def __init__(self, counts: Any, called: Callable[[int, Any], None] | None = None) -> None:
        self._counts = counts
        self._called = called
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._counted: set[int] = set()
        self._runs: dict[int, weakref.ref[Any]] = {}
        self._leaf_of: Callable[[int], Any] | None = None
        self._stop: Callable[[], None] = lambda: None

    def add(self, replicated: Any, number: int, *, is_counted: bool) -> None:
        """Register the program that `ExecuteReplicated` runs; `is_counted` if its calls through C++ count too."""
        self._numbers[replicated] = number
        if is_counted:
            self._counted.add(number)
        if number in self._counted:
            self._runs[id(replicated.xla_executable)] = weakref.ref(replicated)

    def number(self, replicated: Any) -> int | None:
        """The program that `ExecuteReplicated` runs."""
        return self._numbers.get(replicated)

    def executed(self, replicated: Any) -> int | None:
        """Count a call that did not go through C++; its program."""
        number = self.number(replicated)
        if number is not None:
            self._counts[number] += 1
        return number

    def counting(self, executable: Any, results: Any) -> Any:
        """The tree of an executable's results, within a node that counts the calls if they are to be counted."""
        reference = self._runs.get(id(executable))
        replicated = reference() if reference is not None else None
        if replicated is None or replicated.xla_executable is not executable:
            return results
        if self._leaf_of is None:
            self._leaf_of, self._stop = _counting_leaves(self._counts, self._called)
        return self._leaf_of(self._numbers[replicated]).compose(results)

    def stop(self) -> None:
        """Count nothing more, whatever JAX still keeps."""
        self._stop()


def _counting_leaves(
    counts: Any, called: Callable[[int, Any], None] | None
) -> tuple[Callable[[int], Any], Callable[[], None]]:
    """Return a leaf whose node counts calls of a program, and the function that ends the counting.

    The node is one of JAX's registry for C++ (`jax._src.tree_util.dispatch_registry`, JAX 0.7 to 0.12).
    """
    from jax._src import tree_util

    class Counted:
        """The node, by the program's number."""

        def __init__(self, number: int) -> None:
            self.number = number

    def count(number: int, children: Any) -> Any:  # as short as it can be, for it runs with each call
        counts[number] += 1
        return children[0]

    def count_and_tell(number: int, children: Any) -> Any:
        counts[number] += 1
        if called is not None:
            called(number, children[0])
        return children[0]

    def leaf_of(number: int) -> Any:
        return tree_util.dispatch_registry.flatten(Counted(number))[1]

    def stop() -> None:
        nonlocal counts, called
        counts, called = defaultdict(int), None

    tree_util.register_pytree_node(
        Counted, lambda node: ((0,), node.number), count if called is None else count_and_tell
    )
    return leaf_of, stop
