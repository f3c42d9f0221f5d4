"""Reports of the programs of `mixed.py` against what JAX and XLA have, both made in this process.

    python compare_here.py SEED …

Arguments and outputs are compared with the compiled object device by device, every value with Shardy's dump as jaxlib
parses it, collectives with what a regular expression finds in the compiled text. Prints a line for each difference,
then how many programs, values and collectives were compared.
"""

import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "programs"), str(HERE.parents[2] / "tools" / "zoo")]

import jax  # noqa: E402
import mixed  # noqa: E402
import numpy as np  # noqa: E402
import oracle  # noqa: E402
from jax._src.interpreters.mlir import make_ir_context  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from shardscope.inspector.ir.placement import placement_of  # noqa: E402
from shardscope.inspector.shardings.requested import requested_sharding  # noqa: E402
from shardscope.inspector.shardings.table import values  # noqa: E402

import shardscope  # noqa: E402

AXIS = re.compile(r'"(\w+)"(?::\((\d+)\)(\d+))?')
SHARDING = re.compile(r"<@[^,]*, \[((?:\{[^}]*\}(?:p\d+)?(?:, )?)*)\]((?:, \w+=\{[^}]*\})*)>")
REDUCING = ("reduce", "sort", "scatter", "map")


def dumped(text):
    """The shardings of the results of each operation that has some, in text order, as jaxlib reads the dump."""
    found = []

    def visit(op):
        op = op.operation
        names = ("out_shardings", "sdy.sharding", "sharding")
        sides = [str(op.attributes[name]) for name in names if name in op.attributes]
        is_inside = op.parent is not None and any(word in op.parent.name for word in REDUCING)
        if sides and len(op.results) and not is_inside and not op.name.endswith(("constant", "func", "mesh")):
            found.append(sharded(map(spelled, SHARDING.findall(sides[0]))))
        return ir.WalkResult.ADVANCE

    with make_ir_context():
        ir.Module.parse(text).operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(filter(None, found))


def spelled(parts):
    dims, rest = parts
    unreduced = re.search(r"unreduced=\{([^}]*)\}", rest)
    axes = tuple(tuple(AXIS.findall(dim)) for dim in re.findall(r"\{([^}]*)\}", dims))
    return axes, tuple(AXIS.findall(unreduced[1])) if unreduced else ()


def reported(sharding):
    def axes(refs):
        return tuple((axis.name, *map(str, axis.sub or ("", ""))) for axis in refs)

    return () if sharding is None else (tuple(axes(dim.axes) for dim in sharding.dims), axes(sharding.unreduced))


def sharded(shardings):
    """Those that are over some axis."""
    return [each for each in shardings if each and (any(each[0]) or each[1])]


def blocks(sharding, shape):
    placement = placement_of(sharding)
    sizes = [-(-size // parts) for size, parts in zip(shape, placement.parts, strict=True)]

    def block(tile):
        sides = zip(tile, sizes, shape, strict=True)
        return tuple((min(number * size, full), min(number * size + size, full)) for number, size, full in sides)

    return {device: block(tile) for device, tile in zip(placement.devices, placement.tiles, strict=True)}


def placed(report, role, known, actual, leaves):
    """Differences at the arguments or at the outputs."""
    rows = {row.name: row for row in report.shardings if row.role == role}
    if len(known) != len(actual):
        yield role, len(known), len(actual)
        return
    for value, sharding, leaf in zip(known, actual, leaves, strict=True):
        shape = np.shape(leaf)
        expected = {
            device.id: tuple(side.indices(size)[:2] for side, size in zip(box, shape, strict=True))
            for device, box in sharding.devices_indices_map(shape).items()
        }
        row, known_as = rows.get(value.path), replace(value, spec=value.actual)
        said = None if value.actual is None else requested_sharding(known_as, report.meshes)
        for each in (said, None if row is None else row.sharding):
            if each is not None and blocks(each.closed(), shape) != expected:
                yield role, value.path, str(each), str(sharding)
        if (sharding.memory_kind == "pinned_host") != ("<host>" in value.type):
            yield role, value.path, value.type, sharding.memory_kind


def differences(seed, counts):
    function, arguments, _ = mixed.mixed(seed)
    with tempfile.TemporaryDirectory() as folder:
        lowered = function.lower(*arguments)
        compiled = lowered.compile(compiler_options={"xla_dump_to": folder, "xla_dump_hlo_pass_re": "shardy.*"})
        dumps = sorted(Path(folder).rglob("*after_propagation.mlir"), key=lambda path: path.stat().st_size)
        theirs = dumped(dumps[-1].read_text()) if dumps else []
    report = shardscope.inspect(function, *arguments)
    yield from (placed.message.text for placed in report.messages if placed.message.text.startswith("internal"))
    capture = report.capture
    sides = (
        ("argument", capture.arguments, compiled.input_shardings, arguments),
        ("output", capture.outputs, compiled.output_shardings, lowered.out_info),
    )
    for role, known, *trees in sides:
        yield from placed(report, role, known, *map(jax.tree.leaves, trees))
    # A constraint of the dump has what it asks for.
    constraints = (row for row in report.shardings if row.role == "constraint")
    yield from (("constraint", row.name, row.requested, row.spec) for row in constraints if not row.agrees)
    by_operation = {}
    for value in values(report.program):
        by_operation.setdefault(value.span.start, []).append(reported(value.sharding))
    ours = list(filter(None, (sharded(by_operation[start]) for start in sorted(by_operation))))
    counts["values"] += len(theirs)
    if ours != theirs:
        different = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
        yield "values", different[:1], len(ours), len(theirs)
    compiled_ones = (each for each in report.collectives if each.stage == "hlo")
    listed = Counter((each.kind, frozenset(each.pairs) or oracle.members(each.groups)) for each in compiled_ones)
    text = compiled.as_text()
    written = Counter((kind, oracle.groups_of(rest, np, 8)) for kind, rest in oracle.COLLECTIVE.findall(text))
    counts["collectives"] += written.total()
    if listed != written:
        yield "collectives", listed - written, written - listed


def main(*seeds):
    counts = Counter()
    for seed in seeds:
        try:
            mixed.mixed(seed)[0].lower(*mixed.mixed(seed)[1]).compile()
        except Exception as error:  # what JAX itself refuses
            print(f"refused: mixed_{seed}: {type(error).__name__}", file=sys.stderr)
            continue
        counts["programs"] += 1
        for each in differences(seed, counts):
            print(f"mixed_{seed}:", each)
    print(counts["programs"], "programs,", counts["values"], "values,", counts["collectives"], "collectives")


main(*map(int, sys.argv[1:]))
