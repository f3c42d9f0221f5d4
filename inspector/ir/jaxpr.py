"""The jaxpr as data: what the child process recorded of it, and how it prints.

Jaxprs stand in one flat table and refer to each other by index, as JAX shares them: a body that is called from many
places is recorded, and printed, once. Types print as `jax.typeof` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ...parsers.record import Record
from ...parsers.source import Frame, Source
from ..capture.model import CaptureError
from .types import JaxType


class Variable(Record, frozen=True):
    """A named value with its type, and the mesh axes in it.

    `varying`, `unreduced` and `reduced` are None where JAX does not track them: outside a shard_map, or inside one
    with its check off.
    """

    name: str
    type: JaxType
    varying: tuple[str, ...] | None = None
    unreduced: tuple[str, ...] | None = None
    reduced: tuple[str, ...] | None = None


class ShardMap(Record, frozen=True):
    """The manual axes of a shard_map, and the specs of its inputs and outputs.

    `axes` are those that become manual in it, `sizes` has the size of each axis of its mesh. For each input and output
    there are the axes that its spec names, and what the value is over them. `names` are those of the inputs in the
    user's function, as in `params['w']`; empty where JAX has made another function of it, as for gradients.
    """

    axes: tuple[str, ...]
    checked: bool
    inputs: tuple[tuple[tuple[str, Literal["varying", "unreduced", "reduced"]], ...], ...] = ()
    outputs: tuple[tuple[tuple[str, Literal["varying", "unreduced", "reduced"]], ...], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()

    def in_spec(self, number: int) -> str:
        """The spec of an input as the user writes it: `in_specs[1]`, for a leaf of a tree `in_specs[0] (params['w'])`.

        Without a position if that is not known.
        """
        if len(self.inputs) == 1:
            return "in_specs[0]"
        name = self.names[number] if len(self.names) == len(self.inputs) and all(self.names) else ""
        root, *path = re.split(r"(?=[\[.])", name, maxsplit=1)
        roots = list(dict.fromkeys(re.split(r"[\[.]", each)[0] for each in self.names))
        if not name or (root == roots[-1] and re.match(r"\[[1-9]", "".join(path))):  # of a tuple, or of *args
            return f"in_specs{f' ({name})' if name else ''}"
        return f"in_specs[{roots.index(root)}]{f' ({name})' if path else ''}"


class Equation(Record, frozen=True):
    """`outputs = primitive[params] inputs`.

    `inputs` are variable names, or literals as they print (`2.0:f32[]`). `axes` are the mesh axes that a collective,
    a cast or `axis_index` names, else None. `bodies` are the jaxprs among its parameters: parameter name and index
    into the table. `shard_map` is there for one. `loop` are, for a scan, how many of its first inputs are constants and
    how many then are carried; for a while loop, how many are constants of its condition and how many of its body.
    `stack` are indices of frames, innermost first, JAX's own left out. `in_custom_vjp` is whether it is from the
    functions of a `custom_vjp`, whose stack is that of the call. `remote` is the type of what an equation of a kernel
    copies to another device, empty where it signals or the size is not known; None where it stays on its own.
    `device` names that device: by coordinates, each with the names of its axes where they are given, or by one number.
    """

    primitive: str
    inputs: tuple[str, ...]
    outputs: tuple[Variable, ...]
    params: tuple[tuple[str, str], ...] = ()
    axes: tuple[str, ...] | None = None
    bodies: tuple[tuple[str, int], ...] = ()
    shard_map: ShardMap | None = None
    loop: tuple[int, int] | None = None
    stack: tuple[int, ...] = ()
    name_stack: str = ""
    in_custom_vjp: bool = False
    remote: str | None = None
    device: tuple[tuple[str, str], ...] = ()


def literal_in(operand: str) -> str | None:
    """The value of an operand that is a literal, as it prints; None of a variable's name."""
    value, is_literal, _ = operand.partition(":")
    return value if is_literal else None


class Jaxpr(Record, frozen=True):
    """`{ lambda constants ; inputs . let equations in outputs }`."""

    constants: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[str, ...]


class JaxprProgram(Record, frozen=True):
    """A whole traced function: `jaxprs[0]` is the outermost, and the bodies of equations are among the others.

    Raises:
        ValueError: there is no such body, or a shard_map has none.
    """

    frames: tuple[Frame, ...]
    jaxprs: tuple[Jaxpr, ...]

    def __post_init__(self) -> None:
        inner = range(1, len(self.jaxprs))
        for jaxpr in self.jaxprs:
            for equation in jaxpr.equations:
                if equation.shard_map is not None and "jaxpr" not in dict(equation.bodies):
                    raise ValueError(f"{equation.primitive} has no body")
                for name, body in equation.bodies:
                    if body not in inner:
                        raise ValueError(f"{name} of {equation.primitive} is jaxpr {body} of {len(self.jaxprs)}")


def _reading_types() -> Callable[[type, Any], JaxType]:
    """Types from their spellings, one for all values that have it."""
    known: dict[str, JaxType] = {}

    def read(kind: type, text: Any) -> JaxType:
        if not isinstance(text, str):
            raise ValueError("a type is a text")
        return known.setdefault(text, JaxType(text))

    return read


def read_program(source: Source) -> JaxprProgram:
    """The program in the text of a `jaxpr` stage, which is its JSON.

    Raises:
        CaptureError: the text is something else.
    """
    try:
        return msgspec.json.decode(source.data, type=JaxprProgram, dec_hook=_reading_types())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CaptureError(f"{source.name}: not a recorded jaxpr: {error}") from None
