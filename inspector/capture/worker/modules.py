"""Modules of MLIR: reading them, running passes of jaxlib's on them, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo
from jaxlib.mlir.passmanager import PassManager

from ..protocol.workspace import MAX_ELEMENTS


def context() -> ir.Context:
    """A context that knows all dialects of JAX's."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, stablehlo, chlo):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    stablehlo.register_stablehlo_passes()
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    return context


def run(module: ir.Module, *passes: str) -> None:
    """Run passes on a module; MLIR's verifier is off."""
    manager = PassManager.parse(f"builtin.module({','.join(passes)})")
    manager.enable_verifier(False)
    manager.run(module.operation)


ELIDED = "dense_resource<__elided__>"
"""The text that MLIR prints in place of the values of larger constants."""


def text_of(module: ir.Module) -> str:
    """A module with locations, without the values of large constants: text and parsing of these take 0.5 s for 1 MB."""
    return str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=MAX_ELEMENTS))


def put_back_constants(elided: ir.Module, module: ir.Module) -> None:
    """Give the operations that were read from a module's text the values that are left out there."""
    alike = zip(*(find(each.operation, lambda _: True) for each in (elided, module)), strict=True)
    for operation, whole in alike:
        for name, attribute in attributes_of(operation).items():
            if _is_elided(attribute):
                operation.attributes[name] = whole.attributes[name]


def _is_elided(attribute: ir.Attribute) -> bool:
    try:
        return str(ir.DenseResourceElementsAttr(attribute)).startswith(ELIDED)
    except ValueError:
        return False


def pass_of(name: str, options: str = "") -> str:
    """Return this jaxlib's spelling of a pass: some moved from functions to modules, some had no options at first."""
    plain = name
    full = f"{name}{{{options}}}" if options else name
    for spelling in (full, f"func.func({full})", plain, f"func.func({plain})"):
        try:
            PassManager.parse(f"builtin.module({spelling})")
        except Exception:  # MLIRError or ValueError, as the version has it
            continue
        return spelling
    raise ValueError(f"this jaxlib has no pass {name}")


def pass_if_there(name: str) -> tuple[str, ...]:
    """A pass that the first jaxlibs with Shardy do without."""
    try:
        return (pass_of(name),)
    except ValueError:
        return ()


CALLED = "shardscope.called"
"""The attribute of operations from called functions: the locations of the calls, innermost first, by `inline_calls`."""


def inline_calls(module: ir.Module, *, mark: bool = False) -> list[tuple[str, ...]]:
    """Put the body of each called function where it is called; the functions that stay behind are dead.

    Returns the locations of the calls around each body, innermost first; `mark` gives its operations their number.
    """
    functions = {op.attributes["sym_name"].value: op.operation for op in module.body.operations if is_function(op)}
    calls: list[tuple[ir.Operation, tuple[str, ...]]] = [(call, ()) for call in find(functions["main"], {"func.call"})]
    stacks: list[tuple[str, ...]] = []
    while calls:
        call, around = calls.pop()
        callee = functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value].clone()
        stack = (str(call.location), *around) if mark else ()
        calls += [(inner, stack) for inner in find(callee, {"func.call"})]
        body = callee.regions[0].blocks[0]
        if mark:
            for operation in find(callee, lambda name: name not in ("func.func", "func.return", "func.call")):
                operation.attributes[CALLED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(stacks))
            stacks.append(stack)
        for parameter, argument in zip(list(body.arguments), list(call.operands), strict=True):
            parameter.replace_all_uses_with(argument)
        *operations, terminator = list(body.operations)
        for operation in operations:
            operation.move_before(call)
        for result, value in zip(list(call.results), list(terminator.operands), strict=True):
            result.replace_all_uses_with(value)
        call.erase()
        callee.erase()
    return stacks


Side = Literal["arg_attrs", "res_attrs"]


def attributes(function: Any, side: Side) -> list[dict[str, ir.Attribute]]:
    """The attributes of each argument, or result, of a function."""
    if side in function.attributes:
        entries = ir.ArrayAttr(function.attributes[side])
        return [{each.name: each.attr for each in ir.DictAttr(entry)} for entry in entries]
    type = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return [{} for _ in (type.inputs if side == "arg_attrs" else type.results)]


def set_attributes(function: Any, side: Side, items: Iterable[Mapping[str, ir.Attribute]]) -> None:
    """Give each argument, or result, of a function its attributes."""
    function.attributes[side] = ir.ArrayAttr.get([ir.DictAttr.get(dict(each)) for each in items])


def body_of(function: Any) -> Any:
    """The block of a function."""
    return function.regions[0].blocks[0]


def main_of(module: ir.Module) -> ir.Operation:
    """The main function."""
    functions = [op for op in module.body.operations if is_function(op)]
    return next(op.operation for op in functions if op.attributes["sym_name"].value == "main")


def find(root: ir.Operation, names: Collection[str] | Callable[[str], bool]) -> list[ir.Operation]:
    """The operations of some names, anywhere in another one."""
    found: list[ir.Operation] = []
    root.walk(_collector(found, names if callable(names) else names.__contains__))
    return found


def _collector(found: list[ir.Operation], is_wanted: Callable[[str], bool]) -> Callable[[Any], Any]:
    def visit(operation: Any) -> Any:
        if is_wanted(operation.name):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    return visit


def is_function(operation: Any) -> bool:
    """Return whether an operation is a function."""
    return bool(operation.operation.name == "func.func")


def attributes_of(operation: Any) -> dict[str, ir.Attribute]:
    """The attributes of an operation; what iterates over them depends on the version."""
    names = [each if isinstance(each, str) else each.name for each in operation.attributes]
    return {name: operation.attributes[name] for name in names}
