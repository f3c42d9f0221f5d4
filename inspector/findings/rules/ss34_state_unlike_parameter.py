"""SS34: optimizer state that devices hold in copies, or in other blocks, while its parameter is sharded."""

from __future__ import annotations

from collections.abc import Iterator

from ...communication.axis_use import argument_kinds
from ...report import Finding, FindingPlace, Report, ShardedValue
from ...units import format_bytes, plural, with_more
from ..fixes.jits import without_jits
from ..rule import Rule, advice, finding

Pair = tuple[ShardedValue, ShardedValue]
"""A part of the state, and its parameter."""


def check(report: Report) -> Iterator[Finding]:
    """The state that lacks axes of its parameter, or has them in other dimensions, by these axes."""
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for _, state, parameter in argument_kinds(report.program, arguments):
        if parameter is not None and (missing := _missing(state, parameter)):
            groups.setdefault(missing, []).append((state, parameter))
    for axes, pairs in groups.items():
        yield _found(report, axes, sorted(pairs, key=lambda pair: -_extra(*pair)))


def _missing(state: ShardedValue, parameter: ShardedValue) -> tuple[str, ...]:
    if state.sharding is None or parameter.sharding is None or state.sharding.mesh != parameter.sharding.mesh:
        return ()
    pairs = zip(state.sharding.dims, parameter.sharding.dims, strict=False)
    return tuple(axis.name for own, wanted in pairs for axis in wanted.axes if axis not in own.axes)


def _extra(state: ShardedValue, parameter: ShardedValue) -> int:
    """Bytes of a device that it would not hold if the state were sharded as its parameter."""
    held, needed = state.local_type, parameter.local_type
    return max(0, ((held.bytes or 0) if held else 0) - ((needed.bytes or 0) if needed else 0))


def _found(report: Report, axes: tuple[str, ...], pairs: list[Pair]) -> Finding:
    state, parameter = pairs[0]
    names = with_more(state.name, len(pairs))
    extra = sum(_extra(*pair) for pair in pairs)
    over = ", ".join(axes)
    differs = f"not sharded over {over}, as {parameter.name} is: {format_bytes(extra)} more per device"
    if not extra:
        differs = f"sharded as {state.spec}, but {parameter.name} as {parameter.spec}"
    return finding(
        RULE,
        FindingPlace(state.name, state.source, state.stage, state.span),
        f"{names}: {differs}",
        confidence="proved",
        subject=state.name,
        axes=axes,
        evidence=(
            ("state", ", ".join(f"{each.name} {each.spec}" for each, _ in pairs[:4])),
            ("parameters", ", ".join(f"{each.name} {each.spec}" for _, each in pairs[:4])),
            ("per device", f"{format_bytes(extra)} of copies in {plural(len(pairs), 'array')}"),
        ),
        fixes=(
            *without_jits(report),
            *advice(f"make it with the parameter's sharding: jax.device_put({state.name}, {parameter.name}.sharding)"),
        ),
    )


RULE = Rule(
    id="SS34",
    slug="state-unlike-parameter",
    severity="warning",
    finds="Optimizer state that is not sharded over an axis over which its parameter is, or not in the same dimension.",
    why="Moments are as large as parameters, and two of them twice as large: FSDP saves memory only if they are"
    " sharded, too; in other blocks, each step reshards them. jit(optimizer.init) returns zeros that depend on no"
    " parameter, which come out whole.",
    proof="The shardings of both after propagation. A part of the state has the type of its parameter, the end of its"
    " path, and comes back updated by the gradient, as the parameter does.",
    faulty="""state = jax.jit(optimizer.init)(params)""",
    repaired="""state = jax.jit(optimizer.init, out_shardings=shardings)(params)""",
    check=check,
    tries="the state without the jit that makes it, or as it was made where it is placed anew,"
    " and the parameter's spec where one of the state is written",
    saves="memory",
    is_observation=True,
)
