"""Linen: logical axes, nn.scan over layers, nn.remat."""

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.training.train_state import TrainState
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
RULES = (("batch", "data"), ("embed", None), ("mlp", "model"), ("heads", "model"), ("layers", None))


def partitioned(*names):
    return nn.with_logical_partitioning(nn.initializers.lecun_normal(), names)


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        y = nn.LayerNorm(use_bias=False)(x)
        y = nn.MultiHeadDotProductAttention(4, name="attention", kernel_init=nn.initializers.lecun_normal())(y)
        x = nn.with_logical_constraint(x + y, ("batch", None, "embed"))
        y = nn.Dense(256, use_bias=False, kernel_init=partitioned("embed", "mlp"), name="up")(x)
        y = nn.Dense(64, use_bias=False, kernel_init=partitioned("mlp", "embed"), name="down")(nn.gelu(y))
        return x + y, None


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(128, 64, name="embed")(tokens)
        layers = nn.scan(
            nn.remat(Layer),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=3,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        x, _ = layers(name="layers")(x, None)
        return nn.Dense(128, use_bias=False, name="logits")(x)


model = Model()
optimizer = optax.adam(1e-3)


def initial(key):
    variables = model.init(key, jnp.zeros((8, 16), jnp.int32))
    return TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optimizer)


@jax.jit
def train_step(state, tokens):
    def loss(params):
        logits = state.apply_fn({"params": params}, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    with nn.logical_axis_rules(RULES):
        value, gradients = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=gradients), value


def train_step_inputs():
    with mesh, nn.logical_axis_rules(RULES):
        shapes = jax.eval_shape(initial, jax.random.key(0))
        shardings = nn.logical_to_mesh_sharding(nn.get_partition_spec(shapes), mesh, RULES)
        state = jax.jit(initial, out_shardings=shardings)(jax.random.key(0))
    return state, jax.device_put(jnp.zeros((8, 16), jnp.int32), NamedSharding(mesh, P("data")))
