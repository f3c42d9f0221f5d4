"""How many instructions of a compiled program lead to the operation that they come from, and what the others are.

    python benchmarks/links.py [--layers 24] [--samples]

It prints the tables of docs/shardings.md: for a training step of a transformer, and with `--samples` for all samples
together. The second one counts operations of the StableHLO that lead to an equation of the jaxpr, and equations that
lead to operations.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from pathlib import Path

from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.correspondence.numbers import (
    operations_of,
    spans_of_equations,
    spans_of_tags,
    tags_at,
    tags_in,
)
from shardscope.inspector.correspondence.positions import spans_of
from shardscope.inspector.ir.program import Program
from shardscope.parsers.mlir import frames
from shardscope.samples.catalogue import samples

STEP = Path(__file__).parent.parent / "tests" / "inspector" / "shardings" / "transformer_step.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--samples", action="store_true")
    options = parser.parse_args()
    programs: dict[str, list[Capture]] = {}
    if options.samples:
        functions = [f"{sample.path}:{function}" for sample in samples() for function in sample.functions]
        programs[f"{len(functions)} functions of the samples"] = list(map(captured, functions))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "step.py")
        script.write_text(
            re.sub(r"LAYERS = (.*), \d+$", rf"LAYERS = \1, {options.layers}", STEP.read_text(), flags=re.M)
        )
        programs[f"a transformer's training step, {options.layers} layers"] = [captured(f"{script}:step")]
    print("| program | instructions | exact | name | none | of these, by opcode |\n|---|--:|--:|--:|--:|---|")
    for program, found in programs.items():
        show(program, instructions(found))
    print("\n| program | of | exact | name | none | of these, by name |\n|---|--:|--:|--:|--:|---|")
    for program, found in programs.items():
        show(f"{program}: operations", operations(found))
        show(f"{program}: equations", equations(found))


def captured(function: str) -> Program:
    *_, found = capture(Request(function, live=False))
    assert found.complete, found.failure
    return Program(found)


def instructions(programs: list[Program]) -> Counter[tuple[str, str]]:
    """How many instructions there are of each confidence and opcode."""
    found: Counter[tuple[str, str]] = Counter()
    for each in programs:
        stage, written = each.stage("hlo"), each.stage("stablehlo")
        assert stage is not None
        assert written is not None
        module = stage.hlo
        assert module is not None
        for computation in module.computations:
            for instruction in computation.instructions:
                exact = spans_of_tags(written, tags_in(stage, instruction.span))
                metadata = instruction.metadata
                named = metadata is not None and bool(metadata.op_name or instruction.frames)
                found["exact" if exact else "name" if named else "none", instruction.opcode] += 1
    return found


def operations(programs: list[Program]) -> Counter[tuple[str, str]]:
    """The same for operations of the StableHLO and equations; what only holds others, a function or a region, is left
    out."""
    found: Counter[tuple[str, str]] = Counter()
    for each in programs:
        stage, text = each.stage("stablehlo"), each.jaxpr
        assert stage is not None
        assert text is not None
        module = stage.mlir
        assert module is not None
        for operation in module.walk():
            if operation.text is module.text and operation.results:
                exact = spans_of_equations(each, text, tags_at(stage, operation.span))
                named = frames(operation.location)
                found["exact" if exact else "name" if named else "none", operation.name.rpartition(".")[2]] += 1
    return found


def equations(programs: list[Program]) -> Counter[tuple[str, str]]:
    """How many equations there are of each confidence and primitive."""
    found: Counter[tuple[str, str]] = Counter()
    for each in programs:
        stage, text = each.stage("stablehlo"), each.jaxpr
        assert stage is not None
        assert text is not None
        for place in text.equations:
            exact = spans_of_tags(stage, operations_of(each, text, place.span.start))
            stack = text.stack(place.equation)
            named = stack and spans_of(stage, stack[0].file, stack[0].line)
            found["exact" if exact else "name" if named else "none", place.equation.primitive] += 1
    return found


def show(program: str, found: Counter[tuple[str, str]]) -> None:
    total = found.total()
    counts = {kind: sum(n for (own, _), n in found.items() if own == kind) for kind in ("exact", "name", "none")}
    rest = Counter({opcode: n for (kind, opcode), n in found.items() if kind == "none"})
    named = Counter({opcode: n for (kind, opcode), n in found.items() if kind == "name"})
    shares = " | ".join(f"{n:,} ({n / total:.0%})" for n in counts.values())
    words = ", ".join(f"{opcode} {n:,}" for opcode, n in rest.most_common(8))
    print(f"| {program} | {total:,} | {shares} | {words}; by name: {', '.join(o for o, _ in named.most_common(3))} |")


if __name__ == "__main__":
    main()
