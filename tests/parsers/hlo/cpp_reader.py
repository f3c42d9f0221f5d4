"""What XLA's own parser sees in HLO texts; a child process of the tests, because it may abort.

    python cpp_reader.py < PATHS (one a line)

For each text two lines of JSON go to standard output: {"path", "started"}, then {"path", "error"} or {"path",
"computations"}, these being [name, instructions], an instruction [name, opcode, type, operands, groups]: the type as
printed without layouts and remarks, the groups of its `replica_groups` written out, or null.
"""

import json
import re
import sys

from jaxlib import _hlo as xla

REMARK = re.compile(r"/\*.*?\*/")
GROUPS = re.compile(r"replica_groups=(\{(?:\{[\d,]*\},?)*\})")


def printed(module, **settings):
    """The lines of a module's instructions, printed by XLA, by computation and name."""
    options = xla.HloPrintOptions.fingerprint()
    plain = {
        "canonicalize_instruction_names": False,
        "canonicalize_computations": False,
        "print_ids": True,
        "print_percent": True,
        "print_operand_shape": False,
        "print_metadata": False,
        "print_backend_config": False,
        "include_layout_in_shapes": False,
    }
    for name, value in (plain | settings).items():
        setattr(options, name, value)
    lines = {}
    for line in module.to_string(options).splitlines():
        if line.endswith("{") and not line.startswith(" "):
            current = lines[line.removeprefix("ENTRY ").removeprefix("%").partition(" ")[0]] = {}
        elif line.startswith("  ") and not line.startswith("   "):
            name, _, rest = line.strip().removeprefix("ROOT ").removeprefix("%").partition(" = ")
            current[name] = rest
    return lines


def read(module):
    """The computations of a module; a type is what is printed with types and not without.

    For an asynchronous instruction in one line (`all-to-all-start`) the parser makes a computation of its own, which
    the printer folds into that line again: it is not in the text.
    """
    with_types, without_types = printed(module), printed(module, print_result_shape=False)
    for computation in module.computations():
        if computation.name not in with_types:
            continue
        rows = []
        for instruction in computation.instructions():
            line = with_types[computation.name][instruction.name]
            rest = without_types[computation.name][instruction.name]
            type_text = REMARK.sub("", line.removesuffix(rest)).strip()
            groups = GROUPS.search(rest)
            rows.append(
                [
                    instruction.name,
                    rest.partition("(")[0],
                    type_text,
                    [operand.name for operand in instruction.operands()],
                    json.loads(groups[1].translate(str.maketrans("{}", "[]"))) if groups else None,
                ]
            )
        yield computation.name, rows


for line in sys.stdin:
    path = line.rstrip("\n")
    print(json.dumps({"path": path, "started": True}), flush=True)
    with open(path, encoding="utf-8") as text:
        try:
            found = list(read(xla.hlo_module_from_text(text.read())))
        except Exception as error:
            print(json.dumps({"path": path, "error": repr(error)[:500]}), flush=True)
        else:
            print(json.dumps({"path": path, "computations": found}), flush=True)
