"""What a compiled program sends, counted without shardscope: `python sent.py SCRIPT FUNCTION [INPUTS]`.

Prints a line of JSON: bytes that one device sends in one execution, by the text of the compiled program, loops whose
length XLA knows counted as often as they run; and the memory of arguments, results and temporaries.
"""

import json
import math
import re
import sys

from oracle import COLLECTIVE, groups_of, loaded

SIZES = {"pred": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8, "u64": 8}
SIZES |= {"c64": 8, "c128": 16}
HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$", re.MULTILINE)
CALL = re.compile(r"(?:body|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
SHARE = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}


def main(path, function, inputs=None):
    """Print what the program sends and holds."""
    import jax
    import numpy as np

    module = loaded(path)
    target = getattr(module, function)
    given = getattr(module, inputs or f"{function}_inputs")
    given = given() if callable(given) else given
    compiled = (target if hasattr(target, "lower") else jax.jit(target)).lower(*given).compile()
    compiled = getattr(compiled, "compiled", compiled)
    memory = compiled.memory_analysis()
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    print(json.dumps({"bytes": sent(compiled.as_text(), np, len(jax.devices())), "memory": held}))


def sent(text, np, devices):
    """The bytes of all collectives, each as often as its computation is executed."""
    starts = list(HEAD.finditer(text))
    ends = [*(each.start() for each in starts[1:]), len(text)]
    bodies = {each[2]: text[each.end() : end] for each, end in zip(starts, ends, strict=True)}
    devices = int((re.search(r"num_partitions=(\d+)", text) or [0, devices])[1])
    entry = next(each[2] for each in starts if each[1])
    total, waiting = 0, [(entry, 1)]
    while waiting:
        name, times = waiting.pop()
        body = bodies.get(name, "")
        total += times * sum(size_of(line, kind, rest, np, devices) for line, kind, rest in collectives(body))
        for line in body.splitlines():
            trips = TRIPS.search(line) if " while(" in line else None
            called = [*CALL.findall(line), *re.findall(r"[\w.\-]+", "".join(BRANCHES.findall(line)))]
            if " all-reduce(" not in line and " reduce(" not in line:
                waiting += [(each, times * (int(trips[1]) if trips else 1)) for each in called]
    return total


def collectives(body):
    """Each collective's line, kind and operands."""
    for each in COLLECTIVE.finditer(body):
        yield each[0], each[1], each[2]


def size_of(line, kind, rest, np, devices):
    """The bytes that a device sends for a collective in a bandwidth-optimal algorithm."""
    types = re.findall(r"(\w+)\[([\d,]*)\]", line.split(f" {kind}")[0].split(" = ", 1)[1])
    size = sum(SIZES.get(dtype, 1) * math.prod(map(int, filter(None, dims.split(",")))) for dtype, dims in types)
    groups = groups_of(rest, np, devices)
    members = max((len(each) for each in groups), default=1)
    if kind == "collective-permute":
        return size
    if kind == "reduce-scatter":
        size *= members
    return SHARE.get(kind, 1) * size * (members - 1) // members


if __name__ == "__main__":
    main(*sys.argv[1:])
