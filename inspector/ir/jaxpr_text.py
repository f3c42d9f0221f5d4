"""The jaxpr as text, in JAX's own notation, where each equation stands in it, and what its values are used by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from ...parsers.record import Record
from ...parsers.source import Frame, Source, Span
from .jaxpr import Equation, Jaxpr, JaxprProgram, Variable

WIDTH = 100
"""Parameters longer than this stand on lines of their own."""

MAX_DEPTH = 60
"""Jaxprs nested deeper are not printed: no program needs it, and a crafted capture must not exhaust the stack."""


class EquationPlace(Record, frozen=True):
    """One equation where it is printed: the table index of its jaxpr, its index there, and its lines."""

    jaxpr: int
    index: int
    equation: Equation
    span: Span

    @property
    def id(self) -> str:
        """`jaxpr.index`, stable for one capture."""
        return f"{self.jaxpr}.{self.index}"


@dataclass(frozen=True, slots=True)
class JaxprText:
    """The printed program; `equations` are in the order of their first lines."""

    program: JaxprProgram
    source: Source
    equations: tuple[EquationPlace, ...]
    derived: dict[Hashable, object] = field(default_factory=dict, compare=False, repr=False)

    def stack(self, equation: Equation) -> tuple[Frame, ...]:
        """The equation's frames, innermost first; indices that name no frame are left out."""
        frames = self.program.frames
        return tuple(frames[index] for index in equation.stack if 0 <= index < len(frames))

    def equation_at(self, offset: int) -> EquationPlace | None:
        """The innermost equation that is printed around an offset."""
        around = [place for place in self.equations if place.span.start <= offset < place.span.end]
        return around[-1] if around else None


def print_jaxpr(program: JaxprProgram) -> JaxprText:
    """Print all of it. A jaxpr that several equations share is printed once, first, under a name."""
    return _Printer(program).run()


class _Printer:
    def __init__(self, program: JaxprProgram) -> None:
        self.program = program
        uses = Counter(body for jaxpr in program.jaxprs for e in jaxpr.equations for _, body in e.bodies)
        shared = [index for index, count in sorted(uses.items()) if count > 1]
        self.names = {index: f"f{number}" for number, index in enumerate(shared)}
        self.lines: list[str] = []
        self.size = 0
        self.places: list[EquationPlace] = []

    def run(self) -> JaxprText:
        for index, name in self.names.items():
            self._emit(f"let {name} = {{ lambda {_binders(self.program.jaxprs[index])} let")
            self._body(index, 4, 0)
            self._emit("} in")
        if self.program.jaxprs:
            self._emit(f"{{ lambda {_binders(self.program.jaxprs[0])} let")
            self._body(0, 4, 0)
            self._emit("}")
        self.places.sort(key=lambda place: place.span)
        return JaxprText(self.program, Source("jaxpr", "".join(self.lines).encode()), tuple(self.places))

    def _emit(self, text: str, indent: int = 0) -> None:
        line = " " * indent + " ".join(text.splitlines()) + "\n"
        self.lines.append(line)
        self.size += len(line.encode())

    def _body(self, index: int, indent: int, depth: int) -> None:
        jaxpr = self.program.jaxprs[index]
        if depth > MAX_DEPTH:
            self._emit("… nested too deeply to print", indent)
            return
        for position, equation in enumerate(jaxpr.equations):
            start = self.size
            self._equation(equation, indent, depth)
            self.places.append(EquationPlace(index, position, equation, span=Span(start, self.size)))
        self._emit(f"in ({', '.join(jaxpr.outputs)}{',' if len(jaxpr.outputs) == 1 else ''})", indent - 2)

    def _equation(self, equation: Equation, indent: int, depth: int) -> None:
        outputs = " ".join(map(_typed, equation.outputs)) or "_"
        head, inputs = f"{outputs} = {equation.primitive}", " ".join(equation.inputs)
        inline = " ".join(f"{name}={value}" for name, value in equation.params)
        if not equation.bodies and len(inline) <= WIDTH:
            self._emit(f"{head}[{inline}] {inputs}" if inline else f"{head} {inputs}", indent)
            return
        self._emit(f"{head}[", indent)
        parameters: list[tuple[str, str | int]] = sorted((*equation.params, *equation.bodies), key=lambda item: item[0])
        for name, value in parameters:
            if isinstance(value, str):
                self._emit(f"{name}={value}", indent + 2)
            elif value in self.names:
                self._emit(f"{name}={self.names[value]}", indent + 2)
            else:
                self._emit(f"{name}={{ lambda {_binders(self.program.jaxprs[value])} let", indent + 2)
                self._body(value, indent + 6, depth + 1)
                self._emit("}", indent + 2)
        self._emit(f"] {inputs}", indent)


def _binders(jaxpr: Jaxpr) -> str:
    constants, inputs = (" ".join(map(_typed, variables)) for variables in (jaxpr.constants, jaxpr.inputs))
    return f"{constants}; {inputs}."


def _typed(variable: Variable) -> str:
    return f"{variable.name}:{variable.type}"


def walk(program: JaxprProgram) -> Iterator[tuple[int, int, Equation]]:
    """Every equation of every jaxpr with its (jaxpr, index)."""
    for number, jaxpr in enumerate(program.jaxprs):
        for index, equation in enumerate(jaxpr.equations):
            yield number, index, equation


Value = tuple[int, str]
"""The index of a jaxpr, and the name of a variable in it."""


class JaxprUses:
    """`made` and `used` are by value: its equation, and the equations that take it, each with its position there."""

    def __init__(self, text: JaxprText) -> None:
        self.made: dict[Value, tuple[EquationPlace, int]] = {}
        self.used: dict[Value, list[tuple[EquationPlace, int]]] = {}
        for place in text.equations:
            for position, value in enumerate(self.results(place)):
                self.made[value] = place, position
            for position, value in enumerate(self.operands(place)):
                self.used.setdefault(value, []).append((place, position))

    def definition(self, value: Value) -> EquationPlace | None:
        """The equation that makes a value; None for what a body is given."""
        return self.made[value][0] if value in self.made else None

    def operands(self, place: EquationPlace) -> tuple[Value, ...]:
        """The operands of an equation; among them literals, which nothing makes."""
        return tuple((place.jaxpr, name) for name in place.equation.inputs)

    def results(self, place: EquationPlace) -> tuple[Value, ...]:
        """The values that an equation makes."""
        return tuple((place.jaxpr, output.name) for output in place.equation.outputs)

    def users_of(self, values: Collection[Value]) -> Mapping[Value, tuple[EquationPlace, ...]]:
        """For each value the equations that take it, in the order in which they print."""
        return {value: tuple(dict.fromkeys(place for place, _ in self.used.get(value, ()))) for value in values}
