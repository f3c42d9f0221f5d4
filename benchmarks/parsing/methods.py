"""The readings that are timed.

Each takes a text and returns a function that reads it once and says how many things it found. A method runs in a
process of its own and imports what it needs only then, so that its memory is its own too.
"""

from __future__ import annotations

from collections.abc import Callable

Method = Callable[[bytes], Callable[[], int]]

COLLECTIVES = frozenset(
    kind + half
    for kind in (
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    )
    for half in ("", "-start", "-done")
)

MLIR_COLLECTIVES = frozenset(
    f"stablehlo.{kind}"
    for kind in (
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "reduce_scatter",
    )
)


def hlo_cpp(text: bytes) -> Callable[[], int]:
    """XLA's own parser (C++)"""
    from jaxlib import _hlo

    # With a schedule it aborts the process on TPU modules that hand work to a SparseCore.
    decoded = text.decode().replace(", is_scheduled=true", "", 1)
    return lambda: len(_hlo.hlo_module_from_text(decoded).computations())


def hlo_cpp_list(text: bytes) -> Callable[[], int]:
    """XLA's own parser, then name, opcode and type of each instruction from Python"""
    from jaxlib import _hlo

    decoded = text.decode().replace(", is_scheduled=true", "", 1)

    def run() -> int:
        module = _hlo.hlo_module_from_text(decoded)
        return len([(i.name, i.opcode, i.shape) for c in module.computations() for i in c.instructions()])

    return run


def hlo_open(text: bytes) -> Callable[[], int]:
    """open: every computation, by name"""
    from shardscope.parsers.hlo import parse_module
    from shardscope.parsers.source import Source

    return lambda: len([c.name for c in parse_module(Source("text", text)).computations])


def hlo_rows(text: bytes) -> Callable[[], int]:
    """every instruction: name, type and opcode"""
    from shardscope.parsers.hlo import parse_module
    from shardscope.parsers.source import Source

    return lambda: len(parse_module(Source("text", text)).rows())


def hlo_types(text: bytes) -> Callable[[], int]:
    """the same, every distinct type parsed"""
    from shardscope.parsers.hlo import parse_module, parse_type
    from shardscope.parsers.source import Source

    def run() -> int:
        rows = parse_module(Source("text", text)).rows()
        return len({parse_type(type_text) for type_text in {kind[0] for kind in rows.kinds}})

    return run


def hlo_collectives(text: bytes) -> Callable[[], int]:
    """every collective: computation, type, groups or pairs, op_name, stack frame"""
    from shardscope.parsers.hlo import parse_module
    from shardscope.parsers.source import Source

    def run() -> int:
        found = []
        for each in parse_module(Source("text", text)).with_opcode(COLLECTIVES):
            origin = each.metadata
            operation = (each.computation.name, each.name, each.opcode, each.type)
            devices = (each.replica_groups, each.source_target_pairs)
            found.append((operation, devices, origin and (origin.op_name, origin.stack_frame_id)))
        return len(found)

    return run


def hlo_attributes(text: bytes) -> Callable[[], int]:
    """every attribute of every instruction, one by one"""
    from shardscope.parsers.hlo import parse_module
    from shardscope.parsers.source import Source

    def run() -> int:
        computations = parse_module(Source("text", text)).computations
        return sum(len(each.attributes) for computation in computations for each in computation.instructions)

    return run


def hlo_problems(text: bytes) -> Callable[[], int]:
    """every instruction checked for what is wrong with it"""
    from shardscope.parsers.hlo import parse_module
    from shardscope.parsers.source import Source

    return lambda: len(parse_module(Source("text", text)).problems)


def mlir_cpp(text: bytes) -> Callable[[], int]:
    """MLIR's own parser and verifier (C++)"""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    decoded = text.decode()

    def run() -> int:
        with make_ir_context():
            return len(list(ir.Module.parse(decoded).body.operations))

    return run


def mlir_cpp_list(text: bytes) -> Callable[[], int]:
    """MLIR's own parser, then name and result types of each operation from Python"""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    decoded = text.decode()

    def run() -> int:
        with make_ir_context():
            found = []

            def see(operation: ir.Operation) -> ir.WalkResult:
                found.append((operation.name, [str(result.type) for result in operation.results]))
                return ir.WalkResult.ADVANCE

            ir.Module.parse(decoded).operation.walk(see)
            return len(found)

    return run


def mlir_open(text: bytes) -> Callable[[], int]:
    """open: every function, by name"""
    from shardscope.parsers.mlir import parse_module
    from shardscope.parsers.source import Source

    return lambda: len([f.name for f in parse_module(Source("text", text)).functions])


def mlir_counts(text: bytes) -> Callable[[], int]:
    """how many operations there are of each name"""
    from shardscope.parsers.mlir import parse_module
    from shardscope.parsers.source import Source

    return lambda: sum(parse_module(Source("text", text)).opcode_counts().values())


def mlir_values(text: bytes) -> Callable[[], int]:
    """every value of every function: name, types, sharding"""
    from shardscope.parsers.mlir import parse_module
    from shardscope.parsers.mlir.rows import FunctionRows
    from shardscope.parsers.source import Source

    return lambda: sum(len(FunctionRows(function).rows) for function in parse_module(Source("text", text)).functions)


def mlir_shardings(text: bytes) -> Callable[[], int]:
    """every sharding of an argument, and every constraint and collective with its location"""
    from shardscope.parsers.mlir import frames, parse_module
    from shardscope.parsers.source import Source

    def run() -> int:
        module = parse_module(Source("text", text))
        found: list[object] = [each.annotations.sharding for f in module.functions for each in f.arguments]
        for each in module.operations(MLIR_COLLECTIVES | {"sdy.sharding_constraint"}):
            devices = (each.replica_groups, each.source_target_pairs, each.annotations.target)
            found.append((each.name, each.result_types, devices, frames(each.location)))
        return len(found)

    return run


def mlir_problems(text: bytes) -> Callable[[], int]:
    """every operation checked for what is wrong with it"""
    from shardscope.parsers.mlir import parse_module
    from shardscope.parsers.source import Source

    return lambda: len(parse_module(Source("text", text)).problems)


METHODS: dict[str, tuple[Method, ...]] = {
    ".hlo": (
        hlo_cpp,
        hlo_cpp_list,
        hlo_open,
        hlo_rows,
        hlo_types,
        hlo_collectives,
        hlo_attributes,
        hlo_problems,
    ),
    ".mlir": (mlir_cpp, mlir_cpp_list, mlir_open, mlir_counts, mlir_values, mlir_shardings, mlir_problems),
}
"""What is timed on a kind of file; the first of each is what the others are compared with."""
