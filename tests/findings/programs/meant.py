"""Steps of which devices do, or hold, less or more than was meant; and the same steps as they should be."""

import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardscope

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows, columns, whole = (NamedSharding(mesh, P(*spec)) for spec in (("data",), (None, "data"), ()))
X, Y = np.ones((64, 256), np.float32), np.ones((64, 128), np.float32)
RULES = ("SS32", "SS33", "SS34", "SS35", "SS36", "SS37", "SS39")


def init():
    return {"w1": jnp.ones((256, 512)), "w2": jnp.ones((512, 128))}


def placed(tree, sharding):
    return jax.device_put(tree, sharding)


def loss(p, x, y):
    return jnp.mean((jnp.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2)


def sgd(p, x, y):
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, jax.grad(loss)(p, x, y))


def of_transposed(p, x):
    """Layers that hold their weights by outputs, as those of Equinox do."""
    return jnp.mean((jnp.tanh(x @ p["w2"].T) @ p["w1"].T) ** 2)


def narrow(tree):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), tree)


def momentum(p, m, x, y):
    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, jax.grad(loss)(p, x, y))
    return jax.tree.map(lambda a, b: a - (0.1 * b).astype(a.dtype), p, m), m


def adam(p, state, x, y):
    gradients = jax.grad(loss)(p, x, y)
    mu = jax.tree.map(lambda m, g: 0.9 * m + g, state["mu"], gradients)
    nu = jax.tree.map(lambda n, g: 0.9 * n + g * g, state["nu"], gradients)
    return jax.tree.map(lambda p, m, n: p - m / (1 + jnp.sqrt(n)), p, mu, nu), {"mu": mu, "nu": nu}


def zeros(p):
    return jax.tree.map(jnp.zeros_like, p)


def zeros_of(p):
    """Zeros beside something that keeps the devices of the parameters."""
    return zeros(p), p["w1"] * 2


def constrained(p, x, y):
    return sgd(p, *(jax.lax.with_sharding_constraint(each, rows) for each in (x, y)))


def discarded(p, x, y):
    jax.lax.with_sharding_constraint(p, rows)
    return sgd(p, x, y)


def made(key):
    """Weights that are split, and zeros like them, of which nothing is."""
    weights = jax.lax.with_sharding_constraint(init(), rows)
    return jax.tree.map(lambda w: w + key, weights), zeros(weights)


def split(value):
    return jax.lax.with_sharding_constraint(value, rows)


def discarded_by_helper(p, x, y):
    split(x)
    return sgd(p, split(x), y)


def microbatches(p, xs, ys):
    return jax.lax.scan(lambda p, batch: (sgd(p, *batch), None), p, (xs, ys))[0]


def of_state(state, x, y):
    params, mu = momentum(state["params"], state["mu"], x, y)
    return {"params": params, "mu": mu}


def state_of(moments):
    return {"mu": moments, "params": sharded}


def moments(mu, nu):
    return {"mu": placed(zeros(init()), mu), "nu": placed(zeros(init()), nu)}


class Index:
    def __init__(self):
        self.vectors = placed(np.ones((512, 256), np.float32), rows)

    def scores(self, queries):
        return queries @ self.vectors.T


def mapped(p, x, y, mesh=mesh, spec=rows.spec):
    (axis,) = mesh.axis_names
    gradients = jax.shard_map(
        lambda p, x, y: jax.lax.pmean(jax.grad(loss)(p, x, y), axis),
        mesh=mesh,
        in_specs=(P(), spec, spec),
        out_specs=P(),
        check_vma=False,
    )(p, x, y)
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, gradients)


sharded, copied = placed(init(), rows), placed(init(), whole)
x, y = placed((X, Y), rows)
stacks = placed((np.stack([X] * 3), np.stack([Y] * 3)), NamedSharding(mesh, P(None, "data")))
steps = placed((np.stack([X] * 8), np.stack([Y] * 8)), rows)
environments = jax.make_mesh((8,), ("env",), axis_types=(AxisType.Auto,))
played = placed((X, Y), NamedSharding(environments, P("env")))
taken_whole, taken_split = (jax.jit(partial(mapped, mesh=environments, spec=each)) for each in (P(), P("env")))
fully = NamedSharding(jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,)), P("fsdp"))
with_batch = jax.jit(lambda p: sgd(p, x, y))
of_weights = jax.jit(lambda a: a @ sharded["w1"])

CASES = {
    "one device": ("SS32", "x", jax.jit(sgd), (init(), X, Y)),
    "initialized on one device": ("SS32", "result['w1']", jax.jit(init), ()),
    "optimizer's init on one device": ("SS32", "result['w1']", jax.jit(zeros), (sharded,)),
    "host batch": ("SS33", "y", jax.jit(sgd), (sharded, X, Y)),
    "replicated batch": ("SS33", "x", jax.jit(sgd), (copied, *placed((X, Y), whole))),
    "steps of a scan": ("SS33", "xs", jax.jit(microbatches), (copied, *steps)),
    "taken whole": ("SS33", "x", taken_whole, (init(), *played)),
    "weights whole over fsdp": ("SS33", "p['w1']", jax.jit(sgd), (init(), *placed((X, Y), fully))),
    "moments whole": ("SS34", "m['w1']", jax.jit(momentum), (sharded, placed(zeros(init()), whole), x, y)),
    "wide moments whole": ("SS34", "m['w1']", jax.jit(momentum), (narrow(sharded), placed(zeros(init()), whole), x, y)),
    "zeros whole": ("SS35", "result[0]['w1']", jax.jit(zeros_of, out_shardings=(None, rows)), (sharded,)),
    "zeros beside weights": ("SS35", "result[1]['w1']", jax.jit(made), (1.0,)),
    "moments in other blocks": ("SS34", "m['w1']", jax.jit(momentum), (sharded, placed(zeros(init()), columns), x, y)),
    "moments of a state": ("SS34", "state['mu']['w1']", jax.jit(of_state), (state_of(copied), x, y)),
    "one of two moments whole": ("SS34", "state['nu']['w1']", jax.jit(adam), (copied, moments(rows, whole), x, y)),
    "batch closed over": ("SS36", "x", with_batch, (copied,)),
    "weights closed over": ("SS36", "sharded['w1']", of_weights, (x,)),
    "vectors of an object": ("SS36", "self.vectors", jax.jit(Index().scores), (x,)),
    "pinned": ("SS37", "result['w1']", jax.jit(sgd, out_shardings=whole), (sharded, x, y)),
    "discarded constraint": ("SS39", "p", jax.jit(discarded), (copied, x, y)),
    "discarded by a helper": ("SS39", "x", jax.jit(discarded_by_helper), (copied, x, y)),
    # the same as they should be
    "data parallel": ("", "", jax.jit(sgd), (copied, x, y)),
    "fsdp": ("", "", jax.jit(sgd, out_shardings=rows), (sharded, x, y)),
    "moments sharded": ("", "", jax.jit(momentum), (sharded, placed(zeros(init()), rows), x, y)),
    "wide moments sharded": ("", "", jax.jit(momentum), (narrow(sharded), placed(zeros(init()), rows), x, y)),
    "moments of a state sharded": ("", "", jax.jit(of_state), (state_of(sharded), x, y)),
    "both moments sharded alone": ("", "", jax.jit(adam), (copied, moments(rows, rows), x, y)),
    "moments sharded alone": ("", "", jax.jit(momentum), (copied, placed(zeros(init()), rows), x, y)),
    "zeros as weights": ("", "", jax.jit(made, out_shardings=rows), (1.0,)),
    "initialized": ("", "", jax.jit(init, out_shardings=rows), ()),
    "optimizer's init": ("", "", jax.jit(zeros, out_shardings=rows), (sharded,)),
    "constrained batch": ("", "", jax.jit(constrained), (copied, X, Y)),
    "stacked batches": ("", "", jax.jit(microbatches), (copied, *stacks)),
    "mapped": ("", "", jax.jit(mapped), (copied, X, Y)),
    "taken split": ("", "", taken_split, (init(), *played)),
    "weights sharded over fsdp": ("", "", jax.jit(sgd, out_shardings=fully), placed((init(), X, Y), fully)),
    "weights split the products": ("", "", jax.jit(jax.grad(of_transposed)), (sharded, placed(X[:, :128], rows))),
    "all whole": ("", "", jax.jit(sgd, out_shardings=whole), (copied, x, y)),
}

if __name__ == "__main__":
    found = {}
    tried = dict(list(CASES.items())[:: int(sys.argv[1])])
    for name, (_, _, function, args) in tried.items():
        report = shardscope.inspect(function, *args)
        found[name] = [(each.rule, each.subject) for each in report.findings if each.rule in RULES]
    expected = {name: [(rule, subject)] if rule else [] for name, (rule, subject, *_) in tried.items()}
    print(json.dumps([found, expected]))
