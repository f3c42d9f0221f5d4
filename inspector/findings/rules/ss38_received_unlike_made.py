"""SS38: an argument that is whole where another program of the script made it split, or the other way round."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from ...capture.model import OtherResult
from ...communication.weights import weights_of
from ...ir.name_scopes import Leaf, counterparts
from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, ShardedValue
from ...units import format_bytes, plural, with_more
from ..fixes.jits import without_jits
from ..fixes.specs import sharding_words
from ..rule import MIN_SPLIT_ELEMENTS, Rule, advice, finding

Pair = tuple[ShardedValue, OtherResult, str]
"""An argument, the result of another program that it is, or was, and the names of all arguments that may be it."""


def check(report: Report) -> Iterator[Finding]:
    """The arguments received whole, and those that were made whole."""
    function = report.capture.function_name
    made = [each for each in report.capture.other_results if not each.is_argument and each.program != function]
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    inputs = [Leaf(each.name, each.type) for each in arguments]
    makers: dict[str, list[Pair]] = {}
    for number, found in counterparts(inputs, [Leaf(each.path, jax_type(each.type)) for each in made]).items():
        argument = arguments[found[0]]
        # A path without keys says nothing: it has the type of the argument, and of no other.
        is_known = bool(Leaf(made[number].path, None).keys) or argument.name in weights_of(report.program)
        if argument.requested is None or (is_known and not made[number].is_aside):
            names = " or ".join(arguments[each].name for each in found)
            makers.setdefault(argument.name, []).append((argument, made[number], names))
    received, whole = [], []
    for pairs in makers.values():
        split = [pair for pair in pairs if _is_split(pair[1])]
        is_split = bool(pairs[0][0].sharding and pairs[0][0].sharding.sharded)
        if is_split and not split:
            whole.append(pairs[-1])
        elif split and not is_split:
            received.append(split[-1])
    known = {pair[0].name for pair in whole}
    before = {each.path for each in report.capture.earlier_arguments if not _is_split(each)}
    whole += [
        _first_call(each, function) for each in _unsharded_at_first(report, arguments, before) if each.name not in known
    ]
    for pairs in (received, whole):
        if pairs:
            by_size = sorted(pairs, key=lambda pair: -(pair[0].type.bytes or 0))
            yield _found(report, by_size, is_received=pairs is received)


def _unsharded_at_first(
    report: Report, arguments: Sequence[ShardedValue], before: Container[str]
) -> Iterator[ShardedValue]:
    """The state that the program shards because other arguments are, and that is given without a sharding at first."""
    if any(each.requested is not None and each.sharding and each.sharding.sharded for each in arguments):
        for each in arguments:
            is_split = each.sharding is not None and bool(each.sharding.sharded)
            is_large = (each.type.elements or 0) >= MIN_SPLIT_ELEMENTS
            is_given_whole = each.requested is None or each.name in before
            if is_split and is_large and is_given_whole and each.name in weights_of(report.program):
                yield each


def _first_call(argument: ShardedValue, function: str) -> Pair:
    call = OtherResult(f"the first call of {function}", argument.name, str(argument.type), "", is_argument=True)
    return argument, call, argument.name


def _is_split(result: OtherResult) -> bool:
    return "'" in result.spec


def _whole(result: OtherResult) -> str:
    return "whole on every device" if result.spec else "on one device"


def _found(report: Report, pairs: list[Pair], *, is_received: bool) -> Finding:
    argument, made, alike = pairs[0]
    several = len(pairs) > 1
    names = with_more(argument.name if is_received else alike, len(pairs))
    them = "them" if several else "it"
    total = format_bytes(sum(each.type.bytes or 0 for each, *_ in pairs))
    if is_received:
        message = f"{names} {'are' if several else 'is'} whole on every device: {made.program} makes {them} {made.spec}"
        fix = f"place it as it was made: jax.device_put({argument.name}, {sharding_words(report, made.spec)})"
    else:
        verb, how = ("receives", "unsharded") if made.is_argument else ("makes", _whole(made))
        message = f"{names} {'are' if several else 'is'} sharded, but {made.program} {verb} {them} {how}"
        maker = "the lambda" if made.program == "<lambda>" else made.program
        fix = f"have {maker} make it as {argument.spec}, by jit's out_shardings"
        if made.is_argument:
            fix = f"make it as {argument.spec}: by device= of jnp.zeros, or device_put before the first call"
    return finding(
        RULE,
        FindingPlace(argument.name, argument.source, argument.stage, argument.span),
        message,
        confidence="likely",
        subject=argument.name,
        evidence=(
            ("received", ", ".join(f"{each.name} {each.type} as {each.spec}" for each, *_ in pairs[:4])),
            ("made", ", ".join(f"{each.program} {each.path} {each.spec or _whole(each)}" for _, each, _ in pairs[:4])),
            ("whole, per device", f"{total} in {plural(len(pairs), 'array')}"),
        ),
        fixes=(*(() if is_received else without_jits(report)), *advice(fix)),
    )


RULE = Rule(
    id="SS38",
    slug="received-unlike-made",
    severity="warning",
    finds="An argument that is whole, while another program of the script made it sharded; or the other way round.",
    why="A checkpoint that is read, a copy through the host, or a second placement loses the sharding that jit gave:"
    " each device then holds all of it. jit(optimizer.init) makes all of the state on each device, and only the first"
    " step shards it: memory runs out before.",
    proof="The shardings of results at the first calls of the script's other programs. `likely`, because results and"
    " arguments are matched by the ends of their paths and by their types.",
    faulty="""params = jit(init, out_shardings=sharded)(key)
params = jax.device_put(restored(params), NamedSharding(mesh, P()))""",
    repaired="""params = jit(init, out_shardings=sharded)(key)
params = jax.device_put(restored(params), sharded)""",
    check=check,
    tries="state that a jit makes whole, made without that jit",
    saves="memory",
    is_observation=True,
)
