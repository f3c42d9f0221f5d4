"""All that becomes of a value, as far as blocks of it become blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...ir.jaxpr_text import EquationPlace
from .dimensions import dimension_before, passes
from .jaxpr_flow import MAX_STEPS, At, Flow, Use


@dataclass(frozen=True, slots=True)
class Step:
    """One value becomes another: by an equation, or, where `use` is None, by going into a body or out of it."""

    before: At
    use: Use | None
    after: At


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a value goes: the uses that end its way, and the steps up to there."""

    start: At
    ends: list[Use] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def through(self) -> tuple[EquationPlace, ...]:
        """The equations on the way."""
        return tuple(dict.fromkeys(step.use.place for step in self.steps if step.use is not None))

    def dimension(self, flow: Flow, cut: Iterable[tuple[At, int]], parts: int) -> int | None:
        """The dimension of the first value that is cut where, at the ends, these values are cut in `parts` blocks.

        None where it is not the same one for all of them.
        """
        wanted = dict(cut)
        into: dict[At, list[Step]] = {}
        for step in self.steps:
            into.setdefault(step.after, []).append(step)
        waiting = list(wanted)
        while waiting:
            value = waiting.pop()
            for step in into.get(value, ()):
                dim: int | None = wanted[value]
                if step.use is not None and dim is not None:
                    type = flow.type_of(step.before)
                    dim = dimension_before(step.use.place.equation, step.use.position, type or "", dim, parts)
                if dim is None or wanted.setdefault(step.before, dim) != dim:
                    return None
                waiting.append(step.before)
        return wanted.get(self.start)


def reached(flow: Flow, start: At, is_end: Callable[[Use], bool]) -> Reached | None:
    """Where a value goes; None where something else is done with it, or nothing at all."""
    found = Reached(start)
    waiting, seen = [start], {start}
    while waiting:
        value = waiting.pop()
        for use in flow.uses(value):
            if use is None or len(seen) > MAX_STEPS:
                return None
            if not isinstance(use, Use):
                after = use
                found.steps.append(Step(value, None, after))
            elif is_end(use):
                found.ends.append(use)
                continue
            elif passes(use.place.equation):
                after = At(use.place.jaxpr, use.place.equation.outputs[0].name, use.calls)
                found.steps.append(Step(value, use, after))
            else:
                return None
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return found if found.ends else None
