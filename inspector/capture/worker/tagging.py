"""Operations that can be told apart to the end: each gets a number, in the one place that the compiler never touches.

The name in an operation's location becomes `op_name` in HLO, which every pass hands on from an instruction to what it
replaces it by. So a component `~op17~` in front of a name's last one tells, in every stage, which operation of the
StableHLO an instruction comes from, where names and lines alone cannot: in unrolled layers, and for what the
partitioner inserts. XLA makes nothing of these names, and what it compiles does not change. `inspector/capture/tags.py`
takes them out of the texts again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ...catalog.spellings import is_kernel
from . import modules
from .equation_numbers import EquationNumbers

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
        text = modules.text_of(module)
        text = text if names is None else named(text, names)
        with module.context, ir.Location.unknown():
            twin = ir.Module.parse(_numbered(text, equations or EquationNumbers()))
            if modules.ELIDED in text:
                modules.put_back_constants(twin, module)
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
        definitions.append(f'#own{number} = loc("{_marked(name, number)}"{rest})')
        return f"loc(#own{number})"

    body = equations.without(_USE.sub(own, text))
    return "\n".join((body, *definitions, ""))


def _marked(name: str, number: int) -> str:
    """The name of an operation with its number in front of the last component.

    XLA calls the instruction of a kernel by the component in front of that: the number goes in front of both, and is
    left out where there are no two.
    """
    path, slash, last = name.rpartition("/")
    if is_kernel(last):
        path, slash, caller = path.rpartition("/")
        last = f"{caller}/{last}" if caller else ""
    return f"{path}{slash}~op{number}~/{last}" if last else name


_MAIN = re.compile(r"^ *func\.func public @main\(.*$", re.MULTILINE)
_ARGUMENT = re.compile(r'(%arg(\d+): (?:[^%"]|"(?:[^"\\]|\\.)*")*? )loc\((?:unknown|#loc|"(?:[^"\\]|\\.)*")\)')
_RESULT = re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"')


class Names(NamedTuple):
    """Names of each argument and result of a lowered module; empty where there is none."""

    arguments: Sequence[str]
    results: Sequence[str]


def names_of(lowered: Any, arguments: Sequence[str], results: Sequence[str]) -> Names | None:
    """The names in a lowered program, from those of the function's own arguments and results.

    What wraps a jitted function, as `nnx.jit` and `eqx.filter_jit` do, hands on the user's arguments in a tree of its
    own, by which JAX names them. To lower a Ref, the mutable array of `jax.new_ref`, JAX makes an argument and one more
    result of it, and loses the names of all of them on the way. Which is which, it keeps in a private attribute.

    None where JAX does not tell. A Ref that the function closes over has no name.
    """
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", None) or {}
    mutated, kept, every = (compile_args.get(key) for key in ("mut", "kept_var_idx", "all_args_info"))
    if kept is None or (mutated is not None and not (hasattr(mutated, "in_mut") and hasattr(mutated, "out_mut"))):
        return None
    constants = max(0, len(getattr(every, "in_avals", arguments)) - len(arguments))
    given = [*[""] * constants, *arguments]
    held = [given[number] for number in sorted(kept) if number < len(given)]
    if mutated is None:
        return Names(held, results)
    held += [""] * len(mutated.in_mut)
    own = iter(results)
    left = ((next(own, "") if number is None else _afterwards(held[number])) for number in mutated.out_mut)
    return Names(held, list(left))


def named(text: str, names: Names) -> str:
    """A module's text with names for the arguments and results of its main function.

    They go where JAX puts others: an argument's into its location, a result's into `jax.result_info`.
    """

    def signature(line: re.Match[str]) -> str:
        inputs, arrow, outputs = line[0].partition(" -> ")
        if len(re.findall(r"%arg\d+:", inputs)) != len(names.arguments):
            return line[0]
        inputs = _ARGUMENT.sub(lambda one: _located(one[1], names.arguments[int(one[2])]) or one[0], inputs)
        if len(_RESULT.findall(outputs)) == len(names.results):
            rest = iter(names.results)
            outputs = _RESULT.sub(lambda one: _told(next(rest)) or one[0], outputs)
        return f"{inputs}{arrow}{outputs}"

    return _MAIN.sub(signature, text)


def _afterwards(name: str) -> str:
    return f"{name} afterwards" if name else ""


def _located(argument: str, name: str) -> str:
    return f"{argument}loc({_quoted(name)})" if name else ""


def _told(name: str) -> str:
    return f"jax.result_info = {_quoted(name)}" if name else ""


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
