"""Changes of requests that may cost less, read off the dataflow of a lowered module.

Six kinds contain the usual mistakes: (a) a constraint with the batch's axes on lookups, broadcasts and the first
products of parameters; (b) a result as the argument that it becomes; (c) an optimizer's leaf as its parameter; (d)
other specs of arguments, constraints, and requested results that are no state, one step away; (e) parameters whole
where the function begins; (f) arguments of which each device uses a part alone, in parts. Layers, and an optimizer's
leaves, go together.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from jaxlib.mlir import ir

from ....catalog.spellings import PARAMETERS, of_all_layers, place_of_parameters
from .. import modules
from .followed import Followed
from .lowered import Change, Dims, Frame, Lowered, Spec, replicated, spec_in
from .price import Pricing, size

T = TypeVar("T")

_STEP = re.compile(r"\[[^\]]*\]|\.\w+")
_FIRST = re.compile(r"^\w+")
_STACKED = re.compile(r"lhs_batching_dimensions = \[(\d+)")
MAX_STACKS = 4
"""Lines from which stacks of matrices are followed."""

FLOATS = ("f32", "bf16", "f16", "f64")
NUMBER = "shardscope.number"


class Candidate(NamedTuple):
    """Changes that are made together."""

    kind: Literal["a", "b", "c", "d", "e", "f"]
    changes: tuple[Change, ...]

    @property
    def is_removal(self) -> bool:
        """True if it leaves a constraint out: of two changes that cost the same, the other one is preferred."""
        return any(each.kind == "constraint" and each.spec is None for each in self.changes)


class Requests:
    """The candidates of a module; results that are tied to arguments, and the data among these."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        names, types = lowered.names, list(map(str, lowered.types))
        self.tied: dict[int, int] = {}
        by_path: set[int] = set()
        for result, type in enumerate(lowered.result_types):
            alike = [
                number for number, each in enumerate(types) if each == str(type) and number not in self.tied.values()
            ]
            if not alike or not type.rank:
                continue
            common = {number: _common(names[number], lowered.result_names[result]) for number in alike}
            best = max(alike, key=lambda number: (common[number], -number))
            if common[best] or str(type.element_type) in FLOATS:
                self.tied[result] = best
                by_path |= {best} if common[best] else set()
        self.data = list(self._data(by_path))
        axes = (lowered.arguments[number].dims[0] for number in self.data)
        self.batch = list(dict.fromkeys(each for each in axes if each))
        self._followed = Followed(lowered)
        self.home: dict[int, int] = {}
        ranked = sorted(range(len(names)), key=lambda each: place_of_parameters(names[each]))
        shapes = [tuple(type.shape) for type in lowered.types]  # moments are often wider than their parameters
        for place, number in enumerate(ranked):
            name, steps = names[number], _steps(names[number])
            owners = (
                other
                for before, other in enumerate(ranked)
                for parameter in (names[other],)
                if (before < place or len(_steps(parameter)) < len(steps))
                and other != number
                and shapes[other] == shapes[number]
                and (own := self._leaf(parameter, name))
                and len(own) <= len(steps)
                and steps[-len(own) :] == own
            )
            owner = next(owners, None)
            if owner is not None and owner not in self.home:
                self.home[number] = owner

    @cached_property
    def untrained(self) -> set[int]:
        """State that an optimizer has nothing for, beside parameters for which it has: queues and statistics."""
        parameters = set(self.home.values())
        return set(self.tied.values()) - parameters - self.home.keys() if parameters else set()

    @staticmethod
    def _leaf(parameter: str, name: str) -> list[str]:
        """The steps of a parameter's path that its moments have, too; in one state with them, those behind its name."""
        own, steps = _steps(parameter), _steps(name)
        if _first(parameter) != _first(name):
            return own
        if own[:1] == steps[:1]:
            return []
        is_beside = own[0] in PARAMETERS
        return own[1:] if len(own) < len(steps) + is_beside else []

    def _data(self, state: set[int]) -> Iterator[int]:
        """Arguments with a batch dimension: those that no result claims by its path, all of one leading size."""
        lowered = self.lowered
        groups: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(lowered.names):
            groups[_first(name)].append(number)
        sizes: Counter[int] = Counter()
        free = []
        for members in groups.values():
            ranked = [number for number in members if lowered.types[number].rank and not self._is_key(number)]
            leading = {lowered.types[number].shape[0] for number in ranked}
            if ranked and len(leading) == 1 and not state & set(members):
                free += ranked
                is_surest = not set(self.tied.values()) & set(ranked)
                sizes[leading.pop()] += 4 if is_surest else 1
        if not free:
            free = [
                number
                for number, type in enumerate(lowered.types)
                if type.rank and number not in state and lowered.arguments[number].dims[0] and not self._is_key(number)
            ]
            sizes.update(lowered.types[number].shape[0] for number in free)
        likeliest = max(sizes, key=lambda size: sizes[size], default=0)
        yield from (number for number in free if lowered.types[number].shape[0] == likeliest)

    def _is_key(self, number: int) -> bool:
        """Return whether an argument is one random key."""
        type = self.lowered.types[number]
        return str(type.element_type) == "ui32" and list(type.shape) in ([2], [4])

    @staticmethod
    def is_of(candidate: Candidate, arguments: Collection[int]) -> bool:
        """Return whether it begins with an argument, and changes no others than these."""
        numbers = (each.number for each in candidate.changes if each.kind == "argument")
        return candidate.changes[0].kind == "argument" and set(arguments).issuperset(numbers)

    def pinned(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """The changes, and results that are left open held as the arguments that they become.

        State goes round: else a change looks good that only puts off a gather to the next step.
        """
        now = {each.number: each.spec for each in changes if each.kind == "argument"}
        open = (
            Change("result", result, now.get(argument, self.lowered.arguments[argument]))
            for result, argument in self.tied.items()
            if self.lowered.results[result] is None
        )
        return (*open, *changes)

    def candidates(self, pricing: Pricing) -> Iterator[Candidate]:
        """All kinds, each change once: the likeliest mistakes first, then the other kinds by turns."""
        others = (self._batches(pricing), self._constraints(), self._arguments(), self._outputs(), self._uses())
        many = itertools.zip_longest(*others, self._results(of_all_layers))
        kinds = (self._results(_first_step), self._homes(), self._inputs(), self._sliced(pricing), *many)
        found = (each for kind in kinds for each in kind if each is not None)
        yield from dict.fromkeys(found)

    def _results(self, key: Callable[[str], str]) -> Iterator[Candidate]:
        lowered = self.lowered
        apart = [
            result
            for result, argument in self.tied.items()
            if (now := lowered.results[result]) is None or now.dims != lowered.arguments[argument].dims
        ]
        shared = {result: key(lowered.result_names[result]) for result in apart}
        for members in _grouped(apart, shared.__getitem__):
            changes = (Change("result", result, lowered.arguments[self.tied[result]]) for result in members)
            yield Candidate("b", tuple(changes))

    def _homes(self) -> Iterator[Candidate]:
        lowered = self.lowered
        apart = [
            number
            for number, home in self.home.items()
            if lowered.arguments[number].dims != lowered.arguments[home].dims
        ]
        for key in (_first, of_all_layers):
            shared = {number: key(lowered.names[number]) for number in apart}
            for members in _grouped(apart, shared.__getitem__):
                specs = {number: lowered.arguments[self.home[number]] for number in members}
                yield Candidate("c", self.with_results(specs))

    def with_results(self, specs: dict[int, Spec]) -> tuple[Change, ...]:
        """Changes of arguments, and of the results that become them and were requested, or constrained, alike."""
        lowered = self.lowered
        changes = [Change("argument", number, spec) for number, spec in specs.items()]
        for result, argument in self.tied.items():
            if argument not in specs:
                continue
            now, own = lowered.results[result], lowered.arguments[argument].dims
            if now is not None and now.dims == own:
                changes.append(Change("result", result, specs[argument]))
            held = (number for number in self.state_constraints[result] if lowered.requested(number).dims == own)
            changes += (Change("constraint", number, specs[argument]) for number in held)
        return tuple(dict.fromkeys(changes))

    @cached_property
    def state_constraints(self) -> dict[int, list[int]]:
        """By result that is state, the constraints on it and on what it is made of element by element: its gradient."""
        lowered, written = self.lowered, set(self.lowered.constraints)
        found: dict[int, list[int]] = {}
        for result in self.tied:
            start = lowered.owner_of(result)
            todo = [] if start is None else [start]
            seen, found[result] = set(todo), []
            while todo:
                number = todo.pop()
                if number in written:
                    found[result].append(number)
                    continue
                operation = lowered.operations[number]
                if len(operation.results) != 1 or len(operation.regions):
                    continue
                shape = _shape(operation.results[0])
                owners = (lowered.number_of(each) for each in operation.operands if _shape(each) == shape)
                fresh = {owner for owner in owners if owner is not None} - seen
                seen |= fresh
                todo += fresh
        return found

    def _inputs(self) -> Iterator[Candidate]:
        lowered = self.lowered
        names = [name for name, ways in lowered.axes.items() if ways > 1]
        every = [axes for count in range(1, len(names) + 1) for axes in itertools.combinations(names, count)]
        rank = min((len(lowered.arguments[number].dims) for number in self.data), default=1)
        of_others = ((axes, place) for place in range(1, rank) for axes in self.batch)
        for axes, place in (*((axes, 0) for axes in every), *of_others):
            specs = {number: _with_axes(lowered.arguments[number].dims, place, axes) for number in self.data}
            changed = {number: spec for number, spec in specs.items() if spec.dims != lowered.arguments[number].dims}
            if changed and all(
                lowered.fits(spec.dims, lowered.types[number].shape) for number, spec in changed.items()
            ):
                yield Candidate("d", self.with_results(changed))
                held = self._held_as_batch(axes) if place == 0 else []
                if held:
                    yield Candidate("d", (*self.with_results(changed), *held))

    def _held_as_batch(self, axes: tuple[str, ...]) -> list[Change]:
        """Constraints that keep a batch over fewer axes than these, over all of them."""
        lowered = self.lowered
        rows = {lowered.types[number].shape[0] for number in self.data}
        of_state = {number for found in self.state_constraints.values() for number in found}
        found = []
        for number in (each for each in lowered.constraints if each not in of_state):
            now, shape = lowered.requested(number), lowered.constrained_type(number).shape
            dims = tuple(
                axes if size in rows and dim in self.batch and set(dim) < set(axes) else dim
                for dim, size in zip(now.dims, shape, strict=True)
            )
            if dims != now.dims and lowered.fits(dims, shape):
                found.append(Change("constraint", number, Spec(dims, now.open)))
        return found

    def _arguments(self) -> Iterator[Candidate]:
        lowered = self.lowered
        ranked = [number for number, type in enumerate(lowered.types) if type.rank]

        def kind(number: int) -> Hashable:
            return str(lowered.types[number]), lowered.arguments[number]

        for groups in (self.groups(), _grouped(ranked, kind)):
            for members in sorted(groups, key=lambda each: -sum(size(lowered.types[number]) for number in each)):
                now, type = lowered.arguments[members[0]], lowered.types[members[0]]
                is_data = bool(set(members) & set(self.data))
                whole = [Spec(((),) * type.rank)] if self.untrained.issuperset(members) else []
                for spec in (*self.others(now, type, batch=now.dims[0] if is_data else ()), *whole):
                    if lowered.parts(spec) >= lowered.parts(now) or spec in whole:
                        changes = self.with_results(dict.fromkeys(members, spec))
                        yield Candidate("d", changes)
                        own = [number for number in members if number not in self.home]
                        held = self._followed.widened(own, now, spec)
                        if held:
                            yield Candidate("d", (*changes, *held))

    def _outputs(self) -> Iterator[Candidate]:
        """Requested results that are no state, in more parts: the largest first."""
        lowered = self.lowered
        for members in self.result_groups():
            now = lowered.results[members[0]]
            for spec in () if now is None else self.others(now, lowered.result_types[members[0]]):
                if now is not None and lowered.parts(spec) > lowered.parts(now):
                    yield Candidate("d", tuple(Change("result", number, spec) for number in members))

    def _sliced(self, pricing: Pricing) -> Iterator[Candidate]:
        """Arguments that devices hold more of than they use, in parts, but for those that have a parameter's spec."""
        sliced = pricing.sliced(self.pinned(()))
        found = {number: spec for number, spec in sliced.items() if number not in self.home}
        names = self.lowered.names
        by_root = _grouped(found, lambda number: _first(names[number]))
        for members in (*by_root, *_grouped(found, lambda number: of_all_layers(names[number]))):
            yield Candidate("f", self.with_results({number: found[number] for number in members}))

    def _uses(self) -> Iterator[Candidate]:
        """Trees of parameters that are sharded, whole where the function begins: gathered once, whatever uses them."""
        lowered = self.lowered
        roots = {_first(lowered.names[number]) for number in self.home}

        def tree(number: int) -> Hashable:
            name = lowered.names[number]
            return _first(name), _first_step(name) if _first(name) in roots else ""

        own = [n for n, spec in enumerate(lowered.arguments) if any(spec.dims) and n not in {*self.data, *self.home}]
        for members in () if lowered.is_explicit else _grouped(own, tree):
            changes = (Change("use", number, replicated(lowered.types[number].rank)) for number in members)
            yield Candidate("e", tuple(changes))

    def result_groups(self) -> list[list[int]]:
        """The requested results that are no state, those of all layers together: the largest first."""
        lowered = self.lowered

        def kind(number: int) -> Hashable:
            return (
                of_all_layers(lowered.result_names[number]),
                str(lowered.result_types[number]),
                lowered.results[number],
            )

        requested = [n for n, now in enumerate(lowered.results) if now is not None and n not in self.tied]
        return sorted(_grouped(requested, kind), key=lambda each: -math.prod(lowered.result_types[each[0]].shape))

    def groups(self) -> list[list[int]]:
        """The arguments that go together: those of all layers, and an optimizer's leaves with their parameters."""
        lowered = self.lowered

        def place(number: int) -> Hashable:
            home = self.home.get(number, number)
            return of_all_layers(lowered.names[home]), tuple(lowered.types[number].shape), lowered.arguments[number]

        return _grouped([number for number, type in enumerate(lowered.types) if type.rank], place)

    def _constraints(self) -> Iterator[Candidate]:
        lowered, sources = self.lowered, self._sources()
        operations = lowered.operations
        groups = (each for frames in (None, 2, 0) for each in self.constraint_groups(frames))
        by_size = sorted(dict.fromkeys(map(tuple, groups)), key=lambda each: -size(lowered.constrained_type(each[0])))
        for members in by_size:
            now, type = lowered.requested(members[0]), lowered.constrained_type(members[0])
            of_data = any(sources.get(operations[number].operands[0], (False, False))[0] for number in members)
            batch = (
                tuple(axis for axis in now.dims[0] if any(axis in axes for axes in self.batch))
                if of_data and now.dims
                else ()
            )
            for spec in (*self.others(now, type, batch=batch), *(() if batch else (None,))):
                yield Candidate("d", tuple(Change("constraint", number, spec) for number in members))

    def constraint_groups(self, frames: int | None = None) -> list[list[int]]:
        """The constraints that were written, those of one call stack, spec and type together.

        With a number of `frames`, those that have so many innermost ones in common: of a helper's call that is reached
        in several ways, or all with 0.
        """
        lowered = self.lowered

        def place(number: int) -> Hashable:
            return lowered.stack(number)[:frames], lowered.requested(number), str(lowered.constrained_type(number))

        return _grouped(lowered.constraints, place)

    def others(self, spec: Spec, type: Any, batch: tuple[str, ...] = ()) -> list[Spec]:
        """Specs one step away: an axis added, moved or dropped, and two dimensions exchanged.

        Those axes of the first dimension stay that divide the `batch`.
        """
        lowered, rank = self.lowered, type.rank
        found: list[Dims] = []
        for axis in (name for name, ways in lowered.axes.items() if ways > 1):
            bare = tuple(tuple(each for each in dim if each != axis) for dim in spec.dims)
            moved = (tuple((*dim, axis) if n == place else dim for n, dim in enumerate(bare)) for place in range(rank))
            found += [*moved, bare]
        for one, other in itertools.combinations(range(rank), 2):
            swapped = list(spec.dims)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            found.append(tuple(swapped))
        return [
            Spec(dims)
            for dims in dict.fromkeys(found)
            if dims != spec.dims and lowered.fits(dims, type.shape) and (not batch or set(batch) <= set(dims[0]))
        ]

    def _batches(self, pricing: Pricing) -> Iterator[Candidate]:
        lowered = self.lowered
        if not self.batch or lowered.is_explicit:
            return
        dims = self._batch_dims(pricing)
        groups: dict[tuple[str, tuple[Frame, ...]], list[int]] = defaultdict(list)
        for number, what in self._places():
            if what == "rows":
                dims[number] = 0
            elif number not in dims and what == "product":  # where a reshape merges the batch behind another dimension
                dims[number] = self._largest_dim(lowered.operations[number])
            stack = lowered.stack(number) if number in dims and lowered.is_forward(number) else ()
            if stack:
                groups[what, stack].append(number)
        alike = _grouped(list(groups), lambda key: (key[0], None if key[0] == "rows" else key[1][0]))
        alone = [[key] for key in groups]
        for keys in [*alone, *(each for each in alike if len(each) > 1)]:
            members = [number for key in keys for number in groups[key]]
            for axes, is_loose in itertools.product(self.batch, (False, True)):
                changes = []
                for number in members:
                    type = ir.RankedTensorType(lowered.operations[number].results[0].type)
                    others = tuple(dim for dim in range(type.rank) if dim != dims[number])
                    if type.shape[dims[number]] % lowered.ways(axes) == 0:
                        sharded = tuple(axes if dim == dims[number] else () for dim in range(type.rank))
                        changes.append(Change("new", number, Spec(sharded, others if is_loose else ())))
                if changes:
                    yield Candidate("a", tuple(changes))
        yield from self._stacks(dims)

    def _stacks(self, batch: Mapping[int, int]) -> Iterator[Candidate]:
        """Stacks of matrices that are multiplied and hold no data, as gradients of layers: each device its own ones."""
        lowered = self.lowered
        groups: dict[tuple[Frame, ...], dict[int, int]] = defaultdict(dict)
        for number, operation in enumerate(lowered.operations):
            found = operation.name == "stablehlo.dot_general" and _STACKED.search(
                str(operation.attributes["dot_dimension_numbers"])
            )
            maker = lowered.number_of(operation.operands[0]) if found else None
            if found and maker is not None and number not in batch and lowered.stack(maker):
                groups[lowered.stack(maker)][maker] = int(found[1])
        for members in itertools.islice(groups.values(), MAX_STACKS):
            types = {number: ir.RankedTensorType(lowered.operations[number].results[0].type) for number in members}
            for axis, ways in lowered.axes.items():
                if ways > 1 and all(types[number].shape[dim] % ways == 0 for number, dim in members.items()):
                    specs = ((n, _with_axes(((),) * types[n].rank, dim, (axis,))) for n, dim in members.items())
                    yield Candidate("a", tuple(Change("new", number, spec) for number, spec in specs))

    @staticmethod
    def _takes_rows(gather: Any) -> bool:
        """Return whether a gather takes whole rows of a value, as of a batch that is shuffled."""
        taken, value = (_shape(each) or [] for each in (gather.results[0], gather.operands[0]))
        numbers = str(gather.attributes["dimension_numbers"])
        return taken[1:] == value[1:] and "collapsed_slice_dims = [0], start_index_map = [0]" in numbers

    @staticmethod
    def _largest_dim(product: Any) -> int:
        """The largest dimension of a product, which may be the batch; a parameter's are rarely as large."""
        shape = _shape(product.results[0]) or [0]
        return max(range(len(shape)), key=shape.__getitem__)

    def _places(self) -> Iterator[tuple[int, str]]:
        """Places where parameters meet data: lookups, products of both, and parameters that are broadcast; and rows of
        data in another order.
        """
        from_data = self._sources()
        for number, operation in enumerate(self.lowered.operations):
            operands = [from_data.get(value, (False, False)) for value in operation.operands]
            if not len(operation.results) or not isinstance(operation.results[0].type, ir.RankedTensorType):
                continue
            if operation.name == "stablehlo.gather" and operands[0][0] and self._takes_rows(operation):
                yield number, "rows"
                continue
            if str(ir.RankedTensorType(operation.results[0].type).element_type) not in FLOATS:
                continue
            only_state = [state and not data for data, state in operands]
            match operation.name:
                case "stablehlo.gather" if not operands[0][0] and operands[1][0]:
                    yield number, "lookup"
                case "stablehlo.dot_general" if only_state[0] != only_state[1]:
                    yield number, "product"
                case "stablehlo.broadcast_in_dim" if (
                    only_state[0] and ir.RankedTensorType(operation.operands[0].type).rank
                ):
                    yield number, "broadcast"

    def _sources(self) -> dict[Any, tuple[bool, bool]]:
        """For each value, whether it comes from data, and whether from other arguments."""
        main = modules.body_of(modules.main_of(self.lowered.module))
        found = {each: (n in self.data, n not in self.data) for n, each in enumerate(main.arguments)}

        def of(values: Iterable[Any]) -> tuple[bool, bool]:
            known = [found.get(value, (False, False)) for value in values]
            return any(data for data, _ in known), any(state for _, state in known)

        def walk(block: Any) -> None:
            for view in block.operations:
                operation = view.operation
                if operation.name == "stablehlo.while":
                    ins = [of([value]) for value in operation.operands]
                    for _ in range(2):
                        for region in operation.regions:
                            found.update(zip(region.blocks[0].arguments, ins, strict=True))
                            walk(region.blocks[0])
                        ends = list(operation.regions[1].blocks[0].operations)[-1].operation.operands
                        pairs = zip(ins, (of([value]) for value in ends), strict=True)
                        ins = [(one[0] or other[0], one[1] or other[1]) for one, other in pairs]
                    found.update(zip(operation.results, ins, strict=True))
                    continue
                from_operands = of(operation.operands)
                found.update((value, from_operands) for value in operation.results)

        walk(main)
        return found

    def _batch_dims(self, pricing: Pricing) -> dict[int, int]:
        """The batch's dimension of operations' results: Shardy propagates an axis from the data and nothing else."""
        lowered = self.lowered
        clone = lowered.changed(())
        operations = modules.find(clone.operation, lambda _: True)
        integer = ir.IntegerType.get_signless(64)
        for number, operation in enumerate(operations):
            if len(operation.results):
                operation.attributes[NUMBER] = ir.IntegerAttr.get(integer, number)
        for operation in modules.find(clone.operation, {"sdy.sharding_constraint"}):
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        axis = next(name for name, ways in lowered.axes.items() if ways > 1)
        written: list[dict[str, ir.Attribute]] = []
        for number, type in enumerate(lowered.types):
            spec = (
                Spec(((axis,), *((),) * (type.rank - 1)), tuple(range(1, type.rank))) if number in self.data else None
            )
            written.append({"sdy.sharding": ir.Attribute.parse(spec.sdy(lowered.mesh))} if spec is not None else {})
        main = modules.main_of(clone)
        modules.set_attributes(main, "arg_attrs", written)
        modules.set_attributes(main, "res_attrs", [{}] * len(lowered.result_types))
        modules.run(clone, *pricing.propagate)
        found: dict[int, int] = {}
        for operation in modules.find(clone.operation, lambda _: True):
            known = operation.attributes
            if NUMBER in known and "sdy.sharding" in known:
                text = str(known["sdy.sharding"]).partition("<[")
                dims = spec_in(text[2] or text[0]).dims
                place = next((dim for dim, axes in enumerate(dims) if axes), None)
                if place is not None:
                    found[ir.IntegerAttr(known[NUMBER]).value] = place
        return found


def _shape(value: Any) -> list[int] | None:
    return list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else None


def _grouped(members: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    found: dict[Hashable, list[T]] = {}
    for each in members:
        found.setdefault(key(each), []).append(each)
    return list(found.values())


def _steps(path: str) -> list[str]:
    """The keys behind the root of a path, equal for items and attributes."""
    return [each.strip(".[]'\"") for each in _STEP.findall(path)]


def _first(path: str) -> str:
    found = _FIRST.match(path)
    return found[0] if found else path


def _first_step(path: str) -> str:
    return next(iter(_steps(path)), path)


def _with_axes(dims: Dims, place: int, axes: tuple[str, ...]) -> Spec:
    """A dimension sharded over some axes, and no other one over these."""
    rest = [tuple(axis for axis in dim if axis not in axes) for dim in dims]
    return Spec((*rest[:place], axes, *rest[place + 1 :]))


def _common(one: str, other: str) -> int:
    pairs = zip(reversed(_steps(one)), reversed(_steps(other)), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
