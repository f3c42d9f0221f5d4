"""What each sample computes, written again for one device without any sharding.

`REFERENCES` maps `SAMPLE:FUNCTION` to a function of the same arguments as numpy arrays. Small ones are the numbers
that one finds by hand; gradients of perceptrons are backpropagation in numpy; the rest is plain JAX on one device.
"""

import jax
import jax.numpy as jnp
import numpy as np

DIGITS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2])


def constant(*value):
    return lambda *_: np.array(value)


def product(a, b):
    return a.astype(np.float64) @ b


# --- perceptrons, in float64


def perceptron(layers, x, targets, *, last_is_linear):
    """The mean over examples of the summed squared errors, and its gradient by backpropagation."""
    inputs, slopes = [], []
    for number, (weights, bias) in enumerate(layers, start=1):
        inputs.append(x)
        x = x.astype(np.float64) @ weights + bias
        linear = last_is_linear and number == len(layers)
        slopes.append(np.ones_like(x) if linear else (x > 0).astype(np.float64))
        x = x * slopes[-1]
    loss = np.mean(np.sum((x - targets) ** 2, axis=-1))
    delta = 2 * (x - targets) / len(x)
    gradient = []
    for (weights, _), x, slope in zip(reversed(layers), reversed(inputs), reversed(slopes), strict=True):
        delta = delta * slope
        gradient.insert(0, (x.T @ delta, delta.sum(axis=0)))
        delta = delta @ weights.T
    return loss, gradient


def network_loss(params, batch):
    return perceptron(params, *batch, last_is_linear=True)[0]


def network_grad(params, batch):
    return perceptron(params, *batch, last_is_linear=True)[1]


def pipeline(params, microbatches, targets):
    width = microbatches.shape[-1]
    layers = list(zip(*params, strict=True))
    return perceptron(layers, microbatches.reshape(-1, width), targets.reshape(-1, width), last_is_linear=False)


def pipeline_grad(*arguments):
    weights, biases = zip(*pipeline(*arguments)[1], strict=True)
    return np.stack(weights), np.stack(biases)


# --- the other networks


def megatron_loss(params, x):
    for by_columns, by_rows in params:
        x = x + jax.nn.gelu(x @ by_columns) @ by_rows
    return jnp.mean(x**2)


def tanh_loss(params, x):
    w1, w2 = params
    return jnp.mean((jnp.tanh(x @ w1) @ w2 - x) ** 2)


def attention(q, k, v):
    """One query after the other, with the whole row of scores at once."""
    return jnp.stack([jax.nn.softmax(q[h] @ k[h].T / np.sqrt(q.shape[-1])) @ v[h] for h in range(len(q))])


def attention_grad(q, k, v):
    return jax.grad(lambda *qkv: jnp.sum(attention(*qkv) ** 2) / 2, argnums=(0, 1, 2))(q, k, v)


def experts_kept(router, x):
    """The tokens that find room, and their experts: of the 8 tokens of a device, 3 for each expert, in order."""
    choice = np.argmax(x @ router, axis=-1)
    tokens = np.array([t for t, e in enumerate(choice) if np.sum(choice[t // 8 * 8 : t] == e) < 3])
    return tokens, choice[tokens]


def experts(params, x):
    """The loss and its gradient, with the choice of experts made beforehand."""
    tokens, chosen = experts_kept(params[0], x)
    assert 0 < len(tokens) < len(x), "the sample is to show both: tokens that find room and tokens that do not"

    def loss(params, x):
        router, w_in, w_out = params
        weights = jax.nn.softmax(x[tokens] @ router)[np.arange(len(tokens)), chosen]
        answers = [jax.nn.relu(x[t] @ w_in[e]) @ w_out[e] for t, e in zip(tokens, chosen, strict=True)]
        return jnp.mean(x.at[tokens].add(weights[:, None] * jnp.stack(answers)) ** 2)

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(params, x)


def accumulated(params, microbatches):
    """The gradient of the mean over all examples at once: microbatches have equal sizes."""

    def loss(params):
        weights, bias = params
        x = microbatches.reshape(-1, microbatches.shape[-1])
        return jnp.mean((jnp.tanh(x @ weights + bias) - x) ** 2)

    return jax.grad(loss)(params)


def train_step(state, tokens):
    params, mean, square, step = state
    loss, gradient = jax.jit(jax.value_and_grad(language_model))(params, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * np.asarray(g), mean, gradient)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * np.asarray(g) ** 2, square, gradient)
    step = step + np.int32(1)

    def update(p, m, s):
        return p - 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(s / (1 - 0.99**step)) + 1e-5)

    return (jax.tree.map(update, params, mean, square), mean, square, step), loss


def language_model(params, tokens):
    """The mean of -log p(token | tokens before it), for one sentence written head by head."""

    def sentence_loss(sentence):
        x = params["embedding"][sentence]
        for layer in params["layers"]:
            h = rms(x) * layer["norm1"]
            for head in range(layer["qkv"].shape[2]):
                q, k, v = (h @ layer["qkv"][:, part, head] for part in range(3))
                scores = jnp.where(np.tri(len(sentence), dtype=bool), q @ k.T / np.sqrt(q.shape[-1]), -jnp.inf)
                x = x + jax.nn.softmax(scores) @ v @ layer["out"][head]
            h = rms(x) * layer["norm2"]
            x = x + jax.nn.gelu(h @ layer["up"]) @ layer["down"]
        logits = (x @ params["embedding"].T)[:-1]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - logits[np.arange(len(logits)), sentence[1:]])

    return jnp.mean(jax.vmap(sentence_loss)(tokens))


def rms(x):
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def penalized(weights, x, penalties):
    return np.sum((x.astype(np.float64) @ weights) ** 2) + penalties * np.sum(weights**2)


def transposed_gather(cotangent):
    """Each number meets, on device d, the factor 1 + 8 d + its own place."""
    return (cotangent * np.arange(1.0, 65.0)).reshape(8, 8).sum(axis=0)


REFERENCES = {
    "psum:psum": constant(22, 20, 12, 17),
    "psum_2d:over_both": lambda x: x[:2, :2] + x[:2, 2:] + x[2:, :2] + x[2:, 2:],
    "psum_2d:over_rows": lambda x: x[:2] + x[2:],
    "psum_2d:over_columns": lambda x: x[:, :2] + x[:, 2:],
    "all_gather:tiled": constant(*[3, 9, 5, 2] * 4),
    "all_gather:stacked": lambda x: np.tile(x, 4).reshape(16, 1),
    "psum_scatter:psum_scatter": constant(22, 20, 12, 17),
    "psum_scatter:by_hand": constant(22, 20, 12, 17),
    "ppermute:shift": constant(7, 8, 1, 2, 3, 4, 5, 6),
    "ppermute:shift_open": constant(0, 0, 1, 2, 3, 4, 5, 6),
    "all_to_all:all_to_all": lambda _: DIGITS.reshape(4, 4).T.ravel(),
    "matmul_psum:matmul": product,
    "matmul_psum:automatic": product,
    "matmul_reduce_scatter:matmul": product,
    "matmul_reduce_scatter:overlapped": product,
    "matmul_all_gather:gathered": product,
    "matmul_all_gather:overlapped": product,
    "matmul_all_gather:both_ways": product,
    **{f"{name}:loss": network_loss for name in ("data_parallel", "fsdp", "tensor_parallel", "fsdp_tp")},
    **{f"{name}:grad": network_grad for name in ("data_parallel", "fsdp", "tensor_parallel", "fsdp_tp")},
    "pipeline:loss": lambda *arguments: pipeline(*arguments)[0],
    "pipeline:grad": pipeline_grad,
    "megatron_mlp:loss": megatron_loss,
    "megatron_mlp:grad": jax.grad(megatron_loss),
    "transformer:train_step": train_step,
    "moe:loss": lambda *arguments: experts(*arguments)[0],
    "moe:grad": lambda *arguments: experts(*arguments)[1],
    "ring_attention:attend": attention,
    "ring_attention:grad": attention_grad,
    "grad_accumulation:once": accumulated,
    "grad_accumulation:each_time": accumulated,
    "grad_accumulation:automatic": accumulated,
    "predict:predict": lambda x, w1, w2: np.sin(np.tanh(x.astype(np.float64)) @ w1 @ w2),
    "constraint:open_columns": lambda x: 2 * x,
    "constraint:closed_columns": lambda x: 2 * x,
    "auto_axis:loss": tanh_loss,
    "auto_axis:grad": jax.grad(tanh_loss),
    "custom_partitioning:product": product,
    "block_matrices:all_gather": lambda a: a,
    "block_matrices:all_to_all": lambda a: a,
    "block_matrices:all_reduce": lambda a: product(a.astype(np.float64), a.T).astype(a.dtype),
    "block_matrices:reduce_scatter": lambda a, b: product(a.astype(np.float64), b).astype(a.dtype),
    **{f"transposes:psum_to_invariant{check}": constant(*[3] * 8) for check in ("", "_unchecked")},
    **{f"transposes:psum_to_varying{check}": constant(*[3 * 168] * 8) for check in ("", "_unchecked")},
    **{f"transposes:identity{check}": lambda cotangent: cotangent for check in ("", "_unchecked")},
    **{f"transposes:gather_to_invariant{check}": lambda cotangent: cotangent for check in ("", "_unchecked")},
    **{f"transposes:gather_to_varying{check}": transposed_gather for check in ("", "_unchecked")},
    "missing_reduce_scatter:faulty": product,
    "missing_reduce_scatter:repaired": product,
    "gather_then_slice:faulty": lambda x: np.sin(2 * x),
    "gather_then_slice:repaired": lambda x: np.sin(2 * x),
    "extra_backward_psum:faulty": jax.grad(megatron_loss),
    "extra_backward_psum:repaired": jax.grad(megatron_loss),
    "psum_of_invariant:faulty": lambda weights, x: penalized(weights, x, penalties=8),
    "psum_of_invariant:repaired": lambda weights, x: penalized(weights, x, penalties=1),
    "unsound_invariance:faulty": lambda block, rate: rate,  # the copy on device 0, whose digits are 3 and 1
    "unsound_invariance:repaired": lambda block, rate: rate * 7 / 8,  # one device of four has a sum above ten
    "full_rematerialization:faulty": lambda x: 2 * x,
    "full_rematerialization:repaired": lambda x: 2 * x,
    "indivisible_constraint:faulty": lambda x: 2 * x,
    "indivisible_constraint:repaired": lambda x: np.concatenate([2 * x, np.zeros((7, 4), x.dtype)]),
}
