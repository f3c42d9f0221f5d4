"""Programs made at random from fixed seeds, `program_7`: nested calls, loops, branches, constraints, pytrees."""

import random

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SIZE = 16
MESHES = (((8,), "x"), ((4, 2), "xy"), ((2, 4), "xy"), ((2, 2, 2), "xyz"), ((1, 8), "xy"))
SIMPLE = ("dot", "constraint", "elementwise", "chlo", "transpose")
NESTED = ("scan", "cond", "jit", "vmap", "remat", "while", "custom")
OTHERS = ("constraint", "shard_map", "reduce", "sort", "lookup", "update", "concatenate", "reshape")


def program(seed):
    """A jitted function with the shardings that its outputs are to have, and its arguments."""
    rng = random.Random(seed)
    sizes, names = rng.choice(MESHES)
    mesh = jax.make_mesh(sizes, tuple(names), axis_types=(AxisType.Auto,) * len(sizes))

    def spec(rank=2):
        entries = [()] * rank
        for axis in rng.sample(names, len(names)):
            if rng.random() > 0.35:
                entries[rng.randrange(rank)] += (axis,)
        return P(*(entry or None for entry in entries))

    def plan(depth):
        kinds = (*SIMPLE, *OTHERS, *NESTED) if depth < 2 else SIMPLE
        steps = [rng.choice(kinds) for _ in range(rng.randrange(2, 5))]
        return [(kind, plan(depth + 1) if kind in NESTED else [], spec(), spec(), rng.random()) for kind in steps]

    def step(kind, inner, one, other, chance, v, w):
        first = chance < 0.5
        axis = int(first)
        match kind:
            case "dot":
                return v @ w
            case "constraint":
                wanted = P(P.UNCONSTRAINED, one[1]) if chance < 0.2 else one
                return lax.with_sharding_constraint(v, NamedSharding(mesh, wanted))
            case "elementwise":
                return jnp.where(v > 0, v, w) if first else jnp.sin(v) + 2 * w
            case "chlo":
                return jnp.square(v) if first else lax.erf_inv(v)
            case "transpose":
                return v.T
            case "shard_map":
                twice = jax.shard_map(lambda a, b: 2 * a, mesh=mesh, in_specs=(one, other), out_specs=one)
                return twice(v, w)
            case "reduce":
                return v - v.sum(axis=axis, keepdims=True)
            case "sort":
                return jnp.sort(v, axis=axis)
            case "lookup":
                return v[jnp.arange(SIZE)[::-1]]
            case "update":
                return lax.dynamic_update_slice(v, w[:4], (3, 0))
            case "concatenate":
                return jnp.concatenate([v[: SIZE // 2], w[SIZE // 2 :]])
            case "reshape":
                return v.reshape(4, 4, SIZE).reshape(SIZE, SIZE) if first else v.reshape(-1).reshape(SIZE, SIZE)
            case "scan":
                v, stacked = lax.scan(lambda c, x: 2 * (run(inner, c, x),), v, jnp.stack([w, 2 * w, w - 1]))
                return v + stacked[1] if first else v
            case "while":
                return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, run(inner, c[1], w)), (0, v))[1]
            case "cond":
                return lax.cond(v[0, 0] > 0, lambda a, b: run(inner, a, b), lambda a, b: a * 2, v, w)
            case "jit":
                return jax.jit(lambda a, b: run(inner, a, b))(v, w)
            case "remat":
                return jax.checkpoint(lambda a, b: run(inner, a, b))(v, w)
            case "vmap":
                return jax.vmap(lambda a: run(inner, a, w))(jnp.stack([v, v + 1])).sum(0)
            case "custom":
                function = jax.custom_vjp(lambda a, b: run(inner, a, b))
                function.defvjp(lambda a, b: (function(a, b), ()), lambda _, d: (d, d))
                return function(v, w)
        raise ValueError(kind)

    def run(steps, v, w):
        for each in steps:
            v = step(*each, v, w)
        return v

    steps = plan(0)

    def function(params, x):
        v = run(steps, x, params[0]["w"])
        product = v @ params[1]["w"]
        return {"state": v, "rest": [product, (product.sum(),)]}

    def like():
        return jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32, sharding=NamedSharding(mesh, spec()))

    arguments = [{"w": like()}, {"w": like()}], like()
    wanted = None
    if rng.random() < 0.6:
        whole = NamedSharding(mesh, P())
        wanted = {"state": NamedSharding(mesh, spec()), "rest": [NamedSharding(mesh, spec()), (whole,)]}
    return jax.jit(function, out_shardings=wanted), arguments


def __getattr__(name):
    word, _, seed = name.partition("_")
    if word != "program" or not seed.removesuffix("_inputs").isdecimal():
        raise AttributeError(name)
    function, arguments = program(int(seed.removesuffix("_inputs")))
    return arguments if seed.endswith("_inputs") else function
