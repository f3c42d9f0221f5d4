"""What it costs to look at values: a run with probes beside a plain run.

    python benchmarks/live.py [SAMPLE:FUNCTION …]

Each is captured once; the plain run is the fastest of those that the capture makes after its warm-up, the probed run
the fastest of two. `looking` is all that is done beyond the plain runs: profiling, tracing and compiling the program
with probes, running it, and taking its values over. The last row is a model of 128 MB of parameters.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.samples.catalogue import samples

DEFAULT = ("psum:psum", "fsdp:grad", "pipeline:grad", "megatron_mlp:grad", "moe:grad", "transformer:train_step")

LARGE = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec as P
    mesh = Mesh(np.array(jax.devices()[:8]), ("x",))
    def layer(x, w):
        return jnp.tanh(x @ lax.all_gather(w, "x", tiled=True))
    def loss(weights, x):
        for w in weights:
            x = layer(x, w)
        return lax.pmean(jnp.mean(x ** 2), "x")
    mapped = jax.shard_map(loss, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())
    fn = jax.jit(jax.grad(mapped))
    fn_inputs = ([jax.ShapeDtypeStruct((2048, 2048), np.float32)] * 8, jax.ShapeDtypeStruct((64, 2048), np.float32))
"""


def last(request: Request) -> Capture:
    *_, found = capture(request)
    return found


def row(name: str, found: Capture) -> str:
    if found.execution is None or found.probed is None:
        return f"| {name} | – | – | – | – | – |"
    plain, probed = min(found.execution.seconds), found.probed.seconds
    size = sum(len(probe.elements) for probe in found.probes)
    looking = found.timings["probe"]
    ratio = f"{probed / plain:.2f}"
    return f"| {name} | {plain * 1e3:.2f} | {probed * 1e3:.2f} | {ratio} | {looking:.2f} | {size / 1e6:.2f} |"


def main() -> None:
    paths = {sample.name: sample.path for sample in samples()}
    print("| function | plain run, ms | probed run, ms | ratio | looking, s | recorded, MB |")
    print("|---|---|---|---|---|---|")
    for wanted in sys.argv[1:] or DEFAULT:
        name, _, function = wanted.partition(":")
        print(row(wanted, last(Request(f"{paths[name]}:{function}"))), flush=True)
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "large.py")
            path.write_text(textwrap.dedent(LARGE))
            print(row("128 MB of parameters", last(Request(f"{path}:fn"))))


if __name__ == "__main__":
    main()
