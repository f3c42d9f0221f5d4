"""Operations that can be told apart to the end: each gets a number, in the one place that the compiler never touches.

The name in an operation's location becomes `op_name` in HLO, which every pass hands on from an instruction to what it
replaces it by. So a component `~op17~` in front of a name's last one tells, in every stage, which operation of the
StableHLO an instruction comes from, where names and lines alone cannot: in unrolled layers, and for what the
partitioner inserts. XLA makes nothing of these names, and what it compiles does not change. `inspector/capture/tags.py`
takes them out of the texts again.
"""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from .equation_numbers import EquationNumbers
from .ref_names import Names, named

# MLIR's Python bindings make locations but do not read them. What they print is regular: an alias for each location.
_ALIAS = re.compile(r'^(#loc\d*) = loc\("((?:(?:[^"\\]|\\.)*/)?)((?:[^"\\/]|\\.)*)"(.*)\)$', re.MULTILINE)
_USE = re.compile(r"loc\((#loc\d*)\)$", re.MULTILINE)


def tag(module: Any, names: Names | None = None, equations: EquationNumbers | None = None) -> str | None:
    """Number the operations of a lowered module in place; says what went wrong if that could not be done.

    `names` are given to the arguments and results of its main function that have none. The numbers of `equations` are
    taken out.

    Operations cannot be given another location in every JAX, so those of a module that is read from the numbered text
    take their places.
    """
    try:
        text = module.operation.get_asm(enable_debug_info=True)
        text = text if names is None else named(text, names)
        with module.context, ir.Location.unknown():
            twin = ir.Module.parse(_numbered(text, equations or EquationNumbers()))
        replaced = [operation.operation for operation in module.body.operations]
        for operation in list(twin.body.operations):
            operation.operation.move_before(replaced[0])
        for operation in replaced:
            operation.erase()
    except (AttributeError, TypeError, ValueError, IndexError, ir.MLIRError) as error:
        return f"instructions cannot be traced to single operations in this JAX: {error}"
    return None


def _numbered(text: str, equations: EquationNumbers) -> str:
    """The same module, each operation with a location of its own."""
    names = {alias: (path, last, rest) for alias, path, last, rest in _ALIAS.findall(text)}
    definitions: list[str] = []

    def own(use: re.Match[str]) -> str:
        if use[1] not in names:
            return use[0]
        path, last, rest = names[use[1]]
        number = len(definitions)
        name = equations.taken_out(number, path + last)
        if not name:
            return f"loc{rest}" if rest else "loc(unknown)"
        path, slash, last = name.rpartition("/")
        path += slash
        definitions.append(f'#own{number} = loc("{path}~op{number}~/{last}"{rest})')
        return f"loc(#own{number})"

    body = equations.without(_USE.sub(own, text))
    return "\n".join((body, *definitions, ""))
