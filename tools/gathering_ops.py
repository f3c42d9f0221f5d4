"""Which operations along a sharded dimension make the partitioner gather their operand, on each target.

    python tools/gathering_ops.py cpu tpu:v5p:2x2x2 gpu:h100:8 [--python PATH]

Prints the lines of inspector/findings/rules/gathering.toml for the JAX of that interpreter.
"""

import argparse
import sys

PROGRAM = """
import jax, jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))

def cut(value):
    return lax.with_sharding_constraint(value, rows)

def program(a, i):
    a = [cut(a * (1 + number)) for number in range(20)]
    last = NamedSharding(mesh, P(None, "x"))
    return (
        cut(jnp.cumsum(a[0], axis=0)), cut(jnp.cumprod(a[1], axis=0)), jnp.argmax(a[2], axis=0),
        cut(jnp.sort(a[3], axis=0)), lax.top_k(lax.with_sharding_constraint(a[4].T, last), 2),
        lax.dynamic_slice_in_dim(a[5], i, 4), cut(lax.dynamic_update_slice_in_dim(a[6], a[6][:1], i, 0)),
        jnp.take(a[7], jnp.array([3, 1, 5]), axis=0), cut(a[8][::-1]), cut(jnp.roll(a[9], 1, axis=0)),
        cut(jnp.concatenate([a[10], a[10] * 2])), cut(jnp.pad(a[11], ((3, 5), (0, 0)))),
        cut(jnp.abs(jnp.fft.fft(a[12], axis=0))), cut(a[13].at[jnp.array([1, 2])].add(1.0)), cut(a[14][::2]),
        jnp.median(a[15], axis=0), cut(a[16][3:19]), cut(lax.associative_scan(jnp.add, a[17])),
    )

program_inputs = jax.ShapeDtypeStruct((64, 16), jnp.float32, sharding=rows), jax.ShapeDtypeStruct((), jnp.int32)
"""


def main() -> None:
    """Capture the program for each target, and print which operations its gathers are for."""
    import tempfile
    from pathlib import Path

    from shardscope.inspector.capture.spawn import Request, capture
    from shardscope.inspector.findings.compiled import inserted_collectives
    from shardscope.inspector.pipeline import inspect

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--python")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "operations.py")
        script.write_text(PROGRAM)
        for target in options.targets:
            *_, last = capture(Request(f"{script}:program", target=target, python=options.python, live=False))
            if not last.complete or last.subject is None:
                print(f"# {target}: {last.failure.message if last.failure else 'no result'}", file=sys.stderr)
                continue
            gathers = {
                cause.operation
                for collective, causes in inserted_collectives(inspect(last))
                for cause in causes[:1]
                if collective.kind == "all-gather"
            }
            listed = ", ".join(f'"{each}"' for each in sorted(gathers))
            print(f'["JAX {last.subject.jax}"]\n{target.partition(":")[0]} = [{listed}]')


if __name__ == "__main__":
    main()
