"""Run the samples on fake devices, and beside each its reference; a child process of the tests.

Standard input holds, as JSON, a list of {"name", "path", "functions"}. For each function `NAME:FUNCTION` the folder
given as argument receives `NAME.FUNCTION.npz` (the leaves of the actual and of the expected result),
`.stablehlo.txt`, `.hlo.txt`, and `.json` (see `run`). What a sample prints goes to `NAME.out`.
"""

import contextlib
import json
import runpy
import sys
import traceback
from pathlib import Path

import jax
import numpy as np
import references


def main() -> None:
    folder = Path(sys.argv[1])
    for sample in json.load(sys.stdin):
        with (folder / f"{sample['name']}.out").open("w") as out, contextlib.redirect_stdout(out):
            # As the script that a user may start; the module's names are there for inspection afterwards.
            module = runpy.run_path(sample["path"], run_name="__main__")
        with_inputs = [name.removesuffix("_inputs") for name in module if name.endswith("_inputs")]
        (folder / f"{sample['name']}.names.json").write_text(json.dumps(with_inputs))
        for function in sample["functions"]:
            stem = folder / f"{sample['name']}.{function}"
            try:
                facts = run(module, f"{sample['name']}:{function}", stem)
            except Exception:
                facts = {"error": traceback.format_exc()}
            stem.with_name(stem.name + ".json").write_text(json.dumps(facts))


def run(module: dict[str, object], key: str, stem: Path) -> dict[str, object]:
    """Lower, compile and run one function; write its texts and results.

    Returns, of each leaf of the result, its PartitionSpec as text, the shape of one shard, and whether all copies of
    the same part of it are the same, bit by bit.
    """
    function = module[key.partition(":")[2]]
    inputs = module[key.partition(":")[2] + "_inputs"]
    arguments = inputs() if callable(inputs) else inputs
    arguments = jax.tree.map(filled, arguments, is_leaf=lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    expected = references.REFERENCES[key](*jax.tree.map(np.array, arguments))

    jitted = function if hasattr(function, "lower") else jax.jit(function)
    lowered = jitted.lower(*arguments)
    stem.with_name(stem.name + ".stablehlo.txt").write_text(lowered.as_text())
    compiled = lowered.compile()
    stem.with_name(stem.name + ".hlo.txt").write_text(compiled.as_text())
    leaves, structure = jax.tree.flatten(compiled(*arguments))
    assert jax.tree.structure(expected) == structure
    np.savez(
        stem.with_name(stem.name + ".npz"),
        **{f"actual{i}": numbers(leaf) for i, leaf in enumerate(leaves)},
        **{f"expected{i}": numbers(leaf) for i, leaf in enumerate(jax.tree.leaves(expected))},
    )
    return {
        "specs": [str(tuple(leaf.sharding.spec)) for leaf in leaves],
        "shard_shapes": [leaf.sharding.shard_shape(leaf.shape) for leaf in leaves],
        "copies_agree": [copies_agree(leaf) for leaf in leaves],
    }


def filled(leaf):
    """An abstract argument with values; a concrete one as it is."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    values = np.random.default_rng(1).normal(scale=0.1, size=leaf.shape)
    return jax.device_put(values.astype(leaf.dtype), leaf.sharding)


def numbers(leaf) -> np.ndarray:
    """A dtype that numpy files can hold; bfloat16 fits into float32."""
    values = np.asarray(leaf)
    return values if values.dtype.kind in "biuf" else values.astype(np.float32)


def copies_agree(leaf) -> bool:
    parts: dict[str, list[bytes]] = {}
    for shard in leaf.addressable_shards:
        parts.setdefault(str(shard.index), []).append(np.asarray(shard.data).tobytes())
    return all(copy == copies[0] for copies in parts.values() for copy in copies)


if __name__ == "__main__":
    main()
