"""The operation of XLA's HLO that each operation of its Shardy module comes from.

XLA turns its HLO into StableHLO, imports Shardy's attributes, and propagates; what it dumps has no locations. The same
HLO, which is dumped too, has them when it is turned into StableHLO here. In between, the import has inlined calls, made
regions of shard_maps, left out what is dead and what loops carry unchanged, and added constraints; what constants alone
decide is copied for each use, and merged again. What is left keeps its order: an operation comes from the next one of
its name and types whose operands come from the same ones, or from others that compute the same of the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain, count, islice

from jaxlib.mlir import ir

from . import modules
from .operation_roots import CONSTANTS, PASSED_ON, Operation, constant_of, key_of, name_of, operands_of, root_of

TERMINATORS = frozenset({"sdy.return", "stablehlo.return", "func.return"})

MAX_TRIES = 100
"""Operations that are looked at for one whose operands do not tell."""

MAX_DEPTH = 10_000
"""Operations on the way to one whose value is marked."""

IN_A_LOOP, CONSTANT, OPERANDS = "in a loop", "constant", "operands"


def sources(module: ir.Module, earlier: ir.Module) -> Mapping[Operation, Operation]:
    """The operations of a module with those of an earlier one; the calls of that are inlined in it."""
    modules.inline_calls(earlier)
    found = _Sources()
    functions = [modules.main_of(each).regions[0].blocks[0] for each in (module, earlier)]
    found.align(list(_flat(functions[0])), list(_flat(functions[1])))
    # What XLA takes out of a branch is in another block.
    used = set(found.pairs.values())
    moved = [each for each in modules.find(modules.main_of(module), lambda _: True) if each not in found.pairs]
    rest = [each for each in modules.find(modules.main_of(earlier), lambda _: True) if each not in used]
    found.align(moved, rest)
    return found.pairs


def _flat(block: ir.Block) -> Iterator[Operation]:
    """The operations of a block, and of the shard_maps in it: those of HLO are inlined."""
    for view in block.operations:
        operation = view.operation
        if operation.name == "sdy.manual_computation":
            yield from _flat(operation.regions[0].blocks[0])
        yield operation


class _Sources:
    """The pairs of an operation and the earlier one that it comes from, as far as they are found."""

    def __init__(self) -> None:
        self.pairs: dict[Operation, Operation] = {}
        self._values = _Values()
        self._shared: dict[Operation, bool] = {}
        self._added: set[Operation] = set()

    def align(self, operations: list[Operation], earlier: list[Operation]) -> None:
        """Find the sources of a block's operations, and of those in the regions of each."""
        left = _Earlier(earlier, self._values)
        latest = -1
        for operation in operations:
            if operation.name in CONSTANTS or operation.name in TERMINATORS or operation in self._added:
                continue
            roots = [root_of(operand) for operand in operands_of(operation)]
            source = self._source(operation, roots, left, latest)
            if source is None:
                continue
            is_shared = self._is_shared(operation, roots)
            left.take(source, is_shared)
            latest = latest if is_shared else source
            self.pairs[operation] = earlier[source]
            if name_of(operation) not in PASSED_ON:
                for region, other in zip(operation.regions, earlier[source].regions, strict=False):
                    if len(region.blocks) and len(other.blocks):
                        self.align(list(_flat(region.blocks[0])), list(_flat(other.blocks[0])))

    def _source(self, operation: Operation, roots: list[object], left: _Earlier, latest: int) -> int | None:
        """The place of the nearest that is a source; rather one with the same constants, of the very same operands.

        Constants are not always written alike: XLA spreads them, and makes one of several.
        """
        key, marks = key_of(operation), [self._mark(root) for root in roots]
        same = (key, OPERANDS, *(self._values.own(self.pairs.get(root, root)) for root in roots))
        if all(root is not None for root in roots) and left.is_used_up(same):
            self._added.add(operation)
            return None
        own = left.near(same, latest)
        exact = left.near((key, *marks), latest) if None not in marks else iter(())
        tried = (place for place in left.near(key, latest) if self._is_source(roots, left.operations[place]))
        found = None
        for place in chain.from_iterable(islice(each, MAX_TRIES) for each in (own, exact, tried)):
            if _has_constants_of(operation, left.operations[place]):
                return place
            found = place if found is None else found
        return found

    def _mark(self, root: object) -> Hashable | None:
        """The mark of what a root comes from; None where that is not known."""
        if not isinstance(root, ir.Operation):
            return self._values.mark(root)
        if constant_of(root) is not None:
            return CONSTANT
        return self._values.mark(self.pairs[root]) if root in self.pairs else None

    def _is_source(self, roots: list[object], other: Operation) -> bool:
        """Return whether the operands of both come from the same operations, as far as is known."""
        found, wanted = list(map(self._mark, roots)), list(map(self._values.mark, self._values.roots(other)))
        if len(found) == len(wanted):
            return all(map(_agree, found, wanted))
        return all(any(_agree(one, another) for another in wanted) for one in found)

    def _is_shared(self, operation: Operation, roots: list[object]) -> bool:
        """Return whether constants alone decide what it computes: there are copies of it, or one instead of several."""
        if operation not in self._shared:
            self._shared[operation] = not len(operation.regions) and all(
                isinstance(root, ir.Operation) and (root.name in CONSTANTS or self._shared.get(root, False))
                for root in roots
            )
        return self._shared[operation]


def _agree(one: Hashable | None, another: Hashable) -> bool:
    return one in (None, CONSTANT, another)


def _has_constants_of(operation: Operation, other: Operation) -> bool:
    pairs = zip(operands_of(operation), operands_of(other), strict=False)
    values = (
        [constant_of(root) if isinstance(root, ir.Operation) else None for root in map(root_of, pair)] for pair in pairs
    )
    return all(one is None or (another is not None and one == another) for one, another in values)


class _Earlier:
    """Operations of a block of the earlier module that nothing comes from yet, by what they are and are made of."""

    def __init__(self, operations: list[Operation], values: _Values) -> None:
        self.operations = operations
        self._keys = [self._keys_of(each, values) for each in operations]
        self._places: dict[Hashable, list[int]] = {}
        self._shared: dict[Hashable, list[int]] = {}
        for place, keys in enumerate(self._keys):
            for key in keys:
                self._places.setdefault(key, []).append(place)

    def near(self, key: Hashable, latest: int) -> Iterator[int]:
        """Places with a key, of an operation or also of its operands: those behind the latest, then those before it."""
        known = self._places.get(key, [])
        middle = bisect_left(known, latest + 1)
        nearest = (known[index] for index in chain(range(middle, len(known)), range(middle - 1, -1, -1)))
        return chain(nearest, self._shared.get(key, ()))

    def is_used_up(self, key: Hashable) -> bool:
        """Return whether something comes from each place with a key: another one was added by the import."""
        return key in self._places and not self._places[key] and key not in self._shared

    def take(self, place: int, is_shared: bool) -> None:
        """Let nothing else come from there, or only where nothing else is left."""
        for key in self._keys[place]:
            known = self._places[key]
            index = bisect_left(known, place)
            if known[index : index + 1] == [place]:
                del known[index]
                if is_shared:
                    self._shared.setdefault(key, []).append(place)

    @staticmethod
    def _keys_of(operation: Operation, values: _Values) -> tuple[Hashable, ...]:
        if operation.name in CONSTANTS:
            return ()
        key = key_of(operation)
        roots = values.roots(operation)
        return key, (key, *map(values.mark, roots)), (key, OPERANDS, *map(values.own, roots))


class _Values:
    """Marks for what operations of the earlier module compute, equal where they compute the same of the same.

    Layers that are unrolled have masks of their own, all of which are alike: which is whose is not known.
    """

    def __init__(self) -> None:
        self._marks: dict[Operation, Hashable] = {}
        self._known: dict[Hashable, int] = {}
        self._numbers = count()
        self._roots: dict[Operation, list[object]] = {}

    def roots(self, operation: Operation) -> list[object]:
        """Return the roots of its operands."""
        if operation not in self._roots:
            self._roots[operation] = [root_of(operand) for operand in operands_of(operation)]
        return self._roots[operation]

    def mark(self, root: object) -> Hashable:
        """Return the mark of a root: one for all constants, as XLA spreads them, and makes one of several."""
        if not isinstance(root, ir.Operation):
            return IN_A_LOOP if root is None else ("argument", root)
        waiting = [] if root in self._marks else [root]
        while waiting:
            inner = [one for one in self.roots(waiting[-1]) if isinstance(one, ir.Operation) and one not in self._marks]
            if inner and len(waiting) < MAX_DEPTH:
                waiting += inner
            else:
                operation = waiting.pop()
                self._marks[operation] = next(self._numbers) if inner else self._own_mark(operation)
        return self._marks[root]

    def own(self, root: object) -> Hashable:
        """Return what tells a root from others that compute the same, or differ in constants alone."""
        return root if isinstance(root, ir.Operation) and constant_of(root) is None else self.mark(root)

    def _own_mark(self, operation: Operation) -> Hashable:
        if constant_of(operation) is not None:
            return CONSTANT
        marks = [
            self._marks[root] if isinstance(root, ir.Operation) else self.mark(root) for root in self.roots(operation)
        ]
        if len(operation.regions) or IN_A_LOOP in marks:
            return next(self._numbers)
        return self._known.setdefault((key_of(operation), *marks), next(self._numbers))
