"""Compares the modules of `provenance.py` with XLA's own dump, operation by operation.

    python agreement.py FOLDER script.py:fn …

All texts are read by jaxlib's parsers. Made of the dump, the module must have its operations and shardings, and its
locations must be those that XLA itself carries on to the HLO behind Shardy: the same names on operations whose operands
have the same names.

Made of the StableHLO, where there is no dump, it has what XLA's has, which has gone through HLO and back: that respells
a few operations and leaves out what loops carry to no purpose. Where the program has CHLO operations, for which XLA has
several of StableHLO, only arguments and results are compared.
"""

import importlib.util
import re
import sys
import tempfile
from collections import Counter
from functools import partial

PACKAGE = "_shardscope"
SAME = {"stablehlo.dot": "stablehlo.dot_general", "sdy.reshard": "sdy.sharding_constraint"}
RESPELT = {"stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim", "stablehlo.while"}


def load(folder):
    spec = importlib.util.spec_from_file_location(PACKAGE, f"{folder}/__init__.py", submodule_search_locations=[folder])
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])


def shardings(text):
    from _shardscope.capture.worker import modules
    from jaxlib.mlir import ir

    found = Counter()

    def visit(op):
        if op.name == "func.func":
            for side in ("arg_attrs", "res_attrs"):
                for index, item in enumerate(ir.ArrayAttr(op.attributes[side]) if side in op.attributes else ()):
                    if "sdy.sharding" in item and '"' in str(item["sdy.sharding"]):
                        found[side, index, str(item["sdy.sharding"])] += 1
        elif op.name not in RESPELT and "sdy.sharding" in op.attributes and '"' in str(op.attributes["sdy.sharding"]):
            found[SAME.get(op.name, op.name), str(op.attributes["sdy.sharding"])] += 1
        return ir.WalkResult.ADVANCE

    with modules.context():
        ir.Module.parse(text).operation.walk(visit)
    return found


def in_order(text):
    """Every operation with what it is sharded like."""
    from _shardscope.capture.worker import modules
    from jaxlib.mlir import ir

    def attributes(op):
        named = {name: modules.attributes_of(op).get(name) for name in ("sharding", "in_shardings", "out_shardings")}
        sides = [
            (side, index, str(item["sdy.sharding"]))
            for side in ("arg_attrs", "res_attrs")
            if side in op.attributes
            for index, item in enumerate(op.attributes[side])
            if "sdy.sharding" in item
        ]
        return [str(op.attributes["sdy.sharding"]) if "sdy.sharding" in op.attributes else "", *named.values(), sides]

    with modules.context():
        module = ir.Module.parse(text)
        found = modules.find(module.operation, lambda name: not name.endswith("constant"))
        return [(op.name, [str(r.type) for r in op.results], str(attributes(op))) for op in found]


def names_in_order(text):
    """The name and shape of each operation with those of its operands, where all of them have names."""
    from _shardscope.capture.worker import modules
    from jaxlib.mlir import ir

    def name(value):
        owner = value.owner
        found = NAME.match(str(owner.location)) if not isinstance(owner, ir.Block) else None
        return found and found[1]

    with modules.context():
        module = ir.Module.parse(text)
        for op in modules.find(module.operation, lambda name: name.startswith("stablehlo.")):
            shapes = [list(ir.ShapedType(each.type).shape) for each in op.results]
            # What is inside of reductions XLA shares between them.
            if len(shapes) == 1 and shapes[0] and len(op.operands) and op.name not in BRANCHES:
                yield name(op.results[0]), shapes[0], tuple(map(name, op.operands))


def names_in_hlo(text):
    try:
        from jaxlib import _hlo
    except ImportError:  # before JAX 0.9 it is part of the other
        from jaxlib import _jax as _hlo

    names = {match[1]: match[2] for match in OP_NAME.finditer(text)}
    dims = {match[1]: [int(size) for size in match[2].split(",") if size] for match in ARRAY.finditer(text)}
    for computation in _hlo.hlo_module_from_text(text).computations():
        for op in computation.instructions():
            if op.name in dims:
                operands = [None if PLUMBING.match(str(o.opcode)) else names.get(o.name) for o in op.operands()]
                yield names.get(op.name), dims[op.name], tuple(operands)


NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\(')
OP_NAME = re.compile(r'^ *(?:ROOT )?%?([\w.-]+) = .*op_name="([^"]*)"', re.MULTILINE)
BRANCHES = {"stablehlo.case", "stablehlo.if"}
PLUMBING = re.compile("get-tuple-element|parameter|copy|custom-call|constant", re.IGNORECASE)
ARRAY = re.compile(r"^ *(?:ROOT )?%?([\w.-]+) = \w+\[([\d,]*)\]", re.MULTILINE)


def misplaced(text, hlo):
    """Names that are on other operations than XLA has them on, and how many were compared."""
    theirs = {}
    for name, shape, operands in names_in_hlo(hlo):
        theirs.setdefault((name, *shape), set()).add(operands)
    known = {name for name, *_ in theirs}
    ours = [(name, *shape, operands) for name, shape, operands in names_in_order(text) if name and name in known]
    return [each for each in ours if not any(map(partial(alike, each[-1]), theirs.get(each[:-1], ())))], len(ours)


def alike(ours, theirs):
    """Whether operands have the same names, as far as they have any."""
    pairs = list(zip(ours, theirs, strict=False))
    return len(ours) == len(theirs) and all(not one or not other or one == other for one, other in pairs)


def main(folder, *functions):
    load(folder)
    from _shardscope.capture.protocol import workspace
    from _shardscope.capture.protocol.request import Request
    from _shardscope.capture.worker import dumped, provenance
    from _shardscope.capture.worker.inputs import arguments, callables, resolve

    compared = 0
    for function in functions:
        resolve.prepare_path(function)
        found = resolve.resolve(function)
        call = callables.trace(found.function, *arguments.find_arguments(Request(function), found))
        lowered = call.traced.lower()
        with tempfile.TemporaryDirectory() as folder:
            lowered.compile(compiler_options=workspace.compiler_options(folder))
            files = [path.read_bytes() for path in workspace.find_propagation(folder)]
            stages = workspace.read_stages(folder)
        text = lowered.as_text(debug_info=True)
        made = provenance.propagate(text.encode(), "origins steps", dumped.Dump(*files))
        wrong, count = misplaced(made, stages["hlo-before"].decode())
        compared += count
        if wrong or in_order(made) != in_order(stages["sdy"]):
            print("differ from the dump", function, wrong)
            continue
        theirs = shardings(stages["sdy"])
        ours = shardings(provenance.propagate(text.encode(), "origins steps"))
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
    print("names", compared)


main(*sys.argv[1:])
