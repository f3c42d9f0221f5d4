import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


class Runner:
    def __init__(self, dp=4, mp=2):
        self.mesh = Mesh(mesh_utils.create_device_mesh((dp, mp)), ("data", "mdl"))
        self.weight = jax.device_put(jnp.linspace(0, 1, 32 * 64).reshape(32, 64), self.sharding("mdl", None))
        self.apply = jax.jit(
            self._apply,
            in_shardings=(self.sharding(None, "mdl"), self.sharding("data", None)),
            out_shardings=self.sharding("data", None),
        )

    def sharding(self, *axes):
        return NamedSharding(self.mesh, P(*axes))

    @staticmethod
    def _apply(weight, x):
        return jnp.tanh(x @ weight)

    def run(self, x):
        return self.apply(self.weight, jax.device_put(x, self.sharding("data", None)))


runner = Runner()
out = runner.run(np.ones((16, 32), np.float32))
print(out.sum(), out.sharding)
