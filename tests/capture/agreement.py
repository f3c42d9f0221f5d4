"""Compares the shardings of `provenance.py` with those of XLA's own dump, operation by operation.

    python agreement.py FOLDER script.py:fn …

Both texts are read by jaxlib's parser. XLA's has gone through HLO and back, which respells a few operations and leaves
out what loops carry to no purpose. Where the program has CHLO operations, which XLA replaces by several of StableHLO,
only arguments and results are compared.
"""

import importlib.util
import sys
import tempfile
from collections import Counter

PACKAGE = "_shardscope"
SAME = {"stablehlo.dot": "stablehlo.dot_general", "sdy.reshard": "sdy.sharding_constraint"}
RESPELT = {"stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim", "stablehlo.while"}


def load(folder):
    spec = importlib.util.spec_from_file_location(PACKAGE, f"{folder}/__init__.py", submodule_search_locations=[folder])
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])


def shardings(text):
    from _shardscope.capture.worker import provenance
    from jaxlib.mlir import ir

    found = Counter()

    def visit(op):
        if op.name == "func.func":
            for side in ("arg_attrs", "res_attrs"):
                for index, item in enumerate(ir.ArrayAttr(op.attributes[side]) if side in op.attributes else ()):
                    if "sdy.sharding" in item and '"' in str(item["sdy.sharding"]):
                        found[side, index, str(item["sdy.sharding"])] += 1
        elif "sdy.sharding" in op.attributes and op.name not in RESPELT:
            found[SAME.get(op.name, op.name), str(op.attributes["sdy.sharding"])] += 1
        return ir.WalkResult.ADVANCE

    with provenance._context():
        ir.Module.parse(text).operation.walk(visit)
    return found


def main(folder, *functions):
    load(folder)
    from _shardscope.capture.protocol import workspace
    from _shardscope.capture.protocol.request import Request
    from _shardscope.capture.worker import provenance
    from _shardscope.capture.worker.inputs import arguments, callables, resolve

    for function in functions:
        resolve.prepare_path(function)
        found = resolve.resolve(function)
        call = callables.trace(found.function, *arguments.find_arguments(Request(function), found))
        lowered = call.traced.lower()
        with tempfile.TemporaryDirectory() as dump:
            lowered.compile(compiler_options=workspace.compiler_options(dump))
            theirs = shardings(workspace.read_stages(dump)["sdy"])
        text = lowered.as_text(debug_info=True)
        ours = shardings(provenance.propagate(text.encode(), with_origins=True))
        if "chlo." in text:
            ours, theirs = (
                Counter({key: count for key, count in side.items() if key[0].endswith("_attrs")})
                for side in (ours, theirs)
            )
        # XLA may have dropped an operation, such as a product with one; it has none that the program has not.
        missing = theirs - ours
        # Of arguments and results neither side has any that the other has not.
        missing.update({key: count for key, count in (ours - theirs).items() if key[0].endswith("_attrs")})
        print("agree" if theirs and not missing else "differ", function, dict(missing))


main(*sys.argv[1:])
