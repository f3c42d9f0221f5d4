"""The origin of each collective of a compiled stage, its pass, module and line, and the CPU backend's own ways.

After partitioning, XLA's CPU backend makes `f32` of what collectives move as `bf16`, wider floats of 8-bit ones, and
32-bit integers of 16-bit ones that are summed (its passes `float-normalization-…` and `all-reduce-promotion`). TPUs
and GPUs send the types of the partitioned program, and compute as fusions, or sort, what is a call of a library here,
for which the partitioner gathers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ..catalog.custom_calls import OF_CPUS
from ..catalog.spellings import BECOMES, COMBINED, KIND_OF
from ..correspondence.numbers import tags_in
from ..correspondence.partitioned import CUSTOM
from ..correspondence.parts import Part
from ..dataflow.hlo import HloValue, hlo_flow
from ..dataflow.meaning import SAME
from ..dataflow.walks import forward
from ..ir.derived import derived
from ..ir.name_scopes import common_start, is_path, last_components, merged_parts, module_of_name, scopes
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType
from ..report import REQUESTED, WRITTEN, Collective, CollectivePart, Origin, Pass, SourcePosition
from ..report.spelled import argument_of
from ..units import bits_of, grouped, known_sum
from .context import AnalysisContext
from .operations import OperationFacts, facts_of
from .participants import Participants
from .users import passes_served

T = TypeVar("T")

ORDER: tuple[Origin, ...] = ("mixed", "unknown", "user", "explicit", "autodiff", "partitioner", "compiler")
"""The origin of something whose parts have several is the first of them."""


def with_authors(
    stage: ParsedStage, found: Sequence[Collective], all_parts: Iterable[Part], context: AnalysisContext
) -> tuple[Collective, ...]:
    """The collectives of a stage of HLO whose operations have numbers, by the twins that their parts have."""
    has_twins = context.partitioned is not None
    parts = grouped((part.of.span.start, part) for part in all_parts)
    used_in = passes_served(stage, found, differentiated=context.differentiated)
    authored = []
    for each in found:
        mine = [_with_pass(part, used_in) for part in parts.get(each.span.start, ())]
        typed, mine = in_own_types(each, mine) if context.is_on_cpu else (each, mine)
        one = _with_author(stage, typed, mine, has_twins, context)
        is_requested = one.origin in REQUESTED or any(part.twin is not None and part.twin.serves for part in mine)
        authored.append(with_cpu_call(stage, one) if context.is_on_cpu and not is_requested else one)
    return tuple(authored)


def _with_pass(part: Part, used_in: Mapping[tuple[str, str], Pass]) -> Part:
    """A part with a twin that knows its pass: by what uses the part, where what uses the twin does not say."""
    known = used_in.get((part.of.computation, part.of.name), "unknown") if part.alone else "unknown"
    if part.twin is not None and part.twin.used_in == "unknown" and known != "unknown":
        return replace(part, twin=replace(part.twin, used_in=known))
    return part


def _with_author(
    stage: ParsedStage, collective: Collective, parts: Sequence[Part], has_twins: bool, context: AnalysisContext
) -> Collective:
    if not any(part.piece is None or part.twin is not None for part in parts):
        return replace(collective, module=module_of(collective))
    known = [_known(stage, part, has_twins, len(parts) == 1, context) for part in parts]
    direction = agreed(part.direction for part in known)
    source = collective.source
    twin = parts[0].twin if len(parts) == 1 else None
    if twin is not None and twin.serves and known[0].source.stack:
        source = known[0].source  # its own is that of the value which is moved
    elif len(known) == 1 and _continues(known[0].source, source):
        source = replace(known[0].source, confidence=source.confidence)
    elif len(known) > 1 and (largest := max(known, key=lambda part: part.type.bytes or 0)).source.stack:
        source = largest.source  # its own is that of any of them, of a single number perhaps
    elif not source.stack or (source.confidence != "exact" and known[0].source.confidence == "exact"):
        source = known[0].source
    return replace(
        collective,
        origin=_of_all({part.origin for part in known}),
        direction=direction or "unknown",
        source=source,
        module=common_start(part.module for part in known),
        argument=known[0].argument if len(known) == 1 else None,
        parts=tuple(known) if len(known) > 1 else (),
        averages=all(part.averages for part in known),
        of_gradients=all(part.of_gradients for part in known),
    )


def _of_all(origins: set[Origin]) -> Origin:
    """The origin of what has parts of these: the one that says most where all were requested, or none was."""
    ordered = sorted(origins, key=ORDER.index)
    return "mixed" if not REQUESTED.isdisjoint(origins) and origins - REQUESTED else ordered[0]


def module_of(collective: Collective) -> tuple[str, ...]:
    """The module in its name: that of its path, or of the argument that it is."""
    argument = argument_of(collective)
    return _scopes(collective.op_name) or (() if argument is None else module_of_name(argument))


def _scopes(op_name: str | None) -> tuple[str, ...]:
    if op_name is None or not is_path(op_name):
        return ()
    return common_start(scopes(part.rpartition("/")[0]) for part in merged_parts(op_name))


def _known(stage: ParsedStage, part: Part, has_twins: bool, is_whole: bool, context: AnalysisContext) -> CollectivePart:
    """Return the author and pass of a part, as far as known; one that `is_whole` is the only part of its collective."""
    collective, twin = part.of, part.twin
    if twin is None and part.piece is not None:
        return part.piece
    numbers = tags_in(stage, collective.span) if twin is None else twin.serves or twin.numbers
    facts = [each for number in numbers if (each := facts_of(context.lowered, number)) is not None]
    direction = agreed(each.direction for each in facts)
    origin = _origin(collective, part, facts, has_twins)
    if origin == "partitioner" and twin is not None and twin.used_in != "unknown":
        direction = twin.used_in
    argument = (argument_of(collective) if is_whole else None) or agreed(each.argument for each in facts)
    module = (_scopes(collective.op_name) if is_whole else ()) or common_start(each.module for each in facts)
    source = facts[0].source if facts else SourcePosition()
    if not part.exact and source.stack:
        source = replace(source, confidence="shape")
    return CollectivePart(
        part.type,
        source,
        part.piece.op_name if part.piece is not None else collective.op_name if is_whole else None,
        origin,
        (collective.direction if is_whole else "unknown") if direction in (None, "unknown") else direction,
        module or (() if argument is None else module_of_name(argument)),
        argument,
        bool(facts) and all(each.averages for each in facts),
        bool(facts) and all(each.of_gradients for each in facts),
    )


def _origin(collective: Collective, part: Part, facts: Sequence[OperationFacts], has_twins: bool) -> Origin:
    if collective.origin in WRITTEN and CUSTOM in last_components(collective.op_name or ""):
        return collective.origin
    by_name: Origin = "unknown" if collective.origin in WRITTEN else collective.origin
    written = [each for each in facts if each.kind == collective.kind or (each.kind, collective.kind) in BECOMES]
    if written:
        return _of_all({each.origin for each in written})
    if part.twin is not None:
        author = agreed(each.origin for each in facts if each.origin not in WRITTEN) or "partitioner"
        # Of what JAX lowers to a function of its own, as a cumsum, no equation is known.
        return by_name if author == "unknown" else author
    return "compiler" if has_twins else by_name


def agreed(values: Iterable[T]) -> T | None:
    """The value that all are; None where they differ, or there is none."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _continues(longer: SourcePosition, shorter: SourcePosition) -> bool:
    mine, other = ([(frame.file, frame.line) for frame in each.stack] for each in (longer, shorter))
    return 0 < len(other) < len(mine) and mine[: len(other)] == other


def in_own_types(collective: Collective, parts: list[Part]) -> tuple[Collective, list[Part]]:
    """A collective compiled for CPUs in the types that it has out of the partitioner; its parts get theirs, too."""
    twins = [(part, part.twin.dtype) for part in parts if part.twin is not None]
    widened = [(part, dtype) for part, dtype in twins if _is_narrower(dtype, part.type.dtype)]
    if not widened:
        return collective, parts
    wide = tuple(dict.fromkeys((dtype, part.type.dtype) for part, dtype in widened))
    narrow = {part.index: dtype for part, dtype in widened}
    operands, results = (
        _narrowed(collective, types, narrow) for types in (collective.operand_types, collective.result_types)
    )
    bytes_in, bytes_out = (known_sum(type.bytes for type in types) for types in (operands, results))
    size = Participants(None, collective.groups, collective.pairs).group_size
    own = [replace(part, type=replace(part.type, dtype=narrow.get(part.index, part.type.dtype))) for part in parts]
    narrowed = replace(
        collective,
        operand_types=operands,
        result_types=results,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[collective.kind].wire_bytes(size, bytes_in, bytes_out),
        widened=wide,
    )
    return narrowed, own


def _is_narrower(dtype: str, other: str) -> bool:
    bits, wide = bits_of(dtype), bits_of(other)
    return bits is not None and wide is not None and bits < wide


def _narrowed(collective: Collective, types: Iterable[ArrayType], narrow: dict[int, str]) -> tuple[ArrayType, ...]:
    """Parts are numbered as results are where several are combined; else all are of the first one's dtype."""
    if collective.kind not in COMBINED:
        return tuple(replace(type, dtype=narrow[0]) for type in types)
    return tuple(replace(type, dtype=narrow.get(index, type.dtype)) for index, type in enumerate(types))


def with_cpu_call(stage: ParsedStage, collective: Collective) -> Collective:
    """A collective compiled for CPUs, which nobody requested, with the custom call that is its only user.

    Sums are of what is computed: other backends need them as well.
    """
    flow = hlo_flow(stage) if _has_cpu_calls(stage) and not KIND_OF[collective.kind].reduces else None
    made = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or made is None:
        return collective
    reach = forward(flow, [HloValue(made)], SAME)
    targets = {use.instruction.call_target for use in reach.ends} if reach.is_all else set()
    return replace(collective, cpu_call=targets.pop()) if len(targets) == 1 and targets <= OF_CPUS else collective


@derived
def _has_cpu_calls(stage: ParsedStage) -> bool:
    calls = () if stage.hlo is None else stage.hlo.with_opcode({"custom-call"})
    return any(each.call_target in OF_CPUS for each in calls)
