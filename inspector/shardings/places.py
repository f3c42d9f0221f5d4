"""What the values and operations of a propagated module are called, and from which lines they come."""

from __future__ import annotations

from ...parsers.errors import readable
from ...parsers.mlir import UnknownLoc, frames, names
from ...parsers.mlir.lists import unquote
from ..report import SourcePosition
from .dataflow import Dataflow


class Places:
    """The names in a dataflow. Equal locations are read once."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self._known: dict[str | None, tuple[str, SourcePosition]] = {}

    def argument(self, number: int) -> str:
        """The path of an argument in the pytree, `params[0]['w1']`; its name in the text where there is no path."""
        arguments = self.flow.function.arguments
        if number >= len(arguments):
            # Of broken texts not all accounts agree.
            return f"argument {number}"
        argument = arguments[number]
        found = names(readable(lambda: argument.location) or UnknownLoc())
        return found[0] if found else argument.name

    def output(self, number: int) -> str:
        """The path of a result, `result[1]`."""
        results = self.flow.function.results
        if number >= len(results):
            return f"result {number}"
        result = results[number]
        written = (readable(lambda: result.attributes) or {}).get("jax.result_info", "")
        return (unquote(written) if written.startswith('"') else "") or f"result {number}"

    def operation(self, row: int) -> tuple[str, SourcePosition]:
        """What JAX calls an operation, and its line; without a name of JAX's, the name in the text."""
        found = self.flow.rows[row]
        name, place = self.at(found.location)
        return name or found.name.rpartition(".")[2], place

    def at(self, location: str | None) -> tuple[str, SourcePosition]:
        """The name in a location, without the path of transformations, and its line."""
        if location not in self._known:
            read = readable(lambda: self.flow.text.location(location)) or UnknownLoc()
            found, stack = names(read), frames(read)
            place = SourcePosition(stack, "exact") if stack else SourcePosition()
            self._known[location] = (found[0].rpartition("/")[2].rstrip(":") if found else "", place)
        return self._known[location]
