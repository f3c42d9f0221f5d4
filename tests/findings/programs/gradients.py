"""Derivatives of shard_maps, right ones and mutations of them: sums that are doubled, dropped, or means."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
losses = []


def factors(**expected):
    """Takes a loss in: how many times the true gradient each argument's is, where that is not once."""

    def taken_in(loss):
        losses.append(loss)
        return loss

    return taken_in


def mapped(body, specs, out, on=mesh, **options):
    return jax.shard_map(body, mesh=on, in_specs=specs, out_specs=out, **options)


def columns(for_x, for_w, on=mesh):
    """A product by columns, whose own backward pass does something more to each gradient."""

    @jax.custom_vjp
    def product(x, w):
        return jnp.tanh(x @ w)

    def forward(x, w):
        y = product(x, w)
        return y, (x, w, y)

    def backward(kept, g):
        x, w, y = kept
        d = g * (1 - y * y)
        return for_x(d @ w.T), for_w(x.T @ d)

    product.defvjp(forward, backward)
    specs = (P("data"), P(None, "model"))
    return lambda x, w: (mapped(product, specs, P("data", "model"), on, check_vma=False)(x, w) ** 2).sum()


def rows(before, on=mesh, layers=1):
    """A product that is summed over `model`, whose own backward pass does something to the cotangent first."""

    @jax.custom_vjp
    def product(x, w):
        return lax.psum(x @ w, "model")

    def backward(kept, g):
        x, w = kept
        g = before(g)
        return g @ w.T, x.T @ g

    product.defvjp(lambda x, w: (product(x, w), (x, w)), backward)
    call = mapped(product, (P("data", "model"), P("model")), P("data"), on, check_vma=False)

    def loss(x, w):
        for _ in range(layers - 1):
            x = jnp.tanh(call(x, w)) + x
        return (call(x, w) ** 2).sum()

    return loss


def same(value):
    return value


over_model, over_data = partial(lax.psum, axis_name="model"), partial(lax.psum, axis_name="data")


@factors()
def right_by_columns(x, w):
    return columns(same, same)(x, w)


@factors(x=4)
def summed_for_x(x, w):
    return columns(over_model, same)(x, w)


@factors(w=2)
def summed_for_w(x, w):
    return columns(same, over_data)(x, w)


@factors(x=4, w=2)
def summed_for_both(x, w):
    return columns(over_model, over_data)(x, w)


@factors()
def right_by_rows(x, w):
    return rows(over_model)(x, w)


@factors(x=0.25, w=0.25)
def dropped(x, w):
    return rows(same)(x, w)


@factors(x=4, w=4)
def doubled(x, w):
    return rows(lambda g: over_model(over_model(g)))(x, w)


@factors(x=0.25, w=0.25)
def mean_for_sum(x, w):
    return rows(partial(lax.pmean, axis_name="model"))(x, w)


def collectives(x, w):
    y = lax.psum(jnp.sin(x @ w), "data") * lax.axis_index("model")
    y = lax.ppermute(y, "model", [(0, 1), (1, 2), (2, 3), (3, 0)])
    y = lax.all_to_all(lax.all_gather(y, "data", axis=1, tiled=True), "model", 0, 1, tiled=True)
    return lax.pmean(lax.psum_scatter(y, "model", scatter_dimension=1, tiled=True).sum(), ("data", "model"))


@factors()
def checked(x, w):
    return mapped(collectives, (P("data"), P(None, "model")), P())(x, w)


@factors()
def unchecked(x, w):
    return mapped(collectives, (P("data"), P(None, "model")), P(), check_vma=False)(x, w)


@factors()
def with_a_kink(x, w):
    return jnp.abs(checked(x, w)) + jnp.maximum(x, 0).sum() + w.astype(jnp.bfloat16).astype(w.dtype).sum()


def of_a_tree(both):
    return summed_for_x(both["x"], both["w"])


def program(x, w):
    return [jax.grad(loss, argnums=(0, 1))(x, w) for loss in losses], jax.grad(of_a_tree)({"x": x, "w": w})


def inside(x, w):
    """All of it in jits of their own, which take what they are given."""
    return jax.jit(jax.grad(summed_for_x, argnums=(0, 1)), donate_argnums=(0, 1))(x, w)


random = np.random.default_rng(0)
inputs = tuple(
    jax.device_put(random.normal(size=size).astype(np.float32), NamedSharding(mesh, P()))
    for size in ((8, 16), (16, 32))
)
