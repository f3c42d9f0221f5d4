"""Programs made at random from fixed seeds, `mixed_7`: axes of several types in one mesh, parts of axes, partial sums,
memory kinds, axes in any order, gradients, loops and calls. A step that JAX refuses on the way is left out.
"""

import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

SIZE = 16
MESHES = (((4, 2), "xy"), ((2, 4), "xy"), ((2, 2, 2), "xyz"), ((8,), "x"), ((1, 8), "xy"))
SIMPLE = ("ask", "sin", "dot", "transpose", "parts", "sum", "twist", "lookup")
NESTED = ("scan", "while", "cond", "jit", "remat", "vmap", "custom_vjp", "custom_jvp", "grad", "shard_map", "inner_jit")
OTHERS = ("ask", "reduced", "unreduced", "host", "concatenate", "update", "sort", "split", "pad")


class Moments(NamedTuple):
    mean: object
    square: object


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    w: object
    b: object


@jax.tree_util.register_pytree_node_class
class Box:
    """A pytree whose leaves JAX can only number."""

    def __init__(self, *held):
        self.held = held

    def tree_flatten(self):
        return self.held, None

    @classmethod
    def tree_unflatten(cls, _, held):
        return cls(*held)


def mixed(seed):
    """A jitted function, and its arguments."""
    rng = random.Random(seed)
    sizes, names = rng.choice(MESHES)
    kinds = rng.choice(((AxisType.Auto,), (AxisType.Explicit,), (AxisType.Auto, AxisType.Explicit)))
    mesh = jax.make_mesh(sizes, tuple(names), axis_types=tuple(rng.choice(kinds) for _ in names))
    types = dict(zip(names, mesh.axis_types, strict=True))

    def spec(rank=2, allowed=names):
        entries = [()] * rank
        for axis in rng.sample(list(allowed), len(allowed)):
            if rng.random() > 0.35:
                entries[rng.randrange(rank)] += (axis,)
        return P(*(entry or None for entry in entries))

    def on(rank=2, **options):
        return NamedSharding(mesh, spec(rank), **options)

    def only(asked, kind):
        """The part of a spec that is on axes of one type."""
        every = [() if e is None else e if isinstance(e, tuple) else (e,) for e in asked]
        return P(*(tuple(axis for axis in entry if types[axis] == kind) or None for entry in every))

    def ask(v, sharding):
        if AxisType.Explicit in types.values():
            v = reshard(v, NamedSharding(mesh, only(sharding.spec, AxisType.Explicit)))
        if AxisType.Auto in types.values():
            wanted = only(sharding.spec, AxisType.Auto)
            v = lax.with_sharding_constraint(v, NamedSharding(mesh, wanted))
        return v

    def like(v, w):
        return v if types_of(v) == types_of(w) else reshard(v, NamedSharding(mesh, jax.typeof(w).sharding.spec))

    def types_of(v):
        return jax.typeof(v).sharding

    def plan(depth):
        chosen = (*SIMPLE, *OTHERS, *NESTED) if depth < 2 else SIMPLE
        steps = [rng.choice(chosen) for _ in range(rng.randrange(2, 5))]
        return [(kind, plan(depth + 1) if kind in NESTED else [], on(), on(), rng.random()) for kind in steps]

    def attempt(kind, inner, one, other, chance, v, w):
        try:
            made = step(kind, inner, one, other, chance, v, w)
            return made if made.shape == v.shape and made.dtype == v.dtype else v
        except Exception:  # whatever JAX says of types and axes
            return v

    def step(kind, inner, one, other, chance, v, w):
        first = chance < 0.5
        axis = int(first)
        match kind:
            case "ask":
                return ask(v, one)
            case "sin":
                return jnp.sin(v) + jnp.square(like(w, v))
            case "dot":
                return jnp.dot(v, w) if first else jnp.dot(v, w, out_sharding=one)
            case "transpose":
                return v.T
            case "parts":
                return jnp.tanh(v.reshape(2, SIZE // 2, SIZE)).reshape(SIZE, SIZE)
            case "split":
                heads = v.reshape(SIZE, 4, SIZE // 4).transpose(1, 0, 2)
                return jnp.einsum("hij,hkj->hik", heads, heads).sum(0)
            case "sum":
                return v - v.sum(axis=axis, keepdims=True)
            case "twist":
                return ask(ask(v, NamedSharding(mesh, P(tuple(names)))), NamedSharding(mesh, P(tuple(names[::-1]))))
            case "lookup":
                return v[jnp.arange(SIZE)[::-1]] if first else jnp.take(v, jnp.arange(SIZE) // 2, axis=0)
            case "concatenate":
                return jnp.concatenate([v[: SIZE // 2], like(w, v)[SIZE // 2 :]])
            case "update":
                return lax.dynamic_update_slice(v, like(w, v)[:4], (3, 0))
            case "sort":
                return jnp.sort(v, axis=axis)
            case "pad":
                return jnp.pad(v, ((1, 1), (0, 0)))[1:-1]
            case "host":
                there = jax.device_put(v, jax.memory.Space.Host)
                return jax.device_put(there, jax.memory.Space.Device) * 2
            case "unreduced":
                (axis, *_) = [name for name in names if types[name] == AxisType.Explicit]
                cut = reshard(v, P(None, axis)), reshard(w, P(axis, None))
                return reshard(jnp.dot(*cut, out_sharding=P(unreduced={axis})), P(axis if first else None, None))
            case "reduced":
                (axis, *_) = [name for name in names if types[name] == AxisType.Explicit]
                weight = reshard(w, P(reduced={axis}))
                return jax.grad(lambda a: jnp.sin(reshard(v, P(axis)) @ a).sum())(weight)
            case "scan":
                v, stacked = lax.scan(lambda c, x: (like(run(inner, c, x), c),) * 2, v, jnp.stack([w, w - 1, w * 2]))
                return v + stacked[1] if first else v
            case "while":
                body = lambda c: (c[0] + 1, like(run(inner, c[1], w), c[1]))  # noqa: E731
                return lax.while_loop(lambda c: c[0] < 3, body, (0, v))[1]
            case "cond":
                otherwise = lambda a, b: a * 2  # noqa: E731
                chosen = lambda a, b: like(run(inner, a, b), a)  # noqa: E731
                return lax.cond(ask(v, NamedSharding(mesh, P()))[0, 0] > 0, chosen, otherwise, v, w)
            case "jit":
                return jax.jit(lambda a, b: run(inner, a, b))(v, w)
            case "inner_jit":
                called = jax.jit(lambda a, b: run(inner, a, b), out_shardings=one if first else None)
                return called(called(v, w), w)
            case "remat":
                policy = jax.checkpoint_policies.dots_saveable if first else None
                kept = jax.checkpoint(lambda a, b: run(inner, a, b), policy=policy)
                return jax.grad(lambda a: jnp.sin(kept(a, w)).sum())(v)
            case "grad":
                return jax.grad(lambda a: jnp.square(run(inner, a, w)).sum())(v)
            case "vmap":
                axes = {"spmd_axis_name": names[0]} if first and math.prod(sizes) > 1 else {}
                both = jnp.stack([v] * sizes[0])
                return jax.vmap(lambda a: run(inner, a, w), **axes)(both).sum(0)
            case "custom_vjp":
                function = jax.custom_vjp(lambda a, b: run(inner, a, b))
                function.defvjp(lambda a, b: (function(a, b), (a, b)), lambda kept, d: (d * kept[0], kept[1]))
                return function(v, w) if first else jax.grad(lambda a: function(a, w).sum())(v)
            case "custom_jvp":
                function = jax.custom_jvp(lambda a: run(inner, a, w))
                function.defjvp(lambda p, t: (function(*p), t[0] * 2))
                return jax.jvp(function, (v,), (v,))[1]
            case "shard_map":
                chosen = set(names) if first else {names[-1]}
                within = only_of(one.spec, chosen), only_of(other.spec, chosen)
                back = within[0]
                mapped = jax.shard_map(
                    lambda a, b: manual(inner, a, b, chosen), mesh=mesh, in_specs=within, out_specs=back,
                    axis_names=chosen, check_vma=chance < 0.25,
                )  # fmt: skip
                return mapped(v, w)
        raise ValueError(kind)

    def only_of(asked, chosen):
        every = [() if e is None else e if isinstance(e, tuple) else (e,) for e in asked]
        return P(*(tuple(axis for axis in entry if axis in chosen) or None for entry in every))

    def manual(inner, a, b, chosen):
        a = a * lax.psum(jnp.float32(1), tuple(chosen)) + lax.pmean(b.sum(), min(chosen))
        if len(chosen) < len(names) and inner and inner[0][4] < 0.5:
            rest = [name for name in names if name not in chosen and types[name] == AxisType.Auto]
            a = lax.with_sharding_constraint(a, P(rest[0])) if rest else a
        return lax.ppermute(a, min(chosen), [(0, 0)]) + a

    def run(steps, v, w):
        for each in steps:
            v = attempt(*each, v, w)
        return v

    steps = plan(0)
    ends = on(), on(), rng.random()

    def function(layers, x, extra):
        layers, x, extra = jax.device_put((layers, x, extra), jax.memory.Space.Device)
        first, second = layers
        v = run(steps, x, first.w)
        loss, gradients = v, None
        if ends[2] < 0.4:
            loss, gradients = jax.value_and_grad(lambda w: jnp.square(run(steps[:2], x, w)).mean())(first.w)
        else:
            loss = v.mean()
        return {
            "state": Moments(v, jnp.square(v)),
            "layers": [Layer(second["w"] * 2, gradients), (loss, Box(jnp.sin(extra.held[0]), None))],
        }

    def leaf(rank=2):
        kind = {"memory_kind": "pinned_host"} if rng.random() < 0.08 else {}
        return jax.ShapeDtypeStruct((SIZE,) * rank, jnp.float32, sharding=on(rank, **kind))

    arguments = (Layer(leaf(), None), {"w": leaf()}), leaf(), Box(leaf(1), 3)
    options = {}
    if rng.random() < 0.5:
        state = Moments(rng.choice((None, on())), on())
        held = Box(on(1, memory_kind="pinned_host") if rng.random() < 0.3 else on(1), None)
        options["out_shardings"] = {"state": state, "layers": [Layer(on(), None), (NamedSharding(mesh, P()), held)]}
    if rng.random() < 0.3:
        options["donate_argnums"] = (1,)
    return jax.jit(function, **options), arguments, mesh


def __getattr__(name):
    word, _, seed = name.partition("_")
    if word != "mixed" or not seed.removesuffix("_inputs").isdecimal():
        raise AttributeError(name)
    function, arguments, _ = mixed(int(seed.removesuffix("_inputs")))
    return arguments if seed.endswith("_inputs") else function
