"""What JAX itself says of programs: `python oracle.py SCRIPT FUNCTION REPORT …`, in an environment without shardscope.

Lowers and compiles the function as its own call would, reads collectives from the compiled text by one regular
expression, expands their groups with numpy, and compares the shardings in a report with those of the compiled object.
Prints a line of JSON for each.
"""

import importlib.util
import json
import os
import re
import sys
import time
from collections import Counter

COLLECTIVE = re.compile(
    r"^ *(?:ROOT )?%?[\w.\-]+ = .*? (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    r"|collective-broadcast|ragged-all-to-all)(?:-start)?\((.*)$",
    re.MULTILINE,
)
GROUPS = re.compile(r"(?:replica_groups|source_target_pairs)=")


def main(path, function, report_file):
    """Print what the compiled program has, and where the report differs from it."""
    started = time.perf_counter()
    import jax
    import numpy as np

    module = loaded(path)
    target = getattr(module, function)
    inputs = getattr(module, f"{function}_inputs")
    inputs = inputs() if callable(inputs) else inputs
    lowered = (target if hasattr(target, "lower") else jax.jit(target)).lower(*inputs)
    compiled = lowered.compile()
    compiled = getattr(compiled, "compiled", compiled)
    text = compiled.as_text()
    seconds = time.perf_counter() - started
    devices = len(jax.devices())
    found = Counter(
        (kind, groups_of(rest, np, int((re.search(r"num_partitions=(\d+)", text) or [0, devices])[1])))
        for kind, rest in COLLECTIVE.findall(text)
    )
    with open(report_file) as opened:
        report = json.load(opened)
    listed = Counter(
        (each["kind"], frozenset(map(tuple, each.get("pairs", ()))) or members(each.get("groups", ())))
        for each in report["collectives"]
        if each["stage"] == "hlo"
    )
    shardings = list(sharding_problems(report, compiled, jax, np))
    print(
        json.dumps(
            {
                "seconds": seconds,
                "jax": jax.__version__,
                "collectives": dict(Counter(kind for kind, _ in found.elements())),
                "missing": [str(each) for each in (found - listed).elements()],
                "invented": [str(each) for each in (listed - found).elements()],
                "shardings": shardings[0],
                "wrong_shardings": shardings[1:],
            }
        )
    )


def loaded(path):
    """The script, imported under its name."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.basename(path).removesuffix(".py"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def members(groups):
    """Groups whose order tells nothing, as sets."""
    return frozenset(tuple(sorted(group)) for group in groups)


def groups_of(rest, np, devices):
    """The devices of each group, or the pairs, whichever way they are written."""
    start = GROUPS.search(rest)
    if start is None:
        return frozenset()
    text = rest[start.end() :]
    if text.startswith("mesh["):
        axes, text = text[5:].split("]", 1)
        sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", axes)}
        order = np.arange(int(np.prod(list(sizes.values()))))
        if ids := re.match(r"[^{]*device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\)", text):
            order = order.reshape([int(each) for each in ids[1].split(",")])
            order = order.transpose([int(each) for each in ids[2].split(",")]) if ids[2] else order
        elif ids := re.match(r"[^{]*device_ids=\(([^)]*)\)", text):
            order = np.array([int(each) for each in ids[1].split(",")])
        named = re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", text[text.index("{") : text.index("}")])
        return along(order, sizes, named, np)
    if text.startswith("["):
        shape, source, axes = re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text).groups()
        whole = np.arange(int(np.prod(list(map(int, source.split(",")))))).reshape([int(d) for d in source.split(",")])
        whole = whole.transpose([int(axis) for axis in axes.split(",")]) if axes else whole
        return frozenset(tuple(sorted(row)) for row in whole.reshape([int(d) for d in shape.split(",")]).tolist())
    body = re.match(r"\{((?:\{[\d,]*\},?)*)\}", text)[1]
    rows = [tuple(int(d) for d in row.split(",")) for row in re.findall(r"\{([\d,]+)\}", body)]
    if start[0].startswith("source"):
        return frozenset(rows)
    return frozenset(tuple(sorted(row)) for row in rows) or frozenset({tuple(range(devices))})


def along(order, sizes, named, np):
    """The groups along some axes, or parts of axes, of a mesh."""
    shape, chosen = [], []
    for name, size in sizes.items():
        parts = sorted((int(before), int(part)) for axis, before, part in named if axis == name and before)
        whole = any(axis == name and not before for axis, before, _ in named)
        done = 1
        for before, part in parts:
            shape += [before // done, part]
            chosen += [False, True]
            done = before * part
        shape.append(size // done)
        chosen.append(whole)
    array = order.reshape(shape)
    inside = [index for index, each in enumerate(chosen) if each]
    rows = np.moveaxis(array, inside, range(-len(inside), 0)).reshape(-1, int(np.prod([shape[i] for i in inside])))
    return frozenset(tuple(sorted(row)) for row in rows.tolist())


def shardings_of(compiled, name, jax):
    """The shardings of one side; none where JAX cannot give them, as with Refs."""
    try:
        return jax.tree.leaves(getattr(compiled, name))
    except ValueError:
        return []


def sharding_problems(report, compiled, jax, np):
    """How many shardings were compared, then those that differ."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    def meshes():
        for mesh in report["subject"]["mesh"]:
            names = [axis["name"] for axis in mesh["axes"]]
            ids = mesh["device_ids"]
            by_id = {device.id: device for device in jax.devices()}
            if all(each in by_id for each in ids):
                yield Mesh(np.array([by_id[i] for i in ids]).reshape([axis["size"] for axis in mesh["axes"]]), names)

    every = list(meshes())
    sides = (
        (report["arguments"], shardings_of(compiled, "input_shardings", jax)),
        (report["outputs"], shardings_of(compiled, "output_shardings", jax)),
    )
    compared, problems = 0, []
    for listed, actual in sides:
        if len(listed) != len(actual):
            continue
        for value, sharding in zip(listed, actual, strict=True):
            said = value.get("actual")
            shape = re.search(r"\[([\d,@\w()]*)\]", value["type"])
            if said is None or shape is None:
                continue
            dims = [int(each) for each in re.sub(r"@(?:\([^)]*\)|\w+)", "", shape[1]).split(",") if each]
            spec = eval(said, {"P": PartitionSpec, "PartitionSpec": PartitionSpec})
            for mesh in every:
                try:
                    mine = NamedSharding(mesh, spec)
                except (ValueError, KeyError):
                    continue
                compared += 1
                if mine.devices_indices_map(tuple(dims)) != sharding.devices_indices_map(tuple(dims)):
                    problems.append(f"{value['path']}: {said} is {sharding}")
                break
    yield compared
    yield from problems


if __name__ == "__main__":
    for index in range(1, len(sys.argv), 3):
        main(*sys.argv[index : index + 3])
