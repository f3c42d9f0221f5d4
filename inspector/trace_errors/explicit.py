"""Operations of explicit types whose operands are sharded in ways that leave open what is to be communicated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Edits, instead, together, with_keyword
from ..findings.fixes.specs import SPECS
from ..report import Explanation, Fix, StoryStep
from .failed import Failed
from .operands import (
    SPEC,
    Spec,
    axes_text,
    conditions_of,
    failing,
    indices_of,
    operands,
    resharded,
    resharded_at,
    shardings,
    spec_of,
    spec_of_type,
    text_of,
    tuples,
    without,
)
from .operations import with_out_sharding
from .problem import entries_of, trimmed

ALIKE = re.compile(
    r"(All operands|select cases) (?:should|must) have the same shardings?[.,] ?[Gg]ot"
    r"|(\w+) got incompatible shardings for broadcasting: (.*)\.\s*\Z",
    re.DOTALL,
)
ILLEGAL = re.compile(r"(\w+) operation with inputs: (\S+), (\S+) produces an illegally sharded result: (\S+)")
CONTRACTED = re.compile(r"requires contracting dimensions to have consistent sharding, got (\(.*?\)) and (\(.*?\))\.")
LOOKUP = re.compile(r"`\.at\[\.\.\.\]\.get\(out_sharding=\)`.*?operand=\S*?(\w+\[\S*\])\)?, indices=\S*?(\w+\[\S*\])")

RESHAPE = re.compile(r"This reshape is not supported.*?Got operand type: (\S+), new sizes: (\(.*?\))", re.DOTALL)

UPDATE = re.compile(
    r"dynamic_update_slice operand sharding must be equal.*?got operand sharding (\w+\[\S*?\])\S*.*?update sharding"
    r" (\w+\[\S*?\])|Incompatible types for broadcasting: input type=(\w+\[\S*?\]) and requested type=(\w+\[\S*?\])",
    re.DOTALL,
)
SCATTER = re.compile(r"`\.at\[\.\.\.\]\.set/add.*?operand=\S*?(\w+\[\S*?\])\)?, .*?updates=\S*?(\w+\[\S*?\])")
CONSTRAINT = re.compile(rf"acts as an assert.*?array sharding: {SPEC} did not match the sharding provided: {SPEC}")

_SPEC = re.compile(f"spec={SPEC}")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def explain_alike(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """Explain operands that have to be sharded alike; the cases of a select are listed last one first."""
    specs = tuples(said[3]) if said[3] else [spec_of(text) for text in _SPEC.findall(failed.said)]
    operation = said[2] or ("concatenate" if said[1] == "All operands" else "select")
    return _unlike(failed, operation, specs if operation != "select" else specs[::-1]) if len(specs) > 1 else None


def explain_illegal(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """The axis that both operands keep in different dimensions: each axis can shard one dimension of the result."""
    left, right, result = (spec_of_type(text) for text in said.groups()[1:])
    if said[1] != "dot_general":
        return _unlike(failed, said[1], (left, right))
    flat = [axis for dim in result for axis in dim]
    twice = [axis for axis in dict.fromkeys(flat) if flat.count(axis) > 1]
    if not twice:
        return None
    steps = [
        StoryStep(f"the {which} operand is sharded as {text_of(spec)}", failed.place)
        for which, spec in zip(ORDINALS, (left, right), strict=False)
    ]
    operands = [
        Fix(f"replicate the {which} operand over {', '.join(map(repr, twice))}: reshard to {text_of(rest)}", edits)
        for number, (which, spec) in reversed(list(enumerate(zip(ORDINALS, (left, right), strict=False))))
        for rest in (without(spec, twice),)
        for edits in resharded(failed, number, rest)
    ]
    return Explanation(
        f"the result of the product would be sharded over {', '.join(map(repr, twice))} in two dimensions",
        tuple(steps),
        (*operands, *with_out_sharding(failed)),
    )


def explain_contracted(failed: Failed, said: re.Match[str]) -> Explanation:
    """The contracting dimension of each operand."""
    steps = tuple(
        StoryStep(f"the contracting dimension of the {which} operand is sharded over {axes_text(text)}", failed.place)
        for which, text in zip(ORDINALS, said.groups(), strict=False)
    )
    title = "the operands of the product are sharded differently in the contracting dimension"
    return Explanation(title, steps, tuple(with_out_sharding(failed)))


def explain_lookup(failed: Failed, said: re.Match[str]) -> Explanation:
    """A lookup in an array that is sharded in the dimension that is indexed."""
    operand, indices = (spec_of_type(text) for text in said.groups())
    steps = (
        StoryStep(f"the indexed array is sharded as {text_of(operand)}", failed.place),
        StoryStep(f"the indices are sharded as {text_of(indices[:-1])}", failed.place),
    )
    used = {axis for dim in indices for axis in dim}
    result = (*indices[:-1], *without(operand[1:], used))
    return Explanation(
        "the sharding of the lookup's result is ambiguous: rows or indices have to be communicated",
        steps,
        tuple(_looked_up(failed, dict.fromkeys((text_of(result), "P()"))))
        or tuple(_gathered(failed, operand, indices)),
    )


def _gathered(failed: Failed, operand: Spec, indices: Spec) -> Iterator[Fix]:
    """The indexed array of any other lookup, sharded as the indices only, or not at all."""
    batch = tuple(axes if axes in indices[dim : dim + 1] else () for dim, axes in enumerate(operand))
    for spec in dict.fromkeys((batch, ((),) * len(operand))):
        title = f"reshard the indexed array to {text_of(spec)}: every device gathers what it looks up in"
        yield from (Fix(title, edits) for edits in resharded(failed, 0, spec))


def explain_update(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain an update that is sharded differently from what it updates, or from the place that it is written to."""
    specs = (spec_of_type(said[1] or said[4]), spec_of_type(said[2] or said[3]))
    if said[1]:
        return _unlike(failed, "dynamic_update_slice", specs)
    fixes = [Fix(f"reshard it to {text_of(specs[0])}", edits) for edits in resharded(failed, 0, specs[0])]
    for file, node in failing(failed):
        match node:
            case ast.Call(ast.Attribute(ast.Subscript(ast.Attribute(array, "at")))) as call:
                named = with_keyword((file, call), "out_sharding", f"jax.typeof({ast.unparse(array)}).sharding")
                title = f"{fixes[0].title}, and keep the sharding of {ast.unparse(array)}" if fixes else ""
                fixes += [Fix(title, together(fix.edits, named)) for fix in fixes]
    step = StoryStep(f"the value is sharded as {text_of(specs[1])}, the slice as {text_of(specs[0])}", failed.place)
    return Explanation("a value is sharded differently from the slice that it is written to", (step,), tuple(fixes))


def explain_scatter(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain an update at computed places of a sharded array, or from sharded updates."""
    array, updates = spec_of_type(said[1]), spec_of_type(said[2])
    steps = (
        StoryStep(f"the array is sharded as {text_of(array)}", failed.place),
        StoryStep(f"the updates are sharded as {text_of(updates)}", failed.place),
    )
    fixes = [
        Fix(f"give the sharding of the result: {text}", with_keyword((file, call), "out_sharding", sharding))
        for file, call in failing(failed)
        if isinstance(call, ast.Call)
        for text in dict.fromkeys((text_of(array), "P()"))
        for sharding in shardings(failed, file, call.func if isinstance(call.func, ast.Attribute) else call, text)
    ]
    return Explanation(
        "the sharding of the updated array is ambiguous: rows or updates have to be communicated", steps, tuple(fixes)
    )


def explain_constraint(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain a constraint that another sharding was asked of: with explicit axes it only compares."""
    given, wanted = (spec_of(text) for text in said.groups())
    steps = (
        StoryStep(f"the value is sharded as {text_of(given)}", failed.place),
        StoryStep(f"the constraint says {text_of(wanted)}", failed.place),
    )
    calls = list(failed.calls(("with_sharding_constraint",)))
    fixes = [
        Fix(f"reshard it to {text_of(wanted)}", instead((file, call.func), "jax.sharding.reshard"))
        for file, call in calls
    ]
    if any(given[:1]) and not any(wanted):  # a batch, as a rule
        fixes = [*(fix for found in calls for fix in _as_it_is(found, given, wanted)), *fixes]
    return Explanation(
        "with_sharding_constraint does not reshard over explicit axes: it only compares", steps, tuple(fixes)
    )


def _as_it_is(found: tuple[str, ast.Call], given: Spec, wanted: Spec) -> Iterator[Fix]:
    """A constraint that says how its value is sharded, which keeps the first dimension sharded."""
    file, call = found
    for node in (each for argument in call.args[1:] for each in ast.walk(argument)):
        entries = entries_of(node) if isinstance(node, ast.Call) and name_of(node.func) in SPECS else None
        if isinstance(node, ast.Call) and entries is not None and trimmed(entries) == trimmed(wanted):
            text = f"{ast.unparse(node.func)}{text_of(given)[1:]}"
            yield Fix(f"keep it as it is: {text_of(given)}", instead((file, node), text))


def explain_reshape(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain a reshape that splits or merges sharded dimensions."""
    spec, sizes = spec_of_type(said[1]), [int(each) for each in re.findall(r"\d+", said[2])]
    shape = [int(each) for each in re.findall(r"(\d+)(?:@|,|\])", re.sub(r"@(?:\([^()]*\)|\w+)", "", said[1]))]
    first = next((n for n, (a, b) in enumerate(zip(shape, sizes, strict=False)) if a != b), min(len(shape), len(sizes)))
    last = next((n for n, (a, b) in enumerate(zip(shape[::-1], sizes[::-1], strict=False)) if a != b), 0)
    last = min(last, len(shape) - first, len(sizes) - first)
    inner: Spec = spec[first : len(spec) - last]
    tail = spec[len(spec) - last :]
    whole: Spec = (*spec[:first], *((),) * len(inner), *tail)
    fixes = [
        Fix(f"give the sharding of the result: {text_of(result)}", edits)
        for result in _reshaped(spec[:first], inner, len(sizes) - first - last, tail)
        for edits in _with_result(failed, text_of(result))
    ]
    title = f"reshard the operand to {text_of(whole)}: every device gathers the dimensions that change"
    fixes += [Fix(title, edits) for edits in resharded(failed, 0, whole)]
    return Explanation(
        "the reshape splits or merges sharded dimensions, so the sharding of its result is ambiguous",
        (StoryStep(f"its operand is {said[1]}, its result {said[2]}", failed.place),),
        tuple(fixes),
    )


def _reshaped(head: Spec, inner: Spec, count: int, tail: Spec) -> Iterator[Spec]:
    """The axes of the dimensions that change on the first of the new ones, on the last, or nowhere."""
    axes = tuple(axis for dim in inner for axis in dim)
    middles = [(axes, *((),) * (count - 1)), (*((),) * (count - 1), axes)] if count else []
    yield from dict.fromkeys((*head, *middle, *tail) for middle in (*middles, ((),) * count))


def _with_result(failed: Failed, spec: str) -> Iterator[Edits]:
    for file, node in failing(failed):
        match node:
            case ast.Call(func=ast.Attribute(attr="reshape" | "ravel"), args=[array, *_]):
                for sharding in shardings(failed, file, array, spec):
                    yield with_keyword((file, node), "out_sharding", sharding)


def _unlike(failed: Failed, operation: str, in_order: Sequence[Spec]) -> Explanation:
    """Explain operands that have to be sharded alike, with each of them as the others are.

    Of an operation inside of a function of JAX's that takes one array, that array unsharded.
    """
    steps = [
        StoryStep(f"the {which} operand is sharded as {text_of(spec)}", failed.place)
        for which, spec in zip(ORDINALS, in_order, strict=False)
    ]
    differing = [dim for dim, axes in enumerate(zip(*in_order, strict=False)) if len({*axes, ()}) > 2]
    where = f" in dimension {differing[0]}" if differing else ""
    if len(list(operands(failed))) == 1 and not list(indices_of(failed)):
        whole: Spec = ((),) * len(in_order[0])
        title = f"reshard the argument to {text_of(whole)}: every device gathers the full value"
        fixes = [Fix(title, edits) for edits in resharded(failed, 0, whole)]
    else:
        best = sorted(dict.fromkeys(in_order), key=lambda spec: -sum(map(bool, spec)))
        fixes = [
            Fix(f"reshard {names} to {text_of(wanted)}, as the {ORDINALS[in_order.index(wanted)]} one is{more}", edits)
            for wanted in best
            for others in ([n for n, spec in enumerate(in_order) if spec != wanted],)
            for names in (f"the {' and the '.join(ORDINALS[n] for n in others)} operand",)
            for more, changes in _with_condition(failed, operation, others, wanted)
            for edits in changes
        ]
    return Explanation(f"the operands of {operation} are sharded differently{where}", tuple(steps), tuple(fixes))


def _with_condition(
    failed: Failed, operation: str, numbers: list[int], spec: Spec
) -> Iterator[tuple[str, list[Edits]]]:
    """Yield operands resharded; of a select, with its condition, which has to be sharded as the cases are."""
    indices = [*indices_of(failed)] if operation == "concatenate" else []
    each_changed = [
        resharded_at(failed, indices[number], spec[:-1] or spec) if indices else resharded(failed, number, spec)
        for number in numbers
        if number < len(indices) or not indices
    ]
    changes = [together(*edits) for edits in zip(*each_changed, strict=False)]
    conditions = [*conditions_of(failed)] if operation == "select" else []
    for placed in conditions:
        both = [together(*each) for each in zip(resharded_at(failed, placed, spec), changes, strict=False)]
        yield ", and the condition", both
    if not conditions:
        yield "", changes


def _looked_up(failed: Failed, specs: Iterable[str]) -> Iterator[Fix]:
    for file, node in failing(failed):
        match node:
            case ast.Subscript(value=array, slice=rows):
                mode = ""
            case ast.Call(ast.Attribute(attr="take"), [array, rows], [ast.keyword("axis", ast.Constant(0))]):
                mode = "mode='fill', "
            case _:
                continue
        for spec in specs:
            for sharding in shardings(failed, file, array, spec):
                text = f"{ast.unparse(array)}.at[{ast.unparse(rows)}].get({mode}out_sharding={sharding})"
                yield Fix(f"give the sharding of the result: {spec}", instead((file, node), text))
