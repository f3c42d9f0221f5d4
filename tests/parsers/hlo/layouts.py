"""What is read of a module, written so that layouts make no difference."""

from __future__ import annotations

from typing import Any

from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule

from ..layouts import without_layout


def everything_read(module: HloModule) -> dict[str, Any]:
    """Names, types, operands, attributes, callees and groups of all instructions, by computation."""
    return {
        computation.name: [
            computation.is_entry,
            {key: without_layout(value) for key, value in computation.attributes.items()},
            *(
                (
                    each.name,
                    each.is_root,
                    each.opcode,
                    without_layout(str(each.type)),
                    each.references,
                    None if each.literal is None else without_layout(each.literal),
                    {key: without_layout(value) for key, value in each.attributes.items()},
                    each.called,
                    {name: meaning(each, name) for name in ("replica_groups", "source_target_pairs", "sharding")},
                    each.metadata,
                    each.frames,
                    each.frontend_attributes,
                )
                for each in computation.instructions
            ),
        ]
        for computation in module.computations
    } | {"": {key: without_layout(value) for key, value in module.attributes.items()}}


def meaning(instruction: object, name: str) -> object:
    try:
        return getattr(instruction, name)
    except ParseError as error:
        return str(error.problem.message)
