# thread: jax-ml/jax#27808
# asks: The last batch of a loader does not divide
# truth: full batches stay sharded; drop the last one, or keep it whole
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("data",))
data_sharding = NamedSharding(mesh, P("data"))
replicated = NamedSharding(mesh, P())
images = np.random.default_rng(0).normal(size=(100, 12)).astype(np.float32)
labels = np.random.default_rng(1).normal(size=(100,)).astype(np.float32)


def loader(batch_size=32):
    for start in range(0, len(images), batch_size):
        batch = images[start : start + batch_size], labels[start : start + batch_size]
        yield jax.device_put(batch, data_sharding)


@jax.jit
def train_step(w, x, y):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.01 * grad, loss


def main():
    w = jax.device_put(jnp.zeros((12,)), replicated)
    for x, y in loader():
        w, loss = train_step(w, x, y)
    print("loss", loss)


if __name__ == "__main__":
    main()
