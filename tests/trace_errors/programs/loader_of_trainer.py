import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class Trainer:
    def __init__(self):
        mesh = Mesh(np.array(jax.devices()), ("data",))
        self.batch_sharding = NamedSharding(mesh, PartitionSpec("data"))
        self.w = jax.device_put(jnp.zeros((4, 1)), NamedSharding(mesh, PartitionSpec()))
        self.step = jax.jit(lambda w, b: w - 0.1 * jax.grad(self.loss)(w, b))

    @staticmethod
    def loss(w, batch):
        return jnp.mean((batch["x"] @ w - batch["y"]) ** 2)

    def fit(self, batches):
        for number in range(2):
            batch = jax.device_put(next(batches), self.batch_sharding)
            self.w = self.step(self.w, batch)
            print(number, self.w.sum())


def loader(x, y, size):
    for start in range(0, len(x), size):
        yield {"x": x[start : start + size], "y": y[start : start + size]}


x = np.arange(80, dtype=np.float32).reshape(20, 4) / 80
Trainer().fit(loader(x, x[:, :1], 16))
