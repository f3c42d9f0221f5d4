"""A traced function once more, with values from inside it as additional results.

The jaxpr is evaluated equation by equation. A value that is wanted leaves through every shard_map, loop and branch
around it: a shard_map gives it one leading dimension for each axis that is manual in it, a loop one for the iterations
that are kept, a branch zeros where it was not taken. So nothing is called back, nothing is communicated for it, and it
works wherever the function itself does. What the values are when nobody looks may differ in the last bit: this is
another program, and the compiler may fuse it otherwise. How JAX binds a recorded equation is private to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import P, lax

from ....catalog.spellings import CALLED, CALLS
from ..program import structure
from ..program.structure import bodies, opened
from .keeping import Keeping
from .sites import Looped, Mapped, Path, Taken, slots_for


@dataclass(slots=True)
class Prober(Keeping):
    """Evaluates a jaxpr with probes.

    `ids` gives the table index of a jaxpr by its `id` and by whether it stands under a check; `wanted` tells which
    equations' values are kept whole, by id, equation and whether it stands in a shard_map; `digests` whether the
    digests of all results are; `iterations` are those that are kept of each loop.
    """

    ids: dict[tuple[int, bool], int]
    wanted: Callable[[str, Any, bool], bool]
    digests: bool
    iterations: tuple[int, ...]
    busy: dict[tuple[int, bool, bool], bool] = field(default_factory=dict, init=False)

    def run(
        self, jaxpr: Any, inputs: Sequence[Any], path: Path = (), *, is_mapped: bool = False
    ) -> tuple[list[Any], dict[str, Any]]:
        """The results, and the probed values by their keys in `sites`; with `is_mapped`, of a shard_map's body."""
        environment = Environment(jaxpr, inputs)
        jaxpr = opened(jaxpr)
        leaving = set(map(id, jaxpr.outvars)) if is_mapped else set()
        index = self.ids.get((id(jaxpr), self.checked), -1)
        probes: dict[str, Any] = {}
        for position, equation in enumerate(jaxpr.eqns):
            name = f"{index}.{position}"
            here = (*path, name)
            values = [environment.read(atom) for atom in equation.invars]
            # Literals are what the program's text says they are.
            has_variables = any(not hasattr(atom, "val") for atom in equation.invars)
            wanted = has_variables and self.wanted(name, equation, self.manual)
            if wanted:
                self.keep_all(probes, here, "before", values, equation.invars)
            results, inner = self.equation(equation, here, values)
            probes |= inner
            if wanted:
                self.keep_all(probes, here, "after", results, equation.outvars)
            if self.digests and self.manual:
                self.keep_digests(probes, here, results, equation.outvars, leaving)
            environment.write(equation.outvars, results)
        return [environment.read(atom) for atom in jaxpr.outvars], probes

    def has_sites(self, jaxpr: Any, manual: bool) -> bool:
        """Return whether anything in a jaxpr is probed."""
        inner = opened(jaxpr)
        key = (id(inner), self.checked, manual)
        if key not in self.busy:
            self.busy[key] = (manual and self.digests and bool(inner.eqns)) or any(
                self.wanted(f"{self.ids.get((id(inner), self.checked), -1)}.{position}", e, manual)
                or any(self.has_sites(body, manual or e.primitive.name == "shard_map") for body in bodies(e))
                for position, e in enumerate(inner.eqns)
            )
        return self.busy[key]

    def equation(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """An equation's results, and the probes from its bodies."""
        name = equation.primitive.name
        mapping = name == "shard_map"
        if not any(self.has_sites(body, self.manual or mapping) for body in bodies(equation)):
            return bind(equation, values), {}
        if mapping:
            return self.shard_map(equation, path, values)
        if name == "scan" and structure.loop(equation) is not None and equation.params["length"]:
            return self.scan(equation, path, values)
        if name == "while":
            return self.while_loop(equation, path, values)
        if name == "cond":
            return self.cond(equation, path, values)
        called = next((equation.params[key] for key in CALLED if key in equation.params), None)
        if name in CALLS and called is not None:
            # Each by itself: together they would vary over the axes of all.
            held = list(map(lax.optimization_barrier, values)) if equation.params.get("prevent_cse") else values
            return self.run(called, held, path)
        return bind(equation, values), {}

    def shard_map(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Each value leaves with a leading dimension for each manual axis."""
        params = equation.params
        axes = tuple(structure.manual_axes(equation))
        mesh = params["mesh"]
        layer = Mapped(axes, tuple(mesh.shape[axis] for axis in axes), mesh, structure.is_checked(equation))

        def body(*inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            with self.inside(layer):
                results, probes = self.run(params["jaxpr"], inputs, path, is_mapped=True)
                lifted = {key: lax.expand_dims(value, range(len(axes))) for key, value in probes.items()}
            return tuple(results), lifted

        mapped = jax.shard_map(
            body,
            mesh=mesh,
            in_specs=tuple(params["in_specs"]),
            out_specs=(tuple(params["out_specs"]), P(*axes)),
            axis_names=set(axes),
            check_vma=layer.checked,
        )
        results, probes = mapped(*values)
        return list(results), probes

    def scan(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """A scan with a counter and a buffer for each value."""
        params = equation.params
        constants, carried = structure.loop(equation) or (0, 0)
        fixed, carry, slices = (
            values[:constants],
            values[constants : constants + carried],
            values[constants + carried :],
        )
        loop = Looped(path, slots_for(self.iterations, params["length"], self.layers), params["length"])

        def body(carry: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
            with self.inside(loop):
                return self.run(params["jaxpr"], [*fixed, *carry, *slices], path)

        def step(state: Any, slices: Any) -> Any:
            count, carry, buffers = state
            results, probes = body(carry, slices)
            state = (count + 1, results[:carried], self.stored(buffers, probes, count, loop.kept))
            return state, results[carried:]

        buffers = self.buffers(lambda: body(carry, [each[0] for each in slices])[1], loop.kept)
        state = (jnp.int32(0), carry, buffers)
        (_, carry, buffers), rest = lax.scan(step, state, slices, params["length"], params["reverse"], params["unroll"])
        return [*carry, *rest], buffers

    def while_loop(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """A while loop with a counter and a buffer for each value of its body and of its condition.

        The condition is evaluated once more at the beginning of each iteration, for only there its values can be kept,
        and after the loop, for those that ended it.
        """
        params = equation.params
        of_condition, of_body = params["cond_nconsts"], params["body_nconsts"]
        condition_values, body_values = values[:of_condition], values[of_condition : of_condition + of_body]
        carry = values[of_condition + of_body :]
        kept = slots_for(self.iterations, None, self.layers)
        asking, running = Looped(path, kept, None, more=1), Looped(path, kept, None)

        def going_on(state: Any) -> Any:
            (answer,) = evaluated(params["cond_jaxpr"], [*condition_values, *state[1]], bind)
            return answer

        def condition_probes(carry: Sequence[Any]) -> dict[str, Any]:
            if not self.has_sites(params["cond_jaxpr"], self.manual):
                return {}
            with self.inside(asking):
                return self.run(params["cond_jaxpr"], [*condition_values, *carry], path)[1]

        def body(carry: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
            before = condition_probes(carry)
            with self.inside(running):
                results, probes = self.run(params["body_jaxpr"], [*body_values, *carry], path)
            return results, {**before, **probes}

        def step(state: Any) -> Any:
            count, carry, buffers = state
            results, probes = body(carry)
            return count + 1, results, self.stored(buffers, probes, count, kept)

        state = (jnp.int32(0), carry, self.buffers(lambda: body(carry)[1], kept))
        count, carry, buffers = lax.while_loop(going_on, step, state)
        probes = {**buffers, **self.stored(buffers, condition_probes(carry), count, kept)}
        self.keep(probes, path, "count", 0, count, is_needed=True)
        return list(carry), probes

    def cond(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """A conditional whose branches give each other's probes as zeros."""
        index, *arguments = values
        branches = equation.params["branches"]

        def probed(number: int) -> tuple[list[Any], dict[str, Any]]:
            with self.inside(Taken(path, number)):
                return self.run(branches[number], arguments, path)

        shapes = [jax.eval_shape(lambda number=number: probed(number)[1]) for number in range(len(branches))]

        def branch(number: int) -> Callable[[], Any]:
            def taken() -> Any:
                results, own = probed(number)
                others = {key: self.zeros(one) for each in shapes for key, one in each.items() if key not in own}
                return results, {**others, **own}

            return taken

        results, probes = lax.switch(index, [branch(number) for number in range(len(branches))])
        probes = dict(probes)
        self.keep(probes, path, "branch", 0, index, is_needed=True)
        return list(results), probes


def probe() -> str | None:
    """Return what cannot be done with this version of JAX because an attribute has moved."""
    equation = jax.make_jaxpr(jax.lax.neg)(1).jaxpr.eqns[0]
    if not (hasattr(equation, "ctx") and hasattr(equation.primitive, "get_bind_params")):
        return f"JAX {jax.__version__} evaluates equations differently: values inside the program are not available"
    return None


def bind(equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of an equation, traced where this is called, in its own context (mesh, checks)."""
    params = equation.primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # a pair before JAX 0.10
    with equation.ctx.manager:
        results = equation.primitive.bind(*functions, *inputs, **params)
    return list(results) if equation.primitive.multiple_results else [results]


class Environment:
    """The values of one jaxpr's variables while it is evaluated."""

    def __init__(self, jaxpr: Any, inputs: Sequence[Any]) -> None:
        inner = opened(jaxpr)
        constants = getattr(jaxpr, "consts", ())
        self._values = dict(zip((*inner.constvars, *inner.invars), (*constants, *inputs), strict=True))

    def read(self, atom: Any) -> Any:
        """The value of a variable, or a literal's own."""
        return atom.val if hasattr(atom, "val") else self._values[atom]

    def write(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Give variables their values."""
        self._values.update(zip(variables, values, strict=True))


def evaluated(jaxpr: Any, inputs: Sequence[Any], bind: Callable[[Any, Sequence[Any]], list[Any]]) -> list[Any]:
    """The results of a jaxpr, each of whose equations `bind` evaluates."""
    environment = Environment(jaxpr, inputs)
    inner = opened(jaxpr)
    for equation in inner.eqns:
        environment.write(equation.outvars, bind(equation, [environment.read(atom) for atom in equation.invars]))
    return [environment.read(atom) for atom in inner.outvars]
