"""SS34: optimizer state that devices hold in copies, or in other blocks, while its parameter is sharded."""

from __future__ import annotations

from collections.abc import Iterator

from ...communication.axis_use import argument_kinds
from ...report import Finding, FindingPlace, Report, ShardedValue
from ...units import format_bytes, plural, with_more
from ..fixes.calls import has_keyword
from ..fixes.jits import without_jits
from ..rule import Rule, advice, finding

Pair = tuple[ShardedValue, ShardedValue]
"""A part of the state, and its parameter, or another part of that one's state."""


def check(report: Report) -> Iterator[Finding]:
    """The state that lacks axes of its parameter or of its other parts, or has them in other dimensions, by these."""
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    groups: dict[tuple[str, tuple[str, ...]], list[Pair]] = {}
    states: dict[str, list[ShardedValue]] = {}
    for _, state, parameter in argument_kinds(report.program, arguments):
        if parameter is not None and (missing := _missing(state, parameter)):
            groups.setdefault(("parameters", missing), []).append((state, parameter))
        elif parameter is not None:
            states.setdefault(parameter.name, []).append(state)
    for members in states.values():  # where only the state is sharded, all parts of it are
        first = min(members, key=lambda each: _held(each) / (each.type.bytes or 1))
        for state in members:
            if _extra(state, first) and (missing := _missing(state, first)):
                groups.setdefault(("other parts", missing), []).append((state, first))
    for (others, axes), pairs in groups.items():
        yield _found(report, axes, sorted(pairs, key=lambda pair: -_extra(*pair)), others)


def _held(value: ShardedValue) -> int:
    return (value.local_type.bytes or 0) if value.local_type else 0


def _missing(state: ShardedValue, parameter: ShardedValue) -> tuple[str, ...]:
    if state.sharding is None or parameter.sharding is None or state.sharding.mesh != parameter.sharding.mesh:
        return ()
    pairs = zip(state.sharding.dims, parameter.sharding.dims, strict=False)
    return tuple(axis.name for own, wanted in pairs for axis in wanted.axes if axis not in own.axes)


def _extra(state: ShardedValue, parameter: ShardedValue) -> int:
    """Bytes of a device that it would not hold if the state were sharded as its parameter, which may be narrower."""
    sizes = [each.type.bytes or 1 for each in (state, parameter)]
    return max(0, _held(state) - _held(parameter) * sizes[0] // sizes[1])


def _found(report: Report, axes: tuple[str, ...], pairs: list[Pair], others: str) -> Finding:
    state, parameter = pairs[0]
    names = with_more(state.name, len(pairs))
    extra = sum(_extra(*pair) for pair in pairs)
    over = ", ".join(axes)
    differs = f"not sharded over {over}, as {parameter.name} is: {format_bytes(extra)} more per device"
    if not extra:
        differs = f"sharded as {state.spec}, but {parameter.name} as {parameter.spec}"
    fix = f"make it with that sharding: jax.device_put({state.name}, {parameter.name}.sharding)"
    if has_keyword(report.program, "in_shardings"):
        fix = f"request {parameter.spec} where it is made, in jit's in_shardings, and for what the step returns of it"
    return finding(
        RULE,
        FindingPlace(state.name, state.source, state.stage, state.span),
        f"{names}: {differs}",
        confidence="proved",
        subject=state.name,
        axes=axes,
        evidence=(
            ("state", ", ".join(f"{each.name} {each.spec}" for each, _ in pairs[:4])),
            (others, ", ".join(f"{each.name} {each.spec}" for _, each in pairs[:4])),
            ("per device", f"{format_bytes(extra)} of copies in {plural(len(pairs), 'array')}"),
        ),
        fixes=(
            *without_jits(report),
            *advice(fix),
        ),
    )


RULE = Rule(
    id="SS34",
    slug="state-unlike-parameter",
    severity="warning",
    finds="Optimizer state that is not sharded over an axis over which its parameter, or another part of its state, is,"
    " or not in the same dimension.",
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
