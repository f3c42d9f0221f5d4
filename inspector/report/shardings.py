"""How values are sharded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...parsers.source import Span
from ..ir.array_sharding import ArraySharding
from .position import SourcePosition

Role = Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]


@dataclass(frozen=True, slots=True)
class ShardedValue:
    """How one value is sharded after propagation.

    `value` is its name in the stage's text, where it stands at `span`; `name` is its path in the pytree, or the name
    that JAX gave its operation. `type` is global, `local_type` one device's part; inside a shard_map over `manual` axes
    both are of one run of its body. `spec` is what it got; `asked` what was asked for, and `agrees` whether that is the
    same, both None where nothing was asked. `replicated_bytes` are those of a device's part that would lie elsewhere if
    each element were held once: part × (1 - 1 / copies).
    """

    stage: str
    role: Role
    value: str
    name: str
    span: Span
    type: str
    local_type: str | None
    sharding: ArraySharding | None
    spec: str | None
    asked: str | None
    agrees: bool | None
    replicated_bytes: int | None
    source: SourcePosition
    manual: tuple[str, ...] = ()
