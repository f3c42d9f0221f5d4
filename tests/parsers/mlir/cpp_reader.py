"""What MLIR's own parser sees in MLIR texts; a child process of the tests, because it may abort.

    python cpp_reader.py < PATHS (one a line)

For each text two lines of JSON go to standard output: {"path", "started"}, then {"path", "error"} or {"path",
"operations"}, these in text order, an outer one before those in it: {"name", "inside", "operands", "operand_types",
"results", "arguments", "attributes", "location"}.

`inside` is where it is: the number of the operation around it, of that one's region and of the region's block; null
outside of all. Operands are where they come from: [number of the operation, number of the result], or [number of the
operation, region, block, number of the argument] for the argument of a block. `arguments` are the types of the
arguments of each block of each region. Attributes are as MLIR prints them, except for lists of integers, which are
{"shape", "values"}; those of a complex constant are null.
"""

import json
import sys

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

INTEGERS = ("replica_groups", "source_target_pairs")
MAX_CHARACTERS = 20_000
"""Characters of an attribute that are printed; constants may be megabytes long."""


def blocks_in(operation):
    """The operation's blocks with their places in it."""
    for region_number, region in enumerate(operation.regions):
        for block_number, block in enumerate(region.blocks):
            yield region_number, block_number, block


def in_order(module):
    """All operations with their places, an outer one before those in it."""
    waiting = [(module, None)]
    number = 0
    while waiting:
        operation, inside = waiting.pop()
        yield operation, inside
        inner = []
        for region_number, block_number, block in blocks_in(operation):
            inner += [(each.operation, (number, region_number, block_number)) for each in block.operations]
        waiting += reversed(inner)
        number += 1


def printed(name, attribute):
    if name in INTEGERS:
        try:
            elements = ir.DenseIntElementsAttr(attribute)
        except ValueError:
            return str(attribute)
        return {"shape": ir.ShapedType(attribute.type).shape, "values": list(elements)}
    return str(attribute)[:MAX_CHARACTERS]


def read(module):
    operations = list(in_order(module))
    places = {}
    for number, (operation, _) in enumerate(operations):
        places |= {result: (number, index) for index, result in enumerate(operation.results)}
        for region_number, block_number, block in blocks_in(operation):
            arguments = enumerate(block.arguments)
            places |= {argument: (number, region_number, block_number, index) for index, argument in arguments}
    for operation, inside in operations:
        results = [str(result.type) for result in operation.results]
        # jaxlib aborts the process when it is asked for a constant of complex numbers.
        is_complex = operation.name.endswith(".constant") and "complex<" in results[0]
        attributes = None if is_complex else map(operation.attributes.__getitem__, range(len(operation.attributes)))
        yield {
            "name": operation.name,
            "inside": inside,
            "operands": [places[operand] for operand in operation.operands],
            "operand_types": [str(operand.type) for operand in operation.operands],
            "results": results,
            "arguments": [
                [[str(argument.type) for argument in block.arguments] for block in region.blocks]
                for region in operation.regions
            ],
            "attributes": attributes and {each.name: printed(each.name, each.attr) for each in attributes},
            "location": str(operation.location),
        }


for line in sys.stdin:
    path = line.rstrip("\n")
    print(json.dumps({"path": path, "started": True}), flush=True)
    with open(path, "rb") as text, make_ir_context() as context:
        try:
            found = list(read(ir.Module.parse(text.read()).operation))
        except Exception as error:
            print(json.dumps({"path": path, "error": repr(error)[:2000]}), flush=True)
        else:
            print(json.dumps({"path": path, "operations": found}), flush=True)
