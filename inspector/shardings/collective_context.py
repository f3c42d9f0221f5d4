"""An operation of the propagated program, seen from a collective that belongs to it: what that does for it.

Its sharding rule says how the dimensions of operands and results belong together. From their shardings follows which
of them needs communication:

- a *sum*: a dimension that the operation reduces is cut along the collective's axes; each device has a part of the sum;
- a *reshard*: a value is cut along the axes where the operation, for the sake of another value, needs it otherwise;
- a *move*: the operation works across a cut dimension, as a slice, a concatenation or a lookup in a table does;
- its *own*: the partitioner divides work along axes that nothing here requests, and puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import KIND_OF, SDY_REQUESTS
from ..dataflow.meaning import Does, meaning_of
from ..dataflow.mlir import Dataflow, Node
from ..ir.array_sharding import ArraySharding
from ..ir.placement import same
from ..ir.program import Program
from ..report import Collective, CollectiveCause, Confidence, Effect, MovedDimension, NodeAxis
from .executed import is_permuted, kept_axes, takes_result
from .explained import Wording, wording_of
from .gradients import is_gradient
from .sharded_dimensions import (
    DimensionUse,
    ShardedDimension,
    dimensions_of,
    floats_among,
    have_same_axes,
    local_size,
    moves_whole_numbers,
    of_its_dtype,
    overlaps,
    placed_at,
    wanted_by,
    with_axes,
)


class CollectiveContext:
    """An operation and its values, seen from a collective."""

    def __init__(
        self, program: Program, flow: Dataflow, row: int, collective: Collective, confidence: Confidence
    ) -> None:
        self.program = program
        self.flow = flow
        self.row = row
        self.collective = collective
        self.confidence = confidence
        self.wording: Wording = wording_of(flow)
        self.axes = collective.axes or ()
        self.use = DimensionUse(flow, row)
        self.cuts = tuple(dimensions_of(self.flow, self.row))

    @property
    def name(self) -> str:
        """All of the operation's name, with the path of transformations."""
        found = self.flow.names(self.row)
        return found[0] if found else ""

    def is_about(self, node: Node) -> bool:
        """Return whether this operand is the one sharded along the collective's axes."""
        return any(cut.node == node and cut.is_operand and self._along(cut.axes) for cut in self.cuts)

    def cause(self) -> CollectiveCause:
        """Return the effect of the collective on the operation."""
        if requested := next(
            filter(None, (self._asked_of_operand(*each) for each in wanted_by(self.flow, self.row))), None
        ):
            return requested
        alike = of_its_dtype(self.flow, self.collective, self.cuts)
        is_of_integers = moves_whole_numbers(self.collective)
        along = [each for each in self.cuts if self._along(each.axes)]
        cut = [each for each in along if each in alike]
        if not cut and len(alike) < len(self.cuts):
            if is_of_integers and (whole := self._taken_whole(alike)) is not None:
                return whole
            cut = along
        among = (floats_among(self.flow, along) or cut) if is_of_integers else cut  # positions are found with values
        summed = [each for each in among if each.is_operand and self.use.reduces(each)]
        if summed and KIND_OF[self.collective.kind].reduces:
            return self._cause("sum", summed[0], against=(), origins=summed)
        reordered = self._in_another_order(cut)
        if reordered and not reordered[1].is_operand and self._keeps(reordered[0]) and not self._permutes(reordered[0]):
            return self._asked_of_result(*reordered)
        if reordered and self.collective.kind == "collective-permute" and have_same_axes(*reordered):
            return self._reordered(*reordered)
        pairs = [(each, others) for each in cut if (others := self._cut_otherwise(each))]
        if pairs:
            each, others = min(pairs, key=lambda pair: self._likelihood(pair[0]))
            given = [other for other in others if not other.is_operand]
            keeps = self._keeps(each) if given else None
            may_keep = given and (keeps is None or self.use.could_keep(each))
            if keeps or (may_keep and self._is_asked(given[0])):
                return self._asked_of_result(each, given[0])
            elsewhere = [other for other in cut if other is not each and not set(other.factors) & set(each.factors)]
            return self._cause("reshard", each, against=elsewhere or others, origins=[each])
        if reordered:
            return self._reordered(*reordered)
        if len(alike) < len(self.cuts) and is_of_integers and (whole := self._taken_whole(cut)) is not None:
            return whole
        across = sorted((each for each in cut if self.use.is_crossed(each)), key=self._distance)
        if across:
            return self._cause("move", across[0], against=(), origins=[across[0]])
        if summed:  # by a gather of what each device reduces, as of argmax
            return self._cause("sum", summed[0], against=(), origins=summed)
        rest = sorted(cut, key=self._distance)[:1]
        return self._cause("own", rest[0] if rest else None, against=(), origins=rest)

    def _cut_otherwise(self, cut: ShardedDimension) -> Sequence[ShardedDimension]:
        """The same dimension of other values, where the collective's axes do not cut it."""
        return [
            other
            for other in self.cuts
            if other is not cut and set(other.factors) & set(cut.factors) and not self._along(other.axes)
        ]

    def _cause(
        self,
        effect: Effect,
        cut: ShardedDimension | None,
        against: Sequence[ShardedDimension],
        origins: Sequence[ShardedDimension],
    ) -> CollectiveCause:
        sharding = None if cut is None else placed_at(self.flow, cut.node)
        needed = None
        if effect == "reshard" and cut is not None and sharding is not None:
            needed = self._without_axes(sharding, cut, against)
        found = self._of(
            effect,
            self.row,
            None if cut is None else MovedDimension(cut.is_operand, self.wording.name(cut.node), cut.dim),
            (sharding, needed),
            (axis for each in origins for axis in self._axes_of(each, all_axes=False)),
            None if cut is None else cut.node,
        )
        return replace(
            found,
            rule=self.wording.rule(self.row),
            against=tuple(dict.fromkeys(axis for each in against for axis in self._axes_of(each, all_axes=True))),
            needed=effect == "sum" and is_gradient(self.flow, self.row),
            is_merged=cut is not None and cut.is_operand and self.use.merges(cut),
            is_kept=cut is not None and self.use.is_kept(cut),
        )

    def _of(
        self,
        effect: Effect,
        row: int,
        moved: MovedDimension | None,
        shardings: tuple[ArraySharding | None, ArraySharding | None],
        origins: Iterable[NodeAxis],
        node: Node | None,
    ) -> CollectiveCause:
        """A cause at an operation, without a rule: `node` is moved from one of `shardings` to the other."""
        operation, place = self.wording.places.operation(row)
        meaning = meaning_of(str(operation))
        return CollectiveCause(
            effect=effect,
            operation=operation,
            rule=None,
            # What is called from several places has no line of its own.
            place=place if place.stack else self.collective.source,
            moved=moved,
            before=shardings[0],
            after=shardings[1],
            origins=tuple(dict.fromkeys(origins)),
            against=(),
            needed=False,
            confidence=self.confidence,
            elements=None if node is None else local_size(self.flow, node),
            row=row,
            is_contraction=meaning.does is Does.CONTRACT,
            is_lookup=meaning.does is Does.LOOKUP or meaning.others is Does.SCATTER,
        )

    def _taken_whole(self, cut: Sequence[ShardedDimension]) -> CollectiveCause | None:
        """An operand's dimension that a result has too, and that the operation is executed on unsharded."""
        results = {factor for each in self.cuts if not each.is_operand for factor in each.factors}
        for each in cut:
            if each.is_operand and each.axes and results & set(each.factors) and self._keeps(each) is False:
                sharding = placed_at(self.flow, each.node)
                after = None if sharding is None else with_axes(sharding, each.dim, ())
                return replace(self._cause("reshard", each, against=(), origins=(each,)), after=after)
        return None

    def _keeps(self, cut: ShardedDimension) -> bool | None:
        """Return whether the partitioned program executes the operation with a dimension sharded as in this value."""
        ways = (cut.axes, ())
        kept = [kept_axes(self.program, self.flow, self.row, factor, ways) for factor in cut.factors]
        return None if not kept or None in kept else all(each == frozenset({cut.axes}) for each in kept)

    def _permutes(self, cut: ShardedDimension) -> bool:
        """Return whether an operand is permuted for the operation, which its size there does not tell."""
        operands = self.flow.operands(self.row)
        return cut.node in operands and is_permuted(self.program, self.flow, self.row, operands.index(cut.node))

    def _asked_of_result(self, cut: ShardedDimension, requested: ShardedDimension) -> CollectiveCause:
        """The operation keeps to its operand: what requested another sharding of its result is the cause."""
        result, asking = requested.node, self._asking(requested.node)
        wanted = placed_at(self.flow, result)
        found = self._of(
            "reshard",
            self.row if asking is None else asking,
            MovedDimension(asking is not None, self.wording.name(result), requested.dim),
            (None if wanted is None else with_axes(wanted, requested.dim, cut.axes), wanted),
            self._axes_of(cut, all_axes=False),
            result,
        )
        return replace(found, rule=self.wording.rule(self.row)) if asking is None else found

    def _asking(self, node: Node) -> int | None:
        return next((row for row in self.flow.users(node) if self.flow.rows[row].name in SDY_REQUESTS), None)

    def _is_asked(self, cut: ShardedDimension) -> bool:
        """Return whether a constraint on a value keeps the collective's axes off its dimension."""
        asking = self._asking(cut.node)
        if asking is None or takes_result(self.program, self.flow, self.row, self.collective):
            return False
        requested = placed_at(self.flow, self.flow.results(asking)[0])
        return requested is not None and not self._along(requested.dims[cut.dim].axes)

    def _in_another_order(self, cut: Sequence[ShardedDimension]) -> tuple[ShardedDimension, ShardedDimension] | None:
        """Return the nearest operand's dimension that other axes cut elsewhere, or in another order, with that."""
        pairs = (
            (each, other)
            for each in cut
            for other in cut
            if each.is_operand and other.axes != each.axes and set(other.factors) & set(each.factors)
        )
        return min(pairs, key=lambda pair: self._likelihood(pair[0]), default=None)

    def _reordered(self, cut: ShardedDimension, other: ShardedDimension) -> CollectiveCause:
        """The same axes in another order, or dimension, than another value of the operation has."""
        found = self._cause("reshard", cut, against=(other,), origins=(cut,))
        sharding = placed_at(self.flow, cut.node)
        return found if sharding is None else replace(found, after=with_axes(sharding, cut.dim, other.axes))

    def _asked_of_operand(self, node: Node, wanted: ArraySharding | None) -> CollectiveCause | None:
        """An operand that differs from requested; None where that is not along the axes of the collective."""
        own = placed_at(self.flow, node)
        if own is None or wanted is None or same(own, wanted) or len(own.dims) != len(wanted.dims):
            return None
        changed = [
            dim
            for dim, (before, after) in enumerate(zip(own.dims, wanted.dims, strict=True))
            if before.axes != after.axes and self._along((*before.axes, *after.axes))
        ]
        if not changed:
            return None
        dim = next((each for each in changed if self._along(own.dims[each].axes)), changed[0])
        return self._of(
            "reshard",
            self.row,
            MovedDimension(True, self.wording.name(node), dim),
            (own, wanted),
            (NodeAxis(node, axis) for axis in own.dims[dim].axes),
            node,
        )

    def _axes_of(self, cut: ShardedDimension, *, all_axes: bool) -> Iterator[NodeAxis]:
        return (NodeAxis(cut.node, axis) for axis in cut.axes if all_axes or self._along((axis,)))

    def _without_axes(
        self, sharding: ArraySharding, cut: ShardedDimension, against: Sequence[ShardedDimension]
    ) -> ArraySharding:
        """The value as the operation needs it: not along these axes there, but where another value has them."""
        wanted = {factor: other.axes for other in against for factor in other.factors}
        dims = [[axis for axis in own.axes if not self._along((axis,))] for own in sharding.dims]
        used = [axis for axes in dims for axis in axes]
        for each in self.cuts if self.collective.kind == "all-to-all" else ():
            if each.node != cut.node or each.dim == cut.dim:
                continue
            # An axis shards one dimension, also where two of them have it in other values.
            for axis in next((wanted[factor] for factor in each.factors if factor in wanted), ()):
                if self._along((axis,)) and not overlaps(axis, used):
                    dims[each.dim].append(axis)
                    used.append(axis)
        return ArraySharding(
            sharding.mesh, tuple(DimensionSharding(tuple(axes)) for axes in dims), manual=sharding.manual
        )

    def _distance(self, cut: ShardedDimension) -> tuple[bool, bool]:
        """The sorting key that puts values of the collective's size per device first, operands before results."""
        sizes = [each.elements for each in self.collective.operand_types if each.elements is not None]
        return local_size(self.flow, cut.node) not in {*sizes, sum(sizes)}, not cut.is_operand

    def _likelihood(self, cut: ShardedDimension) -> tuple[bool, bool, bool]:
        """The sorting key that puts what the executed operation has in another way before what it has as it is."""
        return cut.is_operand and self._keeps(cut) is True, *self._distance(cut)

    def _along(self, axes: Sequence[AxisRef]) -> bool:
        return any(overlaps(own, self.axes) for own in axes)
