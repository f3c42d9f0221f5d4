"""Random programs of loops, branches, calls and tuples, and what their results are made of, by running them.

A run takes marks in place of numbers: those of a result are the arguments, and products, that it was computed from.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from shardscope.parsers.hlo import Computation, HloModule, Instruction, parse_module
from shardscope.parsers.source import Source

ARRAY, WIDTH, ROUNDS = "f32[4]", 3, 4
TUPLE = f"({', '.join([ARRAY] * WIDTH)})"

Marks = tuple[frozenset[tuple[str, bool]], ...]
"""Of an array one set, of a tuple one for each of its elements: names, and whether the numbers were only moved."""


@dataclass
class Run:
    """In which each loop runs so many times at least.

    Where it `stops`, a product has its own mark, and notes those that it takes; where it only `moves`, all that is
    computed has its own.
    """

    least: int = 0
    stops: bool = True
    moves: bool = False
    taken: dict[str, set[str]] = field(default_factory=dict)


@dataclass
class Step:
    """An instruction: its operands are steps before it, `of` the computations that it calls."""

    name: str
    opcode: str
    operands: tuple[Step, ...] = ()
    of: tuple[Body, ...] = ()
    element: int | None = None
    number: int | None = None
    is_tuple: bool = False

    def text(self) -> str:
        given = f"{self.number}" if self.number is not None else ", ".join(f"%{each.name}" for each in self.operands)
        names = {"while": ("body", "condition"), "conditional": ("true_computation", "false_computation")}
        called = [
            f"{key}=%{body.name}" for key, body in zip(names.get(self.opcode, ("to_apply",)), self.of, strict=False)
        ]
        called += [f"index={self.element}"] if self.element is not None else []
        type = "pred[]" if self.name.startswith("p.") else TUPLE if self.is_tuple else ARRAY
        return f"%{self.name} = {type} {self.opcode}({given}){''.join(f', {each}' for each in called)}"


@dataclass
class Body:
    name: str
    inputs: list[Step]
    steps: list[Step] = field(default_factory=list)

    def text(self) -> str:
        *others, root = [each.text() for each in (*self.inputs, *self.steps)]
        lines = [f"  {line}\n" for line in (*others, f"ROOT {root}")]
        return f"%{self.name} {{\n{''.join(lines)}}}\n\n"

    def run(self, marks: Sequence[Marks], run: Run) -> Marks:
        """The marks of the result."""
        known = {each.name: given for each, given in zip(self.inputs, marks, strict=True)}
        for step in self.steps:
            known[step.name] = ran(step, [known[each.name] for each in step.operands], run)
        return known[(self.steps or self.inputs)[-1].name]


def ran(step: Step, given: list[Marks], run: Run) -> Marks:
    match step.opcode:
        case "tuple":
            return tuple(each[0] for each in given)
        case "get-tuple-element":
            return (given[0][step.element or 0],)
        case "opt-barrier" | "copy" | "add-dependency":
            return given[0]
        case "all-reduce" if run.moves:
            return tuple(frozenset({(f"{step.name}:{n}", True)}) for n in range(len(given)))
        case "all-reduce":
            return given[0] if len(given) == 1 else tuple(each[0] for each in given)
        case "dot" if run.stops:
            run.taken.setdefault(step.name, set()).update(name for each in given for name, _ in each[0])
            return (frozenset({(step.name, True)}),)
        case "conditional":
            branches = [body.run([operand], run) for body, operand in zip(step.of, given[1:], strict=True)]
            return tuple(one | other for one, other in zip(*branches, strict=True))
        case "while":
            carried = given[0]
            for _ in range(run.least):
                carried = step.of[0].run([carried], run)
            seen = carried
            for _ in range(ROUNDS):
                carried = step.of[0].run([carried], run)
                seen = tuple(one | other for one, other in zip(seen, carried, strict=True))
            return seen
        case "call":
            return step.of[0].run(given, run)
        case _ if run.moves:
            return (frozenset({(f"{step.name}:0", True)}),)
        case "constant":
            return (frozenset(),)
    return (frozenset((name, False) for each in given for name, _ in each[0]),)


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bodies: list[Body] = []
        self.count = 0

    def name(self, word: str) -> str:
        self.count += 1
        return f"{word}.{self.count}"

    def body(self, inputs: str, result: str, depth: int | None) -> Body:
        """A computation of arrays (`a`) and tuples (`t`), and what it gives; without a depth there are no tuples."""
        given = [
            Step(self.name("t" if kind == "t" else "a"), "parameter", number=number, is_tuple=kind == "t")
            for number, kind in enumerate(inputs)
        ]
        body = Body(self.name("body"), given)
        for _ in range(self.random.randrange(1, 6)):
            body.steps.append(self.step(body, depth))
        arrays = [each for each in self.arrays(body) if not each.is_tuple]
        if result == "t":
            parts = self.random.choices(arrays, k=WIDTH)
            for number in range(WIDTH if inputs == "t" else 0):
                if self.random.random() < 0.4:  # as a loop carries what it does not change
                    parts[number] = Step(self.name("a"), "get-tuple-element", (given[0],), element=number)
                    body.steps.append(parts[number])
            body.steps.append(Step(self.name("t"), "tuple", tuple(parts), is_tuple=True))
        else:
            body.steps.append(Step(self.name("a"), "add", tuple(self.random.choices(arrays, k=2))))
        self.bodies.append(body)
        return body

    def arrays(self, body: Body) -> list[Step]:
        """The arrays that are there, elements of tuples among them."""
        found = [each for each in (*body.inputs, *body.steps) if not each.name.startswith("p.")]
        for each in [each for each in found if each.is_tuple]:
            taken = Step(self.name("a"), "get-tuple-element", (each,), element=self.random.randrange(WIDTH))
            body.steps.append(taken)
            found.append(taken)
        return found

    def step(self, body: Body, depth: int | None) -> Step:
        arrays = [each for each in self.arrays(body) if not each.is_tuple]
        tuples = [each for each in (*body.inputs, *body.steps) if each.is_tuple]
        one, other = self.random.choices(arrays, k=2)
        several = tuple(self.random.choices(arrays, k=WIDTH))
        kinds = ["add", "negate", "constant"]
        if depth is not None:
            kinds += [
                "dot",
                "tuple",
                "all-reduce",
                "one sum",
                *(["opt-barrier", "copy", "add-dependency"] if tuples else []),
            ]
        if depth:
            kinds += ["call", "conditional", *(["while"] * 2 if tuples else [])]
        match kind := self.random.choice(kinds):
            case "add" | "dot":
                return Step(self.name("dot" if kind == "dot" else "a"), kind, (one, other))
            case "one sum":
                return Step(self.name("a"), "all-reduce", (one,))
            case "negate":
                return Step(self.name("a"), kind, (one,))
            case "constant":
                return Step(self.name("a"), kind, number=1)
            case "tuple" | "all-reduce":
                return Step(self.name("t"), kind, several, is_tuple=True)
            case "opt-barrier" | "copy":
                return Step(self.name("t"), kind, (self.random.choice(tuples),), is_tuple=True)
            case "add-dependency":
                return Step(self.name("t"), kind, (self.random.choice(tuples), one), is_tuple=True)
            case "call":
                return Step(self.name("a"), kind, (one, other), (self.body("aa", "a", None),))
            case "while":
                assert depth
                ends = Body(self.name("condition"), [Step(self.name("t"), "parameter", number=0, is_tuple=True)])
                ends.steps.append(Step(self.name("p"), "constant", number=1))
                self.bodies.append(ends)
                of = self.body("t", "t", depth - 1), ends
                return Step(self.name("t"), kind, (self.random.choice(tuples),), of, is_tuple=True)
        assert depth
        body.steps.append(Step(self.name("p"), "constant", number=1))
        is_tuple, takes = self.random.random() < 0.5, "t" if tuples and self.random.random() < 0.5 else "a"
        branches = tuple(self.body(takes, "t" if is_tuple else "a", depth - 1) for _ in range(2))
        handed = self.random.choices(tuples if takes == "t" else arrays, k=2)
        return Step(self.name("t" if is_tuple else "a"), kind, (body.steps[-1], *handed), branches, is_tuple=is_tuple)


class Program:
    """The program of a seed: two arrays and a tuple go in, a tuple comes out."""

    def __init__(self, seed: int) -> None:
        writer = Writer(seed)
        self.main = writer.body("aat", "t", 2)
        *others, last = [body.text() for body in writer.bodies]
        self.text = f"HloModule m\n\n{''.join(others)}ENTRY {last}"
        self.module: HloModule = parse_module(Source("m", self.text.encode()))
        assert not self.module.problems, self.text

    def run(self, run: Run, by_element: bool = False) -> Marks:
        """The marks of the result; arguments are marked by their names, and by the number of the element too."""

        def marked(argument: Step) -> Marks:
            names = [f"{argument.name}:{n}" for n in range(WIDTH)] if by_element else [argument.name] * WIDTH
            return tuple(frozenset({(name, True)}) for name in names[: WIDTH if argument.is_tuple else 1])

        return self.main.run([marked(each) for each in self.main.inputs], run)

    @property
    def entry(self) -> Computation:
        assert self.module.entry is not None
        return self.module.entry

    @property
    def root(self) -> Instruction:
        assert self.entry.root is not None
        return self.entry.root

    def instruction(self, name: str) -> Instruction:
        """One of the entry's."""
        found = self.entry.instruction(name)
        assert found is not None
        return found
