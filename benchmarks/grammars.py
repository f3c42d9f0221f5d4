"""How fast texts are parsed by the tables of their grammars, beside Lark's own run time in the same run.

    python benchmarks/grammars.py

Both run the same actions, which do next to nothing. Processor time, of the fastest of twenty rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lark import Transformer
from shardscope.parsers.grammar import lark_of
from shardscope.parsers.lalr import Machine, Parse, load_tables

TEXTS = {
    "a tuple type of 400 arrays": (
        "hlo_types",
        "type",
        f"({', '.join(f'f32[{number},16]{{1,0:T(8,128)}}' for number in range(400))})",
    ),
    "replica groups": ("replica_groups", "groups", "[16,32]<=[2,16,16]T(1,0,2)"),
    "a GSPMD sharding": ("gspmd", "start", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    "an sdy sharding": ("sdy", "sharding", '#sdy.sharding<@mesh, [{"data", "fsdp"}, {"a":(1)2, ?}p1, {}]>'),
    "an instruction": (
        "hlo",
        "instruction",
        "%sum = f32[8]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1}}, to_apply=%add",
    ),
}


def parsers(grammar: str, start: str, text: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """What parses the text with Lark's run time, and what does by tables."""
    rules = {rule.alias or rule.origin.name for rule in lark_of(grammar).rules}
    names = [rule for rule in rules if not rule.startswith("_")]
    callbacks = type("Callbacks", (Transformer,), dict.fromkeys(names, lambda _, parts: parts))
    lark = lark_of(grammar, transformer=callbacks())
    machine = Machine(load_tables(grammar), dict.fromkeys(names, lambda *parts: parts))
    return lambda: lark.parse(text, start=start), lambda: Parse(machine, start).text(text, placed=False)


def seconds(run: Callable[[], object]) -> float:
    """Processor time of one run, of a hundred in a row."""
    start = time.process_time()
    for _ in range(100):
        run()
    return (time.process_time() - start) / 100


def main() -> None:
    for name, (grammar, start, text) in TEXTS.items():
        runs = parsers(grammar, start, text)
        by_lark, by_tables = (min(each) for each in zip(*(map(seconds, runs) for _ in range(20)), strict=True))
        print(f"{name}: {by_lark * 1e6:.0f} µs by Lark, {by_tables * 1e6:.0f} µs by tables, {by_lark / by_tables:.1f}x")


if __name__ == "__main__":
    main()
