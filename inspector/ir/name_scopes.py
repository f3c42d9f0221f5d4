"""Modules, by the name scopes around an operation, and by the paths of arguments; and leaves whose paths are alike.

A path of names has scopes (`jax.named_scope`, those of Linen's modules) between transformations, functions, control
flow and primitives: `jit(step)/transpose(jvp(Block))/attention/while/body/dot_general`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from ..units import grouped

_CONTROL_FLOW = re.compile(
    r"(?:^|/)(?:while/(?:body|cond)(?:_\w+)?|cond/branch_\d+_fun|scan|while|cond|shard_map|checkpoint|remat2?|closed_call"
    r"|rematted_computation|core_call|eval_jaxpr|custom_[jv][jv]p_call(?:_jaxpr)?|custom_lin|pallas_call)(?=/|$)"
)
_FUNCTION = re.compile(r"(?:pjit|jit|pmap|xla_call|named_call)\(.*\)", re.DOTALL)
_TRANSFORMATION = re.compile(r"\w+\((.*)\)", re.DOTALL)
_KEY = re.compile(r"\['([^']*)'\]|\[\"([^\"]*)\"\]|\[([^\]'\"]+)\]|\.?(\w+)")


def scopes(path: str) -> tuple[str, ...]:
    """The name scopes in a path, outermost first; what an einsum is called is none.

    A backward pass names what it recomputes from the outermost scope on, within the scopes that it is in itself:
    `transpose(jvp(Model))/block/jvp(Model)/block/checkpoint/mlp`. Linen names the methods of a module within it:
    `norm/norm.scale`.
    """
    found: list[str] = []
    around: list[str] = []
    for component in split_path(_CONTROL_FLOW.sub("", path).lstrip("/")):
        inner = component
        while (wrapped := _TRANSFORMATION.fullmatch(inner)) and not _FUNCTION.fullmatch(inner):
            inner = wrapped[1]
        if inner != component:
            around, found = _joined(around, found), list(scopes(inner))
        elif inner and "->" not in inner and not _FUNCTION.fullmatch(inner):
            if found and inner.startswith(f"{found[-1]}."):
                found.pop()
            found.append(inner)
    return tuple(_joined(around, found))


def _joined(around: list[str], found: list[str]) -> list[str]:
    """The scopes inside of others, which they may begin with again."""
    return found if found[: len(around)] == around else [*around, *found]


def split_path(path: str, separators: str = "/") -> list[str]:
    """The parts of a path between separators that are in no parentheses."""
    if not any(separator in path for separator in separators):
        return [path]
    parts, depth, start = [], 0, 0
    for index, character in enumerate(path):
        depth += (character == "(") - (character == ")")
        if character in separators and depth == 0:
            parts.append(path[start:index])
            start = index + 1
    return [*parts, path[start:]]


@lru_cache(maxsize=4096)
def keys_of_name(name: str) -> tuple[str, ...]:
    """The keys in the name of an argument or output: `params['layers'][0].wq` is `("params", "layers", "0", "wq")`.

    The value of a variable of nnx has the variable's keys: `state['up']['kernel'].value` ends with `kernel`.
    """
    name = name.removesuffix(".value") if name.endswith("'].value") else name
    found, end = [], 0
    while (key := _KEY.match(name, end)) is not None:
        found.append(next(text for text in key.groups() if text is not None))
        end = key.end()
    return tuple(found) if end == len(name) else (name,)


def module_of_name(name: str) -> tuple[str, ...]:
    """The keys in the name of an argument without its own: `state[0]['layers'][1]` is `("layers", "1")`."""
    found = without_indices(keys_of_name(name)[1:])
    return () if all(key.isdecimal() for key in found) else found


def without_indices(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys without the indices in front, which only say where in a tuple a tree of parameters is."""
    first = next((index for index, key in enumerate(keys) if not key.isdecimal()), 0)
    return keys[first:]


def common_start(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The keys that several paths begin with."""
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return tuple(level[0] for level in levels)


_STEP = re.compile(r"\[[^\]]*\]|\.\w+")


def steps_of(path: str) -> list[str]:
    """The steps of the path of a leaf behind its root: `['w1']`, `[0]`, `.kernel`."""
    return _STEP.findall(path)


class Leaf(NamedTuple):
    """A leaf of the arguments or results: its path, as `params['w']` or `result.w`, and its type."""

    name: str
    type: Hashable

    @property
    def root(self) -> str:
        """The parameter of the function that it is in; empty where the leaf has no name."""
        return next(iter(keys_of_name(self.name)), "")

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys in that, equal for dicts, attributes and fields of a NamedTuple."""
        return keys_of_name(self.name)[1:]


def counterparts(arguments: Sequence[Leaf], outputs: Sequence[Leaf]) -> Mapping[int, tuple[int, ...]]:
    """Return the arguments that each result may be the counterpart of, by number, best first; without results of none.

    By the end of the path and the type; else, of results without keys, by their order, as of flattened trees; else, of
    a result without any path, by the type alone, if only one argument has it.
    """
    keys = [each.keys for each in arguments]
    by_type = grouped((argument.type, number) for number, argument in enumerate(arguments))
    by_end = grouped(
        ((argument.type, argument.keys[-length:]), number)
        for number, argument in enumerate(arguments)
        for length in range(1, len(argument.keys) + 1)
    )
    found: dict[int, tuple[int, ...]] = {}
    for number, output in enumerate(outputs):
        best: list[int] = []
        for start in range(len(output.keys)):
            end = output.keys[start:]
            # Indices alone count only if they are all of the argument's keys.
            is_enough = any(not key.isdecimal() for key in end)
            alike = by_end.get((output.type, end), ())
            best = [each for each in alike if is_enough or len(keys[each]) == len(end)]
            if best:
                break
        alone = by_type.get(output.type, ())
        if not best and len(alone) == 1 and not keys[alone[0]]:
            best = list(alone)
        if best:
            found[number] = tuple(sorted(best, key=lambda each: len(keys[each])))
    for number, leaf in _in_order(arguments, outputs):
        found.setdefault(number, (leaf,))
    return found


def _in_order(arguments: Sequence[Leaf], outputs: Sequence[Leaf]) -> Iterator[tuple[int, int]]:
    """Results that are the leaves of one parameter of the function, in order, in a tuple or list without keys."""
    keys = [output.keys for output in outputs]
    flat = [n for n, each in enumerate(keys) if not without_indices(each) or all(map(str.isdecimal, each))]
    types = [outputs[number].type for number in flat]
    for leaves in grouped((argument.root, number) for number, argument in enumerate(arguments)).values():
        wanted = [arguments[each].type for each in leaves]
        fits = [at for at in range(len(types) - len(wanted) + 1) if types[at : at + len(wanted)] == wanted]
        if len(wanted) > 1 and fits:
            yield from zip(flat[fits[0] : fits[0] + len(wanted)], leaves, strict=True)


_PATH = re.compile(r"\w+\(")


_MERGED = re.compile(r"(?P<before>(?:[^/]*+/)*?)\((?P<parts>.*)\)(?P<after>(?:/[^()]*+)?)", re.DOTALL)


def last_components(op_name: str) -> tuple[str, ...]:
    """The primitives that the paths end in."""
    return tuple(part.rpartition("/")[2].rstrip(":") for part in merged_parts(op_name))


def merged_parts(op_name: str) -> tuple[str, ...]:
    """The names that were merged into one, each whole again; one that was not merged is itself the only part.

    Of names in a row, `jit(f)/a/b;jit(f)/c;d`, a later one may leave out the path that it has in common with the first.
    """
    first, *others = split_path(op_name, ";") if is_path(op_name) else [op_name]
    path = first.rpartition("/")[0]
    whole = (each if is_path(each) or not path else f"{path}/{each}" for each in others)
    return tuple(part for name in (first, *whole) for part in _factored_out(name))


def _factored_out(name: str) -> tuple[str, ...]:
    merged = _MERGED.fullmatch(name)
    if merged is None:
        return (name,)
    return tuple(f"{merged['before']}{part}{merged['after']}" for part in split_path(merged["parts"], ":;"))


def is_path(op_name: str) -> bool:
    """Return whether a name is a path from the outermost function on, not an argument's, or the end of one."""
    return _PATH.match(op_name) is not None
