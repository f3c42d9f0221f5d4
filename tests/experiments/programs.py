"""Programs with one request that costs more than it has to, and the request that is right."""

from __future__ import annotations

HEAD = """\
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def S(*entries):
    return NamedSharding(mesh, P(*entries))

def A(sharding, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)
"""

CACHE = f"""{HEAD}
def decode(w, cache, x):
    k = x @ w["k"]
    cache = jax.lax.dynamic_update_slice_in_dim(cache, k[:, None], 0, 1)
    return jnp.einsum("bk,btk->bt", k, cache) @ w["o"], cache

step = jax.jit(decode, out_shardings=(S("data"), S()))
w = {{"k": A(S(None, "model"), 64, 64), "o": A(S(), 32, 64)}}
step_inputs = (w, A(S("data", None, "model"), 16, 32, 64), A(S("data"), 16, 64))
"""
"""A cache that is returned replicated, though the next step takes it sharded."""

NAMED = f"""{HEAD}
whole = S()

def decode(w, cache, x):
    k = x @ w["k"]
    cache = {{"k": jax.lax.dynamic_update_slice_in_dim(cache["k"], k[:, None], 0, 1)}}
    return jnp.einsum("bk,btk->bt", k, cache["k"]) @ w["o"], cache

step = jax.jit(decode, out_shardings=(S("data"), whole))
w = {{"k": A(S(None, "model"), 64, 64), "o": A(whole, 32, 64)}}
step_inputs = (w, {{"k": A(S("data", None, "model"), 16, 32, 64)}}, A(S("data"), 16, 64))
"""
"""The same, of a cache with a key, by a name that a weight of fewer dimensions has its sharding from, too."""

LOGITS = f"""{HEAD}
import numpy as np

class Config:
    def __init__(self, mesh):
        self.mesh = mesh

def forward(w, x):
    return jnp.tanh(x @ w["in"]) @ w["out"]

@jax.jit
def best(w, x):
    return jnp.sum(jnp.tanh(x @ w["in"]) @ w["out"], axis=-1)

def prefill(w, x, cfg):
    logits = NamedSharding(cfg.mesh, P("data"))
    return jax.jit(forward, out_shardings=logits)(w, x)

w = {{"in": np.ones((64, 64), np.float32), "out": np.ones((64, 4096), np.float32)}}
w = jax.device_put(w, {{"in": S(), "out": S(None, "model")}})
x = jax.device_put(np.ones((32, 64), np.float32), S("data"))
prefill(w, x, Config(mesh)), best(w, x)
"""
"""A script that returns logits whole over an axis that shards the head; without that, another program costs more."""

VALUES = f"""{HEAD}
wsc = jax.lax.with_sharding_constraint

def attention(p, x):
    q = wsc(jnp.einsum("btd,dhk->bthk", x, p["q"]), S("data", None, "model"))
    v = jnp.einsum("btd,dhk->bthk", x, p["v"])
    v = wsc(v, S("data", "model"))
    s = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, q))
    return jnp.einsum("bhts,bshk,hkd->btd", s, v, p["o"])

step = jax.jit(attention, out_shardings=S("data"))
p = {{n: A(S(None, "model"), 64, 8, 16) for n in "qv"}} | {{"o": A(S("model"), 8, 16, 64)}}
step_inputs = (p, A(S("data"), 16, 32, 64))
"""
"""A constraint that shards the sequence where its neighbours shard the heads."""

CLEAN = VALUES.replace('v = wsc(v, S("data", "model"))', 'v = wsc(v, S("data", None, "model"))')

HELPER = f"""{HEAD}
def constrain(x, *entries):
    return jax.lax.with_sharding_constraint(x, S(*entries))

def mlp(w, x):
    h = constrain(x @ w["up"], "data", "model")
    h = constrain(jnp.tanh(h), "data")
    return constrain(h @ w["down"], "data")

step = jax.jit(mlp, out_shardings=S("data"))
w = {{"up": A(S(None, "model"), 64, 256), "down": A(S("model"), 256, 64)}}
step_inputs = (w, A(S("data"), 64, 64))
"""
"""A needless constraint among others that go through the same line of a helper."""

STATE = f"""{HEAD}
from typing import NamedTuple

class State(NamedTuple):
    params: dict
    mu: dict

def layout():
    return State(
        params={{"w": S("data", "model")}},
        mu={{"w": S()}},
    )

def update(state, x):
    g = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"]) ** 2))(state.params)
    mu = jax.tree.map(lambda m, d: 0.9 * m + d, state.mu, g)
    return State(params=jax.tree.map(lambda p, m: p - 0.1 * m, state.params, mu), mu=mu)

def main():
    step_fn = jax.jit(update, in_shardings=(layout(), S("data")), out_shardings=layout())
    return step_fn

step = main()
w = {{"w": jax.ShapeDtypeStruct((64, 256), jnp.float32)}}
step_inputs = (State(w, w), jax.ShapeDtypeStruct((16, 64), jnp.float32))
"""
"""Moments that are whole on every device, in a state whose layout a function makes."""

ATTENTION = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))

@jax.jit
def step(q, kv):
    return jax.nn.softmax(q @ kv.T / 8.0, axis=-1) @ kv

def inputs():
    return jnp.ones((64, 64)), jnp.ones((512, 64))

if __name__ == "__main__":
    q, kv = inputs()
    step(jax.device_put(q, NamedSharding(mesh, P(None, "x"))), jax.device_put(kv, NamedSharding(mesh, P("x", "y"))))
"""
"""A function that its script calls with sharded arguments, beside a helper whose name may mean arguments."""

PLACED = f"""{HEAD}
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
repl = NamedSharding(mesh, P())
split = NamedSharding(mesh, P("data"))

def update(state, x):
    w, mu, nu, count = state
    g = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p) ** 2))(w)
    mu, nu = 0.9 * mu + g, 0.9 * nu + g * g
    return (w - 0.1 * mu / (1 + nu), mu, nu, count + 1)

w = jax.device_put(jnp.ones((64, 256)), split)
zeros = jnp.zeros((64, 256))
state = (w, jax.device_put(zeros, repl), jax.device_put(zeros, repl), jax.device_put(0, repl))
step = jax.jit(update, out_shardings=tuple(each.sharding for each in state))
step_inputs = (state, jax.device_put(jnp.ones((16, 64)), split))
"""
"""Moments and a count, which cannot be sharded, placed with one sharding that has a name."""

BATCH = f"""{HEAD}
rows = NamedSharding(mesh, P("model"))

def loss(w, x):
    return jnp.sum(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)

step = jax.jit(jax.grad(loss))
w = {{"a": A(S(), 256, 256), "b": A(S(), 256, 256)}}
step_inputs = (w, A(rows, 4096, 256))
"""
"""A batch that only two of eight devices divide among them."""

REMAT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("data", "model"))
S = lambda *axes: NamedSharding(mesh, P(*axes))
def block(p, x):
    x = x + jnp.tanh(x @ p["up"]) @ p["down"]
    return x + jnp.tanh(x @ p["wide"]) @ p["narrow"]
def loss(layers, x):
    for p in layers:
        x = jax.checkpoint(block)(p, x)
    return jnp.mean(x * x)
@jax.jit
def step(layers, x):
    return jax.tree.map(lambda w, g: w - g, layers, jax.grad(loss)(layers, x))
if __name__ == "__main__":
    r = np.random.RandomState(0)
    specs = {"up": S(None, "model"), "wide": S(None, "model"), "down": S("model"), "narrow": S("model")}
    sizes = {"up": (64, 256), "wide": (64, 256), "down": (256, 64), "narrow": (256, 64)}
    layers = [{k: jax.device_put(r.randn(*sizes[k]).astype("f") * 0.1, specs[k]) for k in specs} for _ in range(2)]
    layers = step(layers, jax.device_put(r.randn(64, 64).astype("f"), S("data")))
"""

TWICE = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:8]), ("dp",))
def loss_fn(w, x):
    return lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), "dp")
def local(w, x):
    loss, grad = lax.pmean(jax.value_and_grad(loss_fn)(w, x), "dp")
    return w - 0.1 * grad, loss
step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P("dp")), out_specs=(P(), P()), check_vma=False))
if __name__ == "__main__":
    r = np.random.RandomState(0)
    step(r.randn(16, 8).astype("f"), jax.device_put(r.randn(64, 16).astype("f"), NamedSharding(mesh, P("dp"))))
"""

KEPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:8]), ("fsdp",))
S = NamedSharding(mesh, P("fsdp"))
def train(params, ema, count, x):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
    params = jax.tree.map(lambda p, g: p - g, params, grads)
    return params, jax.tree.map(lambda e, p: 0.9 * e + 0.1 * p, ema, params), count + 1
step = jax.jit(train, donate_argnums=0, out_shardings=({"w": S}, {"w": S}, None))
def main():
    r = np.random.RandomState(0)
    params, ema = ({"w": jax.device_put(r.randn(256, 256).astype("f"), S)} for _ in "ab")
    count = jnp.zeros((), int)
    for _ in range(2):
        params, ema, count = step(params, ema, count, jax.device_put(r.randn(8, 256).astype("f"), S))
main()
"""

PATTERNS = f"""{HEAD}
import re
RULES = [
    ("up|down", P(None, "model")),
    (".*", P()),
]

def placed(path, *shape):
    return A(NamedSharding(mesh, next(spec for rule, spec in RULES if re.search(rule, path))), *shape)

step = jax.jit(lambda w, x: jnp.tanh(x @ w["up"]) @ w["down"], out_shardings=S("data"))
w = {{"up": placed("up", 64, 256), "down": placed("down", 256, 64), "bias": placed("bias", 64)}}
step_inputs = (w, A(S("data"), 64, 64))
"""
"""A table of patterns whose rule for two products is right for the first."""

LOGICAL = f"""{HEAD}
AXES = {{
    "batch": "model",
    "embed": None,
    "mlp": "model",
}}

def placed(names, *shape):
    return A(S(*(AXES[name] for name in names)), *shape)

step = jax.jit(lambda w, x: jnp.tanh(x @ w["up"]) @ w["down"])
w = {{"up": placed(("embed", "mlp"), 64, 256), "down": placed(("mlp", "embed"), 256, 64)}}
step_inputs = (w, placed(("batch", "embed"), 256, 64))
"""
"""A table of logical names of dimensions that gives the batch the axis of the weights."""

STACKED = f"""{HEAD}
RULES = {{
    "batch": "data",
    "layers": "data", "embed": None, "mlp": "model",
}}
AXES = {{"up": ("layers", "embed", "mlp"), "down": ("layers", "mlp", "embed")}}

def placed(names, *shape):
    return A(S(*(RULES.get(name) for name in names)), *shape)

def loss(w, x):
    h, _ = jax.lax.scan(lambda h, l: (h + jnp.tanh(h @ l["up"]) @ l["down"], None), x, w)
    return jnp.mean(h ** 2)

step = jax.jit(jax.grad(loss))
w = {{"up": placed(AXES["up"], 4, 256, 512), "down": placed(AXES["down"], 4, 512, 256)}}
step_inputs = (w, placed(("batch", None), 64, 256))
"""
"""A table of logical names that shards stacked layers over what a scan takes them by."""

QUEUE = f"""{HEAD}
rows = S(("data", "model"))
whole = S()

def loss(params, x, queue):
    return jnp.mean(jax.nn.logsumexp(jnp.tanh(x @ params["w"]) @ queue.T, axis=-1))

@jax.jit
def step(state, x):
    params, trace, queue, at = (state[name] for name in ("params", "trace", "queue", "at"))
    trace = jax.tree.map(lambda m, g: 0.9 * m + g, trace, jax.grad(loss)(params, x, queue))
    queue = jax.lax.dynamic_update_slice_in_dim(queue, jnp.tanh(x @ params["w"]), at, 0)
    params = jax.tree.map(lambda p, m: p - m, params, trace)
    return {{"params": params, "trace": trace, "queue": queue, "at": (at + len(x)) % len(queue)}}

shardings = dict(params=whole, trace=whole, at=whole, queue=rows)

if __name__ == "__main__":
    state = {{name: {{"w": jnp.ones((64, 64))}} for name in ("params", "trace")}}
    state |= dict(queue=jnp.ones((4096, 64)), at=jnp.zeros((), int))
    step(jax.device_put(state, shardings), jax.device_put(jnp.ones((64, 64)), rows))
"""
"""Negatives that are sharded as the batch is, and gathered by each use."""

MAPPED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2, 2), ("replica", "data", "model"), axis_types=(AxisType.Auto,) * 3)
STORED = {"embed": "data", "mlp": "model"}
COMPUTED = {"batch": "data", "mlp": "model"}

def sharding(table, *names):
    return NamedSharding(mesh, P(*(table.get(name) for name in names)))

def kept(x, *names):
    return jax.lax.with_sharding_constraint(x, sharding(COMPUTED, *names))

@jax.jit
def step(w, x):
    h = kept(jnp.tanh(kept(x, "batch", "embed") @ w["up"]), "batch", "mlp")
    return kept(h @ w["down"], "batch", "embed")

def array(table, names, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding(table, *names))

w = {"up": array(STORED, ("embed", "mlp"), 64, 128), "down": array(STORED, ("mlp", "embed"), 128, 64)}
step_inputs = (w, array(COMPUTED, ("batch", "embed"), 4096, 64))
"""
"""Tables of logical names, of which one leaves an axis out, for the batch and for what is constrained as it."""

RANDOM_BITS = f"""{HEAD}
jax.config.update("jax_threefry_partitionable", False)

@jax.jit
def step(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), jnp.tanh(x), 0)

if __name__ == "__main__":
    step(jax.random.key(0), jax.device_put(jnp.ones((64, 64)), S("data")))
"""

ENTERED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def constrain(x, *entries):
    # as flax.linen.with_logical_constraint does
    return jax.lax.with_sharding_constraint(x, P(*entries)) if not jax.sharding.get_abstract_mesh().empty else x

@jax.jit
def step(w, tokens):
    return jnp.sum(jnp.tanh(constrain(w["table"][tokens], "data") @ w["up"]) @ w["down"])

if __name__ == "__main__":
    w = {{"table": jnp.ones((64, 64)), "up": jnp.ones((64, 256)), "down": jnp.ones((256, 64))}}
    w = jax.device_put(w, {{"table": S(None, "data"), "up": S("data"), "down": S("data")}})
    with mesh:
        step(w, jax.device_put(jnp.zeros(4096, int), S("data")))
"""
"""Constraints that do nothing under the mesh that the script enters."""

MADE = f"""{HEAD}
def init(p):
    return {{"mu": jax.tree.map(jnp.zeros_like, p)}}

def step(p, state, x):
    g = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"]) ** 2))(p)
    mu = jax.tree.map(lambda m, d: 0.9 * m + d, state["mu"], g)
    return jax.tree.map(lambda p, m: p - 0.1 * m, p, mu), {{"mu": mu}}

if __name__ == "__main__":
    p = jax.device_put({{"w": jnp.ones((64, 256))}}, S("data", "model"))
    with jax.set_mesh(mesh):
        state = jax.jit(init)(p)
        train = jax.jit(step, out_shardings=jax.tree.map(lambda each: each.sharding, (p, state)))
        p, state = train(p, state, jax.device_put(jnp.ones((16, 64)), S("data")))
"""
"""Moments that a jit makes, which come out whole."""

EXPLICIT = f"""{HEAD.replace("AxisType.Auto", "AxisType.Explicit")}
@jax.jit
def step(w, x):
    w = jax.sharding.reshard(w, P())
    return jnp.sum(jnp.tanh(x @ w) ** 2)

if __name__ == "__main__":
    with jax.set_mesh(mesh):
        step(jax.device_put(jnp.ones((256, 256)), S("model", "data")), jax.device_put(jnp.ones((64, 256)), S("data")))
"""
"""A weight of explicit type that is gathered over two axes, where one is enough."""

CAST_TWICE = f"""{HEAD}
def loss(w, x):
    h = jnp.tanh(x @ w["in"])
    gate = jnp.tanh(h @ w["gate"])
    up = h @ w["up"]
    return jax.lax.psum(jnp.sum((gate * up) @ w["out"]), ("data", "model"))

specs = {{"in": P(), "gate": P(None, "model"), "up": P(None, "model"), "out": P("model")}}
mapped = jax.shard_map(loss, mesh=mesh, in_specs=(specs, P("data")), out_specs=P())
step = jax.jit(jax.grad(mapped))
shapes = {{"in": (16, 64), "gate": (64, 64), "up": (64, 64), "out": (64, 16)}}
step_inputs = ({{n: A(S(*specs[n]), *shapes[n]) for n in specs}}, A(S("data"), 512, 16))
"""
"""A value that two products with sharded weights take: the gradient of each is summed."""

TRAINED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def init():
    return {{"w": jnp.ones((64, 256)), "v": jnp.ones((256, 64))}}

def moments():
    return {{"mu": jax.tree.map(jnp.zeros_like, init()), "count": jnp.zeros((), jnp.int32)}}

def by_rows(leaf):
    return P("data") if leaf.ndim == 2 else P()

def placed(tree, spec_of):
    return jax.tree.map(lambda v: jax.device_put(v, NamedSharding(mesh, spec_of(v))), tree)

def loss(p, x):
    return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"]) ** 2)

def make_step():
    def step(p, state, x):
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], jax.grad(loss)(p, x))
        return jax.tree.map(lambda p, m: p - 0.1 * m, p, mu), {{"mu": mu, "count": state["count"] + 1}}

    return jax.jit(step)

if __name__ == "__main__":
    whole = NamedSharding(mesh, P())
    rows = NamedSharding(mesh, P("data"))
    update = make_step()
    p = PARAMETERS
    state = STATE
    for _ in range(3):
        p, state = update(p, state, jax.device_put(jnp.ones((64, 64)), rows))
"""

RANKED = TRAINED.replace("PARAMETERS", "jax.device_put(init(), rows)").replace(
    "STATE", "jax.device_put(moments(), whole)"
)
"""A state of which all leaves are whole: one sharding for the others does not fit its count."""

SIBLING = TRAINED.replace("PARAMETERS", "placed(init(), by_rows)").replace(
    "STATE", "placed(moments(), lambda leaf: P())"
)
"""The same, by a function that gives each leaf its spec."""

WRONG_AXIS = f"""{HEAD.replace("(4, 2)", "(2, 4)")}
def loss(p, x):
    return jnp.mean((jax.nn.gelu(x @ p["up"]) @ p["down"]) ** 2)

@jax.jit
def step(p, x):
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(loss)(p, x))

if __name__ == "__main__":
    specs = {{"up": (None, "model"), "down": ("model", None)}}
    shapes = {{"up": (64, 256), "down": (256, 64)}}
    p = {{n: jax.device_put(jnp.ones(shapes[n]) / 64, S(*specs[n])) for n in shapes}}
    x = jax.device_put(jnp.ones((256, 64)), S("model"))
    step(p, x)
"""
"""A batch on the axis of the weights. On the other one a device holds twice as much of it, and less in all."""

AVERAGED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
class Trainer:
    def __init__(self):
        self.whole = S()
        specs = {{"up": S(None, "data"), "down": S("data")}}
        self.p = jax.device_put({{"up": jnp.ones((64, 256)), "down": jnp.ones((256, 64))}}, specs)
        self.ema = jax.device_put(jax.tree.map(jnp.copy, self.p), self.whole)
        own = [jax.tree.map(lambda leaf: leaf.sharding, each) for each in (self.p, self.ema)]
        self.step = jax.jit(self._step, in_shardings=(*own, S("data")), out_shardings=tuple(own))

    def _step(self, p, ema, x):
        grads = jax.grad(lambda p: jnp.mean((jnp.tanh(x @ p["up"]) @ p["down"]) ** 2))(p)
        p = jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)
        return p, jax.tree.map(lambda e, p: 0.9 * e + 0.1 * p, ema, p)

def main():
    trainer, other = Trainer(), dict.fromkeys("ab")
    other.setdefault("c", None)
    for _ in range(2):
        x = jax.device_put(jnp.ones((256, 64)), S("data"))
        trainer.p, trainer.ema = trainer.step(trainer.p, trainer.ema, x)

if __name__ == "__main__":
    main()
"""
"""Averages of parameters, placed whole, of a method that is jitted, and whose arguments are not donated."""

FILTERED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
import equinox as eqx
import numpy as np

def make():
    @eqx.filter_jit
    def step(p, x):
        grads = jax.grad(lambda p: jnp.mean(jnp.tanh(x @ p["w"]) ** 2))(p)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)
    return step

def main():
    step, p = make(), {{"w": jax.device_put(jnp.ones((64, 256)), S("data"))}}
    for _ in range(2):
        x = jax.device_put(np.ones((64, 64), np.float32).copy(), S("data"))
        p = step(p, x)

if __name__ == "__main__":
    main()
"""
"""Parameters that are not donated, by Equinox's jit, which donates all arguments or none."""

SENT = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def send(x):
    return jax.lax.all_to_all(x, "data", split_axis=0, concat_axis=1, tiled=True)

def scaled(x):
    return x / (1 + jnp.max(jnp.abs(x), axis=AXIS, keepdims=True))

def layer(x, w):
    plain = send(x)
    return plain + jnp.tanh(send(scaled(x)) @ w)

step = jax.jit(jax.shard_map(layer, mesh=mesh, in_specs=(P(None, "data"), P()), out_specs=P("data")))
step_inputs = (A(S(None, "data"), 64, 32, 16), A(S(), 16, 16))
"""
"""Values that are exchanged twice: as they are, and scaled, along the axis -1 or that which is exchanged."""

SHARED = f"""{HEAD}
def constrain(x, *axes):
    return jax.lax.with_sharding_constraint(x, S(*axes))

def score(w, x):
    return jax.nn.logsumexp(constrain(jnp.tanh(constrain(x, "data") @ w["in"]) @ w["out"], "data", None), axis=-1)

def step(w, x):
    policy = score(w, x)
    return policy - score(jax.tree.map(jax.lax.stop_gradient, w), 2 * x)

w = {{"in": A(S(None, "model"), 64, 64), "out": A(S(None, "model"), 64, 512)}}
step_inputs = (w, A(S("data"), 64, 64))
step = jax.jit(step)
"""
"""A constraint by a helper, in a function with two callers."""

SCORED = SHARED.replace(
    'constrain(jnp.tanh(constrain(x, "data") @ w["in"]) @ w["out"], "data", None)', "LOGITS"
).replace("LOGITS", 'jax.lax.with_sharding_constraint(jnp.tanh(x @ w["in"]) @ w["out"], S("data", None))')
"""One constraint for both."""

IMAGES = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def step(w, x):
    for kernel in w:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME"))
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

rows = S(None, None, "data")
step = jax.jit(step)
step_inputs = ([A(S(), 8, 8, 3, 3), A(S(), 8, 8, 5, 5)], A(rows, 16, 8, 64, 32))
"""
"""Images whose rows are divided, of which convolutions need those of neighbours."""

GATHERED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def whole(w):
    w = jax.lax.with_sharding_constraint(w, S())
    return w.astype(jnp.bfloat16)

def step(w, x):
    return jnp.sum((x @ whole(w)).astype(jnp.float32) ** 2)

step = jax.jit(step)
step_inputs = (A(S("data"), 256, 512), jax.ShapeDtypeStruct((4096, 256), jnp.bfloat16, sharding=S("data")))
"""
"""Weights that are gathered by a constraint, and narrowed after it."""

SETTINGS = f"""from dataclasses import dataclass
{HEAD}
@dataclass(frozen=True)
class Settings:
    batch_axes: tuple = ("data",)

settings = Settings()

def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)

def step(w, x):
    return w - jax.grad(loss)(w, x)

step = jax.jit(step)
step_inputs = (A(S(), 255, 255), A(NamedSharding(mesh, P(settings.batch_axes)), 16384, 255))
"""
"""An axis that splits nothing, no weight can be split by, and the batch's axes as a setting."""

EXPLICIT_HEADS = f"""{HEAD.replace("Auto", "Explicit")}
jax.set_mesh(mesh)

def step(x, wq, wk, wo):
    q = jnp.einsum("btd,dhk->bthk", x, wq, out_sharding=P("data", None, None, None))
    k = jnp.einsum("btd,dhk->bthk", x, wk, out_sharding=P("data", None, None, None))
    o = jnp.einsum("bhqs,bshk->bqhk", jnp.einsum("bqhk,bshk->bhqs", q, k), k)
    return jnp.einsum("bthk,hkd->btd", o, wo, out_sharding=P("data", None, None))

step = jax.jit(step)
step_inputs = (A(S("data"), 8, 64, 128), *(A(S(None, "model"), 128, 4, 32) for _ in "qk"), A(S("model"), 4, 32, 128))
"""
"""Explicit axes: two products leave out that of the heads, which are whole from there on."""

FFTS = f"""{HEAD}
@jax.jit
def step(x):
    s = jnp.fft.fftn(x, axes=(1, 2))
    return jnp.fft.ifftn(s * 0.5, axes=(1, 2)).real

step_inputs = (A(S("data"), 16, 24, 24),)
"""
"""Transforms of dimensions that are whole: XLA gathers the sharded one for them."""

LARGEST = f"""{HEAD}
@jax.jit
def step(x):
    weights, _ = jax.lax.top_k(jax.nn.softmax(x, axis=-1), 2)
    return weights / weights.sum(-1, keepdims=True)

step_inputs = (A(S("data"), 64, 24, 16),)
"""
"""The largest of each row: XLA gathers the rows for them."""

TIED = f"""{HEAD}
def loss(w, h, labels):
    logits = jnp.einsum("td,vd->tv", jax.nn.gelu(h @ w["dense"]), w["table"])
    hit = jnp.einsum("tv,tv->t", logits, jax.nn.one_hot(labels, 4096))
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - hit)

columns = S(None, ("data", "model"))
specs = dict(dense=columns, table=columns)

@jax.jit
def step(w, h, labels):
    value, g = jax.value_and_grad(loss)(w, h, labels)
    return value, {{name: jax.lax.with_sharding_constraint(w[name] - 0.1 * g[name], columns) for name in w}}

w = dict(dense=A(columns, 256, 256), table=A(columns, 4096, 256))
labels = jax.ShapeDtypeStruct((1024,), jnp.int32, sharding=S(("data", "model")))
step_inputs = (w, A(S(), 1024, 256), labels)
"""
"""A head with a large table behind a small matrix, for which a product is cheaper to repeat than to share."""

MOMENTS = f"""{HEAD}
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
shapes = dict(up=(256, 512), down=(512, 256))
whole = dict((name, jnp.zeros(shape)) for name, shape in shapes.items())
kept = dict(up=S(None, "data"), down=S("data"))
held = jax.tree.map(lambda _: S(), dict(mu=whole, nu=whole))

def update(w, state, x):
    g = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w["up"]) @ w["down"] - x) ** 2))(w)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], g)
    nu = jax.tree.map(lambda n, g: 0.99 * n + 0.01 * g**2, state["nu"], g)
    return jax.tree.map(lambda w, m, n: w - 0.1 * m / (n**0.5 + 1e-8), w, mu, nu), dict(mu=mu, nu=nu)

step = jax.jit(update, in_shardings=(kept, held, S("data")), out_shardings=(kept, held))
step_inputs = lambda: (whole, dict(mu=whole, nu=whole), jnp.ones((1024, 256)) / 16)
"""
"""An optimizer's state that a map makes whole, with other paths than the parameters'."""

NAMELESS = f"""{HEAD}
AXES = (
    ("batch", "data"),
    ("embed", None),
    ("ffn", "model"),
)

def placed(names, *shape):
    return A(S(*(dict(AXES).get(name) for name in names)), *shape)

def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w["up"]) @ w["down"]) ** 2)

step = jax.jit(jax.grad(loss))
w = {{"up": placed(("embed", "mlp"), 64, 1024), "down": placed(("mlp", "embed"), 1024, 64)}}
step_inputs = (w, placed(("batch", "embed"), 64, 64))
"""
"""A table of logical names with another name for a dimension than that of the weights."""

TREE = f"""{HEAD}
class Layout:
    pass

layout = Layout()
layout.rows = S("data")
layout.whole = S()

def step(state, g):
    acc = state["acc"] + g * g
    table = state["table"] - g / (1 + acc)
    shardings = {{"table": layout.rows,
                  "acc": layout.whole}}
    return jax.lax.with_sharding_constraint({{"table": table, "acc": acc}}, shardings)

step = jax.jit(step)
step_inputs = ({{"table": A(S("data"), 512, 64), "acc": A(S(), 512, 64)}}, A(S("data"), 512, 64))
"""
"""State that a constraint on a tree of shardings makes whole, and that comes back so."""

ALIKE = f"""{HEAD}
def constrain(x, *entries):
    return jax.lax.with_sharding_constraint(x, S(*entries))

def step(w, x):
    a = constrain(jnp.tanh(x @ w["a"]), "model", "data")
    b = constrain(jnp.sin(x @ w["b"]), "model", "data")
    return (a * b) @ w["o"]

step = jax.jit(step)
w = {{name: A(S(None, "model"), 64, 512) for name in "ab"}} | {{"o": A(S("model"), 512, 8)}}
step_inputs = (w, A(S("data"), 512, 64))
"""
"""Two constraints with the same mistake."""

ADAPTERS = f"""{HEAD}
up = dict(a_spec=P(), b_spec=P("model", None))
down = dict(a_spec=P("model", None), b_spec=P())

def placed(spec, *shape):
    return A(NamedSharding(mesh, spec), *shape)

def step(w, x):
    return jnp.tanh(x @ w["up"]["a"] @ w["up"]["b"]) @ w["down"]["a"] @ w["down"]["b"]

step = jax.jit(step)
w = {{
    "up": {{"a": placed(up["a_spec"], 64, 8), "b": placed(up["b_spec"], 8, 2048)}},
    "down": {{"a": placed(down["a_spec"], 2048, 8), "b": placed(down["b_spec"], 8, 64)}},
}}
step_inputs = (w, A(S("data"), 256, 64))
"""
"""A transposed spec that is written as a right one, under a key that ends with what it is."""

TIME_MAJOR = f"""{HEAD}
def step(w, x):
    x = x + jnp.einsum("tbd,ts->sbd", x, w["mix"])
    return jnp.tanh(x @ w["up"]) @ w["down"]

step = jax.jit(step)
w = {{"mix": A(S(), 64, 64), "up": A(S(None, "model"), 128, 512), "down": A(S("model"), 512, 128)}}
rows = S("data")
step_inputs = (w, A(rows, 64, 32, 128))
"""
"""A batch in the second dimension, and its axis on the first."""

NESTED = f"""{HEAD}
def local(w, x):
    def outer(x, _):
        def inner(x, w):
            return jnp.tanh(x @ w), None
        return jax.lax.scan(inner, x, w)[0], None
    return jax.lax.scan(outer, x, None, length=8)[0]

def loss(w, x):
    return jnp.sum(jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(w, x))

step = jax.jit(jax.grad(loss))
step_inputs = (A(S(), 2, 64, 64), A(S("data"), 64, 64))
"""
"""Gradients that are summed in each iteration of a loop in a loop."""

EARLY = f"""{HEAD}
def local(w, x):
    everyone = jax.lax.all_gather(jnp.tanh(x), "data", tiled=True)
    return everyone.mean(1) @ w

step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=False))
step_inputs = (A(S(), 64, 16), A(S("data"), 32, 24, 64))
"""
"""Rows that are gathered, and of which only means are used."""

REPEATED = f"""{HEAD}
def local(q, k):
    k = jnp.repeat(k, 4, axis=1)
    k = jax.lax.all_gather(k, "data", tiled=True)
    return jnp.einsum("qhd,shd->qhs", q, k)

step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
step_inputs = (A(S("data"), 64, 8, 16), A(S("data"), 64, 2, 16))
"""
"""Keys that are repeated for all heads of queries, and gathered then."""

HALO = f"""{HEAD}
def local(u):
    above = jax.lax.ppermute(u, "data", [(n, n + 1) for n in range(3)])
    return u + jnp.concatenate([above[-1:], u[:-1]])

step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
step_inputs = (A(S("data"), 64, 32),)
"""
"""Whole blocks that are sent, of which the last row is used."""

RING = f"""{HEAD}
def local(x):
    def hop(carry, scale):
        total, part = carry
        part, sent = part * scale, jax.lax.ppermute(part, "data", [(n, (n + 1) % 4) for n in range(4)])
        return (total + part, sent), part

    def turn(number, carry):
        return hop(carry, number)[0]

    LOOP
    return total

step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
step_inputs = (A(S("data"), 64, 32),)
"""
"""A ring that sends once more than it needs to."""

SHUFFLED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def shardings():
    mesh = Mesh(np.array(jax.devices()[:8]), ("d",))
    rows = NamedSharding(mesh, P("d"))
    return rows, NamedSharding(mesh, P(None, "d"))

ROWS
def loss(p, x, y):
    for w1, w2 in p:
        x = x + jax.nn.gelu(jax.nn.softmax(x @ x.swapaxes(1, 2)) @ x @ w1) @ w2
    return jnp.mean((x - y) ** 2)

@jax.jit
def step(p, x, y, key):
    perm = jax.random.permutation(key, x.shape[0])
    x, y = x[perm], y[perm]
    return jax.tree.map(lambda a, b: a - 1e-3 * b, p, jax.grad(loss)(p, x, y))

def main(rows, columns):
    put = lambda sharding, *shape: jax.device_put(np.random.randn(*shape).astype("f") / 50, sharding)
    p = [(put(columns, 64, 256), put(rows, 256, 64)) for _ in "ab"]
    x = put(rows, 32, 64, 64)
    step(p, x, x, jax.random.key(0))

if __name__ == "__main__":
    main(*shardings())
"""
"""A batch that is shuffled in the step, where no mesh has a name."""

SAMPLED = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def net(params, x):
    for w in params:
        scores = jax.nn.softmax(x @ x.swapaxes(1, 2))
        x = x + jnp.tanh(scores @ x @ w["up"]) @ w["down"]
    return x

@jax.jit
def step(READ, x):
    '''Follows the change for some steps.'''
    def euler(x, _):
        change = jax.lax.with_sharding_constraint(net(PARAMS, x), S("data"))
        return jax.lax.with_sharding_constraint(x + change / 8, S("data")), None

    return jax.lax.scan(euler, x, length=8)[0]

layers = [{{"up": A(S(None, "data"), 256, 1024), "down": A(S("data"), 1024, 256)}} for _ in range(2)]
step_inputs = (GIVEN, A(S("data"), 32, 16, 256))
"""
"""A sampler whose parameters stay sharded in the loop, as `READ` of its function, `PARAMS` in it, and `GIVEN`."""

FIELDS = f"""from dataclasses import dataclass, fields
{HEAD}
@dataclass(frozen=True)
class Rules:
    batch: str | None = "data"
    embed: str | None = None
    head_dim: str | None = None
    heads: str | None = "model"
    vocab: str | None = None

def placed(names):
    return S(*(getattr(Rules(), name) for name in names))

TABLES = {{"up": ("embed", "heads"), "down": ("heads", "embed"), "head": ("embed", "vocab")}}
SHAPES = {{"up": (64, 128), "down": (128, 64), "head": (64, 1024)}}

def logits(w, x):
    h = jnp.tanh(x @ w["up"]) @ w["down"]
    return jax.lax.with_sharding_constraint(h @ w["head"], placed(("batch", "vocab")))

@jax.jit
def step(w, x):
    grads = jax.grad(lambda w: jax.nn.logsumexp(logits(w, x), axis=-1).mean())(w)
    return jax.tree.map(lambda value, grad: value - 0.1 * grad, w, grads)

w = {{name: A(placed(names), *SHAPES[name]) for name, names in TABLES.items()}}
step_inputs = (w, A(S("data"), 64, 64))
"""
"""Rules of logical names as fields, one of which is for a weight and for the constraint of what it is multiplied to."""

MAPPED_ROWS = f"""{HEAD.replace('(4, 2), ("data", "model")', '(8,), ("data",)').replace(",) * 2", ",)")}
def clipped(w, x, y):
    grad = jax.grad(lambda w: jnp.sum((jnp.tanh(x @ w) - y) ** 2))(w)
    return grad * jnp.minimum(1.0, jax.lax.rsqrt(jnp.sum(grad * grad)))

@jax.jit
def step(w, x, y):
    LOOP
    return w - 0.1 * total / len(x)

step_inputs = (A(S(), 64, 64), A(S("data"), 128, 64), A(S("data"), 128, 64))
"""
"""A loop over the rows of a batch that is sharded by rows."""

HEADS = f"""{HEAD}
@jax.jit
def step(w, cache, x):
    q = jnp.einsum("bd,dhk->bhk", x, w["q"])
    scores = jax.nn.softmax(jnp.einsum("bhk,bshk->bhs", q, cache["k"]), axis=-1)
    mixed = jnp.einsum("bhs,bshk->bhk", scores, cache["v"])
    return x + jnp.einsum("bhk,hkd->bd", mixed, w["o"]), cache

rows, kept = S("data"), S("data", None)
w = {{"q": A(S(None, "model"), 64, 8, 16), "o": A(S("model"), 8, 16, 64)}}
step_inputs = (w, {{"k": A(kept, 8, 64, 8, 16), "v": A(kept, 8, 64, 8, 16)}}, A(rows, 8, 64))
"""
"""A cache that all devices along an axis hold whole, of which each uses its heads."""

LISTED = HEADS.replace(
    "@jax.jit",
    """RULES = {"batch": "data", "length": None, "heads": "model", "mlp": "model"}

def of(*names):
    return S(*(RULES[name] for name in names))

@jax.jit""",
).replace('S("data", None)', 'of("batch", "length")')
"""The same, whose spec is that of the logical names of its dimensions."""

PAIRS = f"""{HEAD}
def loss(w, x, y):
    a, b = x @ w["a"], y @ w["b"]
    logits = jax.lax.with_sharding_constraint(a @ b.T, S(None, None))
    rows, columns = (jnp.mean(jax.nn.logsumexp(logits, axis)) for axis in (0, 1))
    return rows + columns - 2 * jnp.mean(jnp.sum(a * b, -1))

step = jax.jit(jax.grad(loss))
w = {{name: A(S(), 64, 32) for name in "ab"}}
step_inputs = (w, A(S("data"), 512, 64), A(S("data"), 512, 64))
"""
"""All pairs of a contrastive loss on every device: rows take a quarter of the memory, and send somewhat more."""

OTHER_NAME = f"""{HEAD}
RULES = (("batch", "data"), ("mlp", "model"), ("vocab", "model"), ("embed", None))

def constrain(x, *names):
    rules = dict(RULES)
    return jax.lax.with_sharding_constraint(x, S(*(rules[each] for each in names)))

def loss(w, x, target):
    x = constrain(jnp.tanh(x @ w["up"]), "batch", "mlp") @ w["down"]
    x = constrain(x, "batch", "embed")
    logits = constrain(x @ w["head"], "batch", "embed")
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(logits), -1))

step = jax.jit(jax.grad(loss))
w = {{"up": A(S(None, "model"), 32, 64), "down": A(S("model"), 64, 32), "head": A(S(None, "model"), 32, 512)}}
step_inputs = (w, A(S("data"), 128, 32), A(S("data", "model"), 128, 512))
"""
"""Logits of which one dimension has the name of another one, for which the rules have no axis."""
