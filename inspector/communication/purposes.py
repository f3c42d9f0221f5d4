"""The purpose of each collective of a program, from its kind, its operands, and the uses of its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import cached_property

from ...parsers.hlo import HloType, Instruction, TupleShape
from ...parsers.record import Record
from ..catalog.spellings import KIND_OF, PRIMITIVES, STABLEHLO_OPS
from ..collectives.context import context_of
from ..collectives.origin import direction_of
from ..dataflow.graph import Output
from ..dataflow.hlo import HloUse
from ..dataflow.meaning import MOVES, POINTWISE, Does, all_do, does, meaning_of
from ..dataflow.sources import Place, ValueFlow
from ..dataflow.walks import Ends
from ..ir.name_scopes import is_path, last_components, merged_parts
from ..ir.program import Program
from ..ir.types import array_type
from ..report import Collective, Pass
from ..report.communication import Strategy
from ..shardings.collective_causes import causes_of
from .weights import weights_of

SUMS = (None, "sum")

SENDS = Does.SEND | Does.SUM

MADE = ("contraction", "other")
"""The kinds of sources that are no arguments."""


class Purpose(Record, frozen=True):
    """A collective's strategy, with the arguments that it gathers, or its results that are sums of gradients."""

    strategy: Strategy = "other"
    arguments: tuple[str, ...] = ()
    gradients: tuple[Place, ...] = ()


def is_scalar(collective: Collective) -> bool:
    """Return whether it reduces single numbers."""
    return KIND_OF[collective.kind].reduces and all(each.elements == 1 for each in collective.operand_types)


def _primitives(instruction: Instruction) -> tuple[str, ...]:
    return last_components(instruction.op_name or "")


def _slices(names: Collection[str]) -> bool:
    """Return whether all are slices; of a slice that is a single row the name of the last step alone may be left."""
    return all(does(name) is Does.SLICE or name == "squeeze" for name in names)


def _may_permute(name: str) -> bool:
    """Return whether a name, as those of instructions end, is that of a permute, or empty."""
    return not name or PRIMITIVES.get(name, STABLEHLO_OPS.get(f"stablehlo.{name}")) == "collective-permute"


def _size(type: HloType) -> int:
    """The number of elements, also of all arrays of a tuple."""
    parts = type.elements if isinstance(type, TupleShape) else (type,)
    return sum(array_type(each).elements or 0 for each in parts)


def _contracts(instruction: Instruction) -> bool:
    """Return whether it is made for a product: of small ones XLA makes sums of products."""
    return any(does(each) is Does.CONTRACT for each in _primitives(instruction))


class _Which(Container[Instruction]):
    """The instructions for which `test` is true."""

    def __init__(self, test: Callable[[Instruction], bool]) -> None:
        self._test = test

    def __contains__(self, instruction: object) -> bool:
        return isinstance(instruction, Instruction) and self._test(instruction)


class Judge:
    """Says what the collectives of one module are there for; what it finds out about one serves the others."""

    def __init__(self, program: Program, flow: ValueFlow, listed: Sequence[Collective]) -> None:
        self.program = program
        self.flow = flow
        self.is_differentiated = context_of(program).differentiated
        self.weights = weights_of(program) if self.is_differentiated else frozenset[str]()
        self._directions_of: dict[Instruction, frozenset[Pass]] = {}
        self._takers = Ends(
            flow.flow, MOVES | POINTWISE, self._passes_of_taker, lambda use: not self._updates(use), decisive=(None,)
        )
        self._sent_by: dict[Instruction, Mapping[Instruction, None]] = {}
        # What was found out about what a collective takes ends the walks of those that take what is made of it.
        self._is_product: dict[Instruction, bool] = {}
        self._reduced: dict[Instruction, frozenset[bool]] = {}
        self._computed: set[Instruction] = set()
        self._stages: set[Instruction] = set()
        self.permutes: dict[tuple[object, ...], set[Instruction]] = {}
        self._pairs: dict[Instruction, object] = {}
        self._edges: set[Instruction] = set()
        for each in listed:
            found = flow.module.instruction(each.computation, each.name) if each.kind == "collective-permute" else None
            if found is not None:
                self.permutes.setdefault((each.computation, each.pairs), set()).add(found)
                self._pairs[found] = each.pairs

    def purpose(self, collective: Collective) -> Purpose:
        """Return the purpose of a collective."""
        instruction = self.flow.module.instruction(collective.computation, collective.name)
        if instruction is None:
            return Purpose()
        if is_scalar(collective):
            return Purpose("scalar reductions")
        if KIND_OF[collective.kind].reduces:
            if collective.origin != "user" and _slices(last_components(collective.op_name or "")):
                return Purpose("resharding")  # One device has the slice, the others add zeros to it.
            return self._of_a_sum(collective, instruction) if collective.reduction in SUMS else Purpose()
        if collective.kind == "all-gather" and (purpose := self._of_a_gather(collective, instruction)) is not None:
            return purpose
        moved = collective.origin in ("partitioner", "explicit") and {
            each.effect for each in causes_of(self.program, collective)
        }
        if collective.kind == "collective-permute":
            if not self._is_shift(collective, instruction):
                return Purpose("resharding")
            if self._sends_edges(collective, instruction):
                return Purpose("halo exchange")
            if (strategy := self._of_a_permute(collective, instruction)) == "ring exchange":
                return self._of_a_ring(collective, instruction)
            if strategy:
                return Purpose(strategy)
        if collective.kind == "all-to-all" and collective.origin in ("user", "autodiff"):
            return Purpose("all-to-all exchange")
        return Purpose("resharding" if moved and moved <= {"reshard", "move", "own"} else "other")

    def collects_stages(self, collective: Collective) -> bool:
        """Return whether it sums the products that a pipeline's permutes send on, of which one stage keeps its own."""
        instruction = self.flow.module.instruction(collective.computation, collective.name)
        operands = () if instruction is None else self.flow.operands(instruction)
        products = (each.instruction for operand in operands for each in self.flow.sources(operand))
        return KIND_OF[collective.kind].reduces and not self._stages.isdisjoint(products)

    def _sends_edges(self, collective: Collective, instruction: Instruction) -> bool:
        """Return whether it is written in the program, and sends less than half of a block, the same on all devices.

        Parts that are cut at an index go around a ring. Corners are edges that permutes of other pairs send on.
        """
        if collective.origin not in ("user", "autodiff") or instruction in self._rings:
            return False
        if not any(each in self._edges or self._cuts(each) for each in self._ends[instruction]):
            return False
        self._edges.add(instruction)
        return True

    @cached_property
    def _ends(self) -> Mapping[Instruction, Sequence[Instruction]]:
        """For each permute, the collectives and the slices that it sends the results of."""
        stops = _Which(lambda each: does(each.opcode) in SENDS or self._cuts(each))
        found: dict[Instruction, list[Instruction]] = {}
        for permute in self._pairs:
            sources = (each for operand in self.flow.operands(permute) for each in self.flow.sources(operand, stops))
            found[permute] = [each.instruction for each in sources if each.kind == "stop" and each.is_moved]
        return found

    @cached_property
    def _rings(self) -> Collection[Instruction]:
        """The permutes that send what another one to the same devices did, or whose results such a one sends on."""
        pairs = ((one, end) for one, ends in self._ends.items() for end in ends)
        return {each for pair in pairs if self._pairs[pair[0]] == self._pairs.get(pair[1]) for each in pair}

    def _cuts(self, instruction: Instruction) -> bool:
        """Return whether it leaves less than half of an array, by its shape alone."""
        taken = sum(_size(each.instruction.type) for each in self.flow.operands(instruction)[:1])
        is_part = does(instruction.opcode) not in Does.FORWARD | SENDS and 0 < 2 * _size(instruction.type) < taken
        return is_part and all(meaning_of(name).first is None for name in _primitives(instruction))

    def is_reduction(self, collective: Collective) -> bool:
        """Return whether it reduces what the program's own reductions leave, as in norms and softmax."""
        instruction = self.flow.module.instruction(collective.computation, collective.name)
        operands = [] if instruction is None else self.flow.operands(instruction)
        return frozenset[bool]().union(*map(self._are_reductions, operands)) == {True}

    def _are_reductions(self, operand: Place) -> frozenset[bool]:
        known = self._reduced.get(operand.instruction)
        if known is None:
            found = set[bool]()
            for source in self.flow.sources(operand, self._reduced):
                if source.kind in MADE:
                    found.add(all_do(_primitives(source.instruction), Does.REDUCE))
                found |= self._reduced.get(source.instruction, set())
            known = self._reduced[operand.instruction] = frozenset(found)
        return known

    def _of_a_sum(self, collective: Collective, instruction: Instruction) -> Purpose:
        """The strategy of most of the bytes that are summed, where several sums were combined."""
        sizes: Counter[Strategy] = Counter()
        gradients: list[Place] = []
        operands = self.flow.operands(instruction)
        # Parts that each device writes into zeros are gathered by their sum.
        if (
            all(map(self.flow.is_placed, operands))
            and (purpose := self._of_a_gather(collective, instruction)) is not None
        ):
            return purpose
        types = collective.operand_types
        results = [Place(instruction, index if len(operands) > 1 else None) for index in range(len(operands))]
        names = merged_parts(collective.op_name or "")
        for index, (operand, result) in enumerate(zip(operands, results, strict=True)):
            strategy: Strategy = "scalar reductions"
            if index >= len(types) or types[index].elements != 1:
                directions = self._directions_of_part(collective, names, index, operand)
                strategy = self._of_a_part(collective, operand, result, directions)
            sizes[strategy] += (types[index].bytes or 0) if index < len(types) else 0
            gradients += [result] if strategy == "gradient sync" else []
        for strategy, size in sizes.most_common(1):
            if size * 2 > sizes.total():
                return Purpose(strategy, gradients=tuple(gradients))
        return Purpose()

    def _directions_of_part(
        self, collective: Collective, names: Sequence[str], index: int, operand: Place
    ) -> set[Pass]:
        """The passes that one operand of a collective belongs to, by its name or what it is made of."""
        count = len(collective.operand_types)
        parts = collective.parts[index : index + 1] if len(collective.parts) == count else collective.parts
        named = names[index : index + 1] if len(names) == count else names
        if all(part.of_gradients for part in parts or (collective,)):
            return {"backward"}
        found = {part.direction for part in parts} or {collective.direction}
        found = found if found != {"unknown"} else {self._direction(name) for name in named}
        if found != {"unknown"}:
            return found
        return found.union(
            *(self._directions(each.instruction) for each in self.flow.sources(operand) if each.kind in MADE)
        )

    def _of_a_part(self, collective: Collective, operand: Place, result: Place, directions: set[Pass]) -> Strategy:
        """A gradient is summed for an output or the optimizer; partial sums of other products go on from there."""
        if self.flow.is_placed(operand):
            return "resharding"
        if self._is_updated(operand):
            return "averages"
        if "backward" in directions:
            takers = frozenset[Pass | None]().union(*map(self._takers.of, self.flow.values(result)))
            # The gradient of an activation is what products of the backward pass take, and in the end the table's.
            if ("unknown" in takers and None not in takers) or self._is_needed(collective):
                return "gradient sync"
            if self._has_product(operand):
                return "tensor parallelism" if "backward" in takers else "other"
            return "gradient sync" if self._is_reduced_further(result) else "other"
        if collective.averages:
            return "other"  # values of the same kind on all devices, and no parts of a product
        return "tensor parallelism" if "forward" in directions and self._has_product(operand) else "other"

    def _passes_of_taker(self, use: HloUse | Output | None) -> Iterator[Pass | None]:
        """The passes in which a value is taken, and None for a product of the backward pass, which decides."""
        if isinstance(use, Output) or (use is not None and self._updates(use)):
            yield "unknown"
        elif use is not None and self.flow.flow.does(use) is not Does.INDEX:
            taken = self._directions(use.instruction)
            yield from taken
            if "backward" in taken and self._is_a_product(use.instruction):
                yield None

    def _updates(self, use: HloUse) -> bool:
        """Return whether it combines a value, element by element, with a weight of the same size: as optimizers do."""
        type = use.instruction.type
        if not self.weights or self.flow.work.of(use.instruction) != "elementwise" or array_type(type).elements == 1:
            return False
        operands = self.flow.operands(use.instruction)
        return any(self._is_weight(each, type) for position, each in enumerate(operands) if position != use.position)

    def _is_updated(self, operand: Place) -> bool:
        made = self.flow.maker(operand)
        is_elementwise = self.flow.work.of(made) == "elementwise" or made.opcode == "fusion"
        return is_elementwise and any(self._is_weight(each, made.type) for each in self.flow.operands(made))

    def _is_weight(self, operand: Place, type: HloType) -> bool:
        """Return whether an operand is a weight of the same size, as it is when the program or a loop of it begins."""
        made = self.flow.maker(operand)
        is_argument = made.opcode == "parameter" and made.computation.is_entry and made.op_name in self.weights
        return is_argument and array_type(made.type).dims == array_type(type).dims

    def _is_reduced_further(self, result: Place) -> bool:
        """Return whether each device reduces a sum to a gradient, as that of a norm's scale over all positions."""
        ends = list(self.flow.ends(result))
        reductions = [each for each in ends if each is not None and all_do(_primitives(each), Does.REDUCE)]
        after = [end for each in reductions for end in self.flow.ends(Place(each))]
        takers = {pass_ for each in after for pass_ in (["unknown"] if each is None else self._directions(each))}
        return bool(reductions) and len(reductions) == len(ends) and takers == {"unknown"}

    def _is_a_product(self, instruction: Instruction) -> bool:
        return self.flow.work.of(instruction) == "contraction" or _contracts(instruction)

    def _has_product(self, operand: Place) -> bool:
        if operand.instruction not in self._is_product:
            self._is_product[operand.instruction] = any(
                source.kind == "contraction"
                or self._is_product.get(source.instruction, False)
                or (source.kind == "other" and _contracts(source.instruction))
                for source in self.flow.sources(operand, self._is_product)
            )
        return self._is_product[operand.instruction]

    def _directions(self, instruction: Instruction) -> frozenset[Pass]:
        """The passes of an instruction; without a name, of what is fused in it, or of all that it is fused with."""
        if instruction not in self._directions_of:
            self._directions_of[instruction] = frozenset(self._named_directions(instruction))
        return self._directions_of[instruction]

    def _named_directions(self, instruction: Instruction) -> set[Pass]:
        around = self.flow.graph.callers(instruction.computation.name)
        is_fused = any(caller.opcode == "fusion" for _, caller in around)
        if instruction.op_name is not None and (is_path(instruction.op_name) or not is_fused):
            return {self._direction(instruction.op_name)}
        bodies = [self.flow.module.computation(each) for each in instruction.called]
        bodies += [instruction.computation] if is_fused else []
        names = {each.op_name for body in bodies if body is not None for each in body.instructions}
        found = {self._direction(each) for each in names if each is not None and is_path(each)}
        return found - {"unknown"} or found

    def _is_needed(self, collective: Collective) -> bool:
        """Return whether the operations that it serves compute gradients of weights, according to propagation."""
        return {each.needed for each in causes_of(self.program, collective) if each.effect == "sum"} == {True}

    def _direction(self, op_name: str | None) -> Pass:
        return direction_of(op_name, differentiated=self.is_differentiated)

    def _of_a_gather(self, collective: Collective, instruction: Instruction) -> Purpose | None:
        """The arguments that are most of what a gather moves, by bytes: weights, if most of it are."""
        sizes: Counter[Strategy | None] = Counter()
        moved: dict[Strategy, dict[str, None]] = {}
        types = collective.operand_types
        for index, operand in enumerate(self.flow.operands(instruction)):
            found = self._arguments_in(operand)
            if found is None:
                sizes[None] += (types[index].bytes or 0) if index < len(types) else 0
            for source in found or ():
                name = source.op_name
                strategy: Strategy = "weight gathers" if name in self.weights else "input gathers"
                sizes[strategy] += array_type(source.type).bytes or 0
                moved.setdefault(strategy, {}).update({name: None} if name else {})
        total, weights = sizes.total(), sizes["weight gathers"]
        if not moved or 2 * sizes[None] >= total > 0:
            return None
        if 2 * weights > total:
            return Purpose("weight gathers", tuple(moved["weight gathers"]))
        return Purpose("input gathers", tuple(name for names in moved.values() for name in names))

    def _arguments_in(self, operand: Place) -> list[Instruction] | None:
        """The arguments that a value is moved from, one or several in a row; None where anything is computed."""
        found = []
        for source in self.flow.sources(operand, self._computed):
            if source.kind != "argument" or not source.is_moved:
                self._computed.add(operand.instruction)
                return None
            found.append(source.instruction)
        return found or None

    def _is_shift(self, collective: Collective, instruction: Instruction) -> bool:
        """Return whether a permute is written in the program, or is the partitioner's form of a roll of a loop's carry.

        Its others exchange what is at the edges of parts, or, where axes trade places, whole parts. With JAX 0.12 XLA
        leaves some without a name: then it is a shift if every device sends and receives.
        """
        names = set(last_components(collective.op_name or ""))
        if collective.origin in ("user", "autodiff") or (
            collective.origin == "unknown" and all(map(_may_permute, names))
        ):
            return True
        is_ring = {source for source, _ in collective.pairs} == {to for _, to in collective.pairs}
        is_placed = any(name == "roll" or does(name) is Does.PLACE for name in names)
        is_rolled = is_ring if collective.op_name is None else is_placed
        if not is_rolled:
            return is_ring and self._circulates(collective, instruction)
        is_rolled = all(source != to for source, to in collective.pairs)
        return is_rolled and any(self.flow.depends(each, {instruction}) for each in self.flow.operands(instruction))

    def _circulates(self, collective: Collective, instruction: Instruction) -> bool:
        """Return whether it passes on what it received, or adds to it, as in matmuls that overlap with gathers."""
        alike = self.permutes.get((collective.computation, collective.pairs), ())
        sources = [each for operand in self.flow.operands(instruction) for each in self.flow.sources(operand, alike)]
        made = [Place(each.instruction) for each in sources if each.kind in MADE]
        is_passed_on = any(each.kind == "stop" for each in sources)
        return is_passed_on and not any(self.flow.depends(each, alike) for each in made)

    def _of_a_ring(self, collective: Collective, instruction: Instruction) -> Purpose:
        """A ring that the partitioner makes of a gather or a sum, to overlap it with a matmul, serves what that did."""
        ring = Purpose("ring exchange")
        if collective.origin not in ("partitioner", "compiler"):
            return ring
        for operand in self.flow.operands(instruction):
            arguments = self._arguments_in(operand)
            names = tuple(dict.fromkeys(each.op_name for each in arguments or () if each.op_name))
            if names:
                return Purpose("weight gathers" if self.weights.issuperset(names) else "input gathers", names)
            if self._has_product(operand):
                result = Place(instruction)
                strategy = self._of_a_part(collective, operand, result, {self._direction(collective.op_name)})
                if strategy != "other":
                    return Purpose(strategy)
        return ring

    def ring_of(self, collective: Collective, rings: Collection[Instruction]) -> Instruction | None:
        """Return the ring whose result a permute sends on behind the loop, or that goes on with what it sends."""
        instruction = self.flow.module.instruction(collective.computation, collective.name)
        if instruction is None:
            return None
        sent = next((each for each in self._sent(instruction) if each in rings), None)
        return sent or next((ring for ring in rings if instruction in self._sent(ring)), None)

    def _sent(self, instruction: Instruction) -> Mapping[Instruction, None]:
        """The instructions that the operands of a permute come from or through, in the order of the walk."""
        if instruction not in self._sent_by:
            sources = (each for operand in self.flow.operands(instruction) for each in self.flow.walk(operand))
            self._sent_by[instruction] = dict.fromkeys(each.instruction for each in sources)
        return self._sent_by[instruction]

    def _of_a_permute(self, collective: Collective, instruction: Instruction) -> Strategy | None:
        """A stage of matmuls computes what is sent from what was received; a ring passes it on, or adds to it."""
        alike = self.permutes.get((collective.computation, collective.pairs), ())
        for operand in self.flow.operands(instruction):
            sources = list(self.flow.sources(operand, alike))
            received = [source.instruction for source in sources if source.kind == "stop"]
            for source in sources:
                # Of several values that go around, each may be multiplied into another one.
                if source.kind == "contraction" and self.flow.depends(Place(source.instruction), received or alike):
                    self._stages.add(source.instruction)
                    return "pipeline"
            if received:
                return "ring exchange"
        return None
