"""Ways to ask for shardings, made at random from fixed seeds, `form_7`: axis types, calls, pytrees, orders of axes."""

import random
from collections import namedtuple
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

SIZE = 16
MESHES = (((8,), "x"), ((4, 2), "xy"), ((2, 2, 2), "xyz"), ((2, 4), "xy"))
Pair = namedtuple("Pair", ["second", "first"])


@jax.tree_util.register_dataclass
@dataclass
class State:
    weight: object
    rest: object


def form(seed):
    """A jitted function, and its positional arguments and keywords."""
    rng = random.Random(seed)
    sizes, names = rng.choice(MESHES)
    explicit = rng.random() < 0.4
    mesh = jax.make_mesh(
        sizes, tuple(names), axis_types=((AxisType.Explicit if explicit else AxisType.Auto),) * len(sizes)
    )

    def spec(rank=2):
        entries = [()] * rank
        for axis in rng.sample(names, len(names)):
            if rng.random() > 0.3:
                entries[rng.randrange(rank)] += (axis,)
        return P(*(entry or None for entry in entries))

    def on(rank=2):
        return NamedSharding(mesh, spec(rank))

    def like(rank=2):
        return jax.ShapeDtypeStruct((SIZE,) * rank, jnp.float32, sharding=on(rank) if rng.random() < 0.8 else None)

    def ask(v, sharding):
        return reshard(v, sharding) if explicit else lax.with_sharding_constraint(v, sharding)

    def both(v, w, sharding):
        return ask(v, sharding) * ask(w, sharding)

    plan = [
        (rng.choice(("ask", "sin", "scan", "cond", "jit", "remat", "transpose", "shard_map")), on()) for _ in range(4)
    ]

    def step(kind, sharding, v, w):
        match kind:
            case "ask":
                v = ask(v, sharding)
            case "sin":
                v = jnp.sin(v)
            case "transpose":
                v = v.T
            case "scan":
                v = lax.scan(lambda c, _: (ask(jnp.cos(c), sharding), None), ask(v, sharding), None, length=2)[0]
            case "cond":
                v = ask(v, sharding)
                v = lax.cond(ask(v, NamedSharding(mesh, P()))[0, 0] > 0, lambda a: a * 2, lambda a: a + 1, v)
            case "jit":
                v = jax.jit(lambda a, b: both(a, b, sharding))(v, w)
            case "remat":
                v = jax.checkpoint(lambda a, b: both(a, b, sharding))(v, w)
            case "shard_map":
                spec = sharding.spec
                v = jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=spec, out_specs=spec)(ask(v, sharding))
        return v

    def run(v, w):
        for kind, sharding in plan:
            v = step(kind, sharding, v, w)
        return v

    last = on()

    def function(state, pair, count=1, *, scale=None, flag="a"):
        v = run(state.weight, pair.first["w"])
        for _ in range(count):
            v = v + 1
        if scale is not None:
            v = both(v, scale, last)
        return State(v, [ask(pair.second, NamedSharding(mesh, P("x"))), None]), {3: v.sum(), 7: (jnp.sin(v),)}

    options = {}
    arguments = State(like(), None), Pair(like(1), {"w": like()})
    keywords = {"scale": like()} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        options["static_argnames"] = ("count", "flag")
        keywords |= {"count": 2, "flag": "b"}
    if rng.random() < 0.4:
        options["donate_argnums"] = (0,)
    if rng.random() < 0.4 and not keywords:
        given = tuple(
            jax.tree.map(lambda leaf: leaf.sharding if leaf.sharding else on(len(leaf.shape)), each)
            for each in arguments
        )
        options["in_shardings"] = given if rng.random() < 0.5 else (None, given[1])
    if rng.random() < 0.6 and not (explicit and rng.random() < 0.5):
        whole = NamedSharding(mesh, P())
        state = State(on(), rng.choice((None, [whole, None]))) if rng.random() < 0.5 else None
        options["out_shardings"] = (state, {3: whole, 7: rng.choice((None, (on(),)))})
    return jax.jit(function, **options), (arguments, keywords)


def __getattr__(name):
    word, _, seed = name.partition("_")
    if word != "form" or not seed.removesuffix("_inputs").isdecimal():
        raise AttributeError(name)
    function, arguments = form(int(seed.removesuffix("_inputs")))
    return arguments if seed.endswith("_inputs") else function
