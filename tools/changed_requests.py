"""Changes requests in lowered public programs, compiles each, and asks how good causes and prices are.

    python tools/changed_requests.py --python PATH [--checkouts DIR] [--seconds S] [NAME or SCRIPT:FUNCTION …]

A cause is right if leaving its axis out of the requests that it blames changes that collective: for a parameter with
the optimizer's leaves, the other layers, and the results that become them. As a control, the same axis is left out of
requests that it does not blame, as many of them. A price is good if the best of all candidates is
among those that a report would compile first. Compiled programs are counted by `tools/zoo/sent.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from advice import functions
from zoo import DEVICES, HERE

FIRST = 4
"""Candidates that a report compiles whatever its time is: two at once, twice."""

BEST, OTHERS = 30, 30
"""Candidates that are compiled here: the cheapest by price, and others, evenly spread."""

Blamed = list[tuple[str, str, int, str]]
"""What a request is of, its name or file, the line of a constraint, and the axis."""


def main() -> None:
    """Print a row for each program, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--checkouts", type=Path, default=Path("checkouts"))
    parser.add_argument("--seconds", type=float, default=120.0, help="time for the compilations of each program")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    os.environ |= {"ZOO_CHECKOUTS": str(asked.checkouts.resolve()), "JAX_PLATFORMS": "cpu"}
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    sums: Counter[str] = Counter()
    print("| program | collectives | causes right | control | candidates | compiled | best | its place | ms |")
    print(f"|{' --- |' * 9}")
    for function in functions(asked.names, asked.checkouts):
        with tempfile.TemporaryDirectory() as folder:
            blamed = captured(function, asked.python, Path(folder))
            if blamed is None:
                continue
            row = answered(Path(folder), blamed, asked.seconds)
        sums.update({key: value for key, value in row.items() if key in ("asked", "right", "control")})
        if row.get("best", 0) < 0:
            sums.update({"improved": 1, "among": row["place"] <= FIRST, "first": row["place"] == 1})
        cells = (Path(function).name, row["asked"], row["right"], row["control"], row["candidates"], row["compiled"])
        best = f"{100 * row['best']:.0f} %" if row.get("best", 0) < 0 else ""
        print(
            f"| {' | '.join(map(str, cells))} | {best} | {row['place'] if best else ''} | {row['ms']:.0f} |", flush=True
        )
    print(", ".join(f"{number} {what}" for what, number in sums.items()))


def captured(function: str, python: str, folder: Path) -> list[dict[str, Any]] | None:
    """Write the lowered module of a program, and return its collectives with the requests that are blamed for them."""
    from shardscope.inspector.capture.spawn import Request, last_capture
    from shardscope.inspector.pipeline import suspected
    from shardscope.inspector.shardings.collective_causes import causes_of
    from shardscope.inspector.shardings.explained import why_axes

    capture = last_capture(Request(function, python=python, devices=DEVICES, live=False))
    if capture.failure is not None or capture.stage("stablehlo") is None:
        return None
    report = suspected(capture)
    (folder / "lowered.mlir").write_bytes(report.program.stage("stablehlo").text.data)
    found = []
    for each in report.collectives:
        causes = causes_of(report.program, each) if each.stage == "hlo" else ()
        blamed = [
            ("output", str(cause.operation.name), 0, axis.name)
            for cause in causes
            if getattr(cause.operation, "role", "") == "output"
            for axis in each.axes or ()
        ]
        for cause in causes:
            for reason in why_axes(report.program, (*cause.origins, *cause.against)):
                frame, origin = reason.place.frame, reason.origin
                if hasattr(origin, "role"):
                    blamed.append((origin.role, origin.name, 0, reason.axis.name))
                elif frame is not None:
                    blamed.append(("constraint", frame.file, frame.line, reason.axis.name))
        if blamed:
            found.append({"kind": each.kind, "op_name": each.op_name, "blamed": list(dict.fromkeys(blamed))})
    return found


def answered(folder: Path, blamed: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What the compiler says, from processes that may crash: what one was compiling then counts as refused."""
    (folder / "blamed.json").write_text(json.dumps(blamed))
    for _ in range(20):
        command = [sys.executable, __file__, "--answer", str(folder), str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]
        if not (folder / "trying").exists():
            break
        (folder / f"refused-{(folder / 'trying').read_text()}").touch()
    raise SystemExit(done.stderr[-2000:])


class Compiler:
    """Compiles a lowered module with changes of its requests, each once, over several lives of the process."""

    def __init__(self, folder: Path, seconds: float) -> None:
        import jax
        import numpy as np
        from jaxlib.mlir import ir
        from shardscope.inspector.capture.worker import modules
        from shardscope.inspector.capture.worker.requests.candidates import Requests
        from shardscope.inspector.capture.worker.requests.lowered import Lowered

        self.folder, self.end = folder, time.monotonic() + seconds
        self.jax, self.np, self.ir = jax, np, ir
        text = (folder / "lowered.mlir").read_bytes()
        self.lowered = Lowered(text)
        self.requests = Requests(self.lowered)
        with patch.object(modules, "inline_calls", lambda *_, **__: ()):  # then operations keep their whole names
            self.named = Lowered(text)
        self.companions = Requests(self.named)
        vars(self.named)["_bytecode"] = self.named.module.operation.get_asm(enable_debug_info=True)

    def text(self, changes: tuple[Any, ...], lowered: Any = None) -> str | None:
        """The compiled program; None where XLA refuses it, or the time is up."""
        from jax._src import compiler
        from shardscope.inspector.capture.worker import modules

        lowered = lowered or self.lowered
        key = hashlib.sha256(f"{lowered is self.named} {changes}".encode()).hexdigest()
        kept = self.folder / f"compiled-{key}"
        if kept.exists():
            return kept.read_text()
        if (self.folder / f"refused-{key}").exists() or time.monotonic() > self.end:
            return None
        (self.folder / "trying").write_text(key)
        module = lowered.changed(changes)
        size = max(1, self.np.prod(list(self.lowered.axes.values())))
        devices = self.jax.devices()[:size]
        options = compiler.get_compile_options(1, size, self.np.arange(size).reshape(1, -1), backend=devices[0].client)
        building = options.executable_build_options
        building.use_spmd_partitioning = building.use_shardy_partitioner = True
        free = ["sdy.sharding" not in each for each in modules.attributes(modules.main_of(module), "res_attrs")]
        building.allow_spmd_sharding_propagation_to_output = free or [True]
        try:
            loaded = devices[0].client.compile_and_load(
                module, self.jax._src.lib._jax.DeviceList(tuple(devices)), options
            )
            found = loaded.hlo_modules()[0].to_string()
        except Exception:  # XLA refuses some programs
            (self.folder / f"refused-{key}").touch()
            return None
        kept.write_text(found)
        return str(found)


def answer(folder: Path, seconds: float) -> None:
    """Print what comes of all changes of one program, as JSON."""
    from jaxlib.mlir import ir
    from shardscope.inspector.capture.worker import modules

    with modules.context(), ir.Location.unknown():
        compiler = Compiler(folder, seconds)
        blamed = json.loads((folder / "blamed.json").read_text())
        facts = {**causes(compiler, blamed), **prices(compiler)}
    print(json.dumps(facts), flush=True)
    os._exit(0)


# Causes


def causes(compiler: Compiler, blamed: list[dict[str, Any]]) -> dict[str, int]:
    """How many collectives were asked about, whose cause is right, and that change for a request not blamed."""
    before = compiler.text((), compiler.named)
    if before is None:
        return {"asked": 0, "right": 0, "control": 0}
    now, count = collectives(before), Counter[str]()
    for each in blamed:
        mine = {key: number for key, number in now.items() if key[:2] == (each["kind"], name_of(each["op_name"]))}
        changes = changes_of(compiler, [tuple(item) for item in each["blamed"]])
        after = compiler.text(changes, compiler.named) if mine and changes else None
        if after is None:
            continue
        count["asked"] += 1
        count["right"] += changed(mine, after)
        axes = {axis for *_, axis in each["blamed"]}
        others = [change for change in every_request(compiler, axes) if change[:2] not in {c[:2] for c in changes}]
        other = compiler.text(tuple(others[: len(changes)]), compiler.named) if others else None
        count["control"] += other is not None and changed(mine, other)
    return {key: count[key] for key in ("asked", "right", "control")}


def changed(mine: dict[tuple[str, ...], int], after: str) -> bool:
    """Whether some collectives are not as they were."""
    there = collectives(after)
    return any(there[key] != number for key, number in mine.items())


def collectives(text: str) -> Counter[tuple[str, ...]]:
    """The collectives of a compiled program by kind, operation, type and groups."""
    sys.path.insert(0, str(HERE))
    from oracle import COLLECTIVE

    found: Counter[tuple[str, ...]] = Counter()
    for each in COLLECTIVE.finditer(text):
        groups = re.search(r"(?:replica_groups|source_target_pairs)=(\S+)", each[2])
        types = re.sub(r"\{[^}]*\}", "", each[0].split(" = ", 1)[1].split(f" {each[1]}")[0])
        name = re.search(r'op_name="([^"]*)"', each[2])
        found[each[1], name_of(name[1] if name else None), types, groups[1] if groups else ""] += 1
    return found


def name_of(op_name: str | None) -> str:
    """The name of an operation, without what a recorder puts behind it."""
    return re.sub(r"[:;].*", "", op_name or "")


def changes_of(compiler: Compiler, blamed: Blamed) -> tuple[Any, ...]:
    """The changes that leave the axes out of the requests that are blamed."""
    found: dict[tuple[str, int], Any] = {}
    for role, name, line, axis in blamed:
        for kind, number in requests_at(compiler, role, name, line):
            now = found[kind, number].spec if (kind, number) in found else spec_of(compiler, kind, number)
            if now is not None and any(axis in axes for axes in now.dims):
                found[kind, number] = without(kind, number, now, {axis})
    return tuple(found.values())


def requests_at(compiler: Compiler, role: str, name: str, line: int) -> Iterator[tuple[str, int]]:
    """The requests that a reason names."""
    lowered = compiler.named
    if role == "argument":
        numbers = {number for number, each in enumerate(lowered.names) if each == name}
        groups = [group for group in compiler.companions.groups() if numbers & set(group)]
        arguments = numbers.union(*groups)
        yield from (("argument", number) for number in sorted(arguments))
        for result, argument in compiler.companions.tied.items():
            if argument in arguments and lowered.results[result] is not None:
                yield "result", result
    elif role == "output":
        names = {name, f"result{name}", name.removeprefix("result")}
        yield from (("result", number) for number, each in enumerate(lowered.result_names) if each in names)
    else:
        for number, operation in enumerate(lowered.operations):
            is_asked = operation.name == "sdy.sharding_constraint"
            if is_asked and any((frame.file, frame.line) == (name, line) for frame in lowered.stack(number)):
                yield "constraint", number


def every_request(compiler: Compiler, axes: set[str]) -> Iterator[Any]:
    """The changes that leave some axes out of any request that has them, the largest first."""
    lowered = compiler.named
    places = [("argument", number) for number in range(len(lowered.names))]
    places += [("constraint", number) for number in lowered.constraints]
    for kind, number in places:
        now = spec_of(compiler, kind, number)
        if now is not None and any(axis in axes for dim in now.dims for axis in dim):
            yield without(kind, number, now, axes)


def spec_of(compiler: Compiler, kind: str, number: int) -> Any:
    """The spec of a request."""
    lowered = compiler.named
    if kind == "argument":
        return lowered.arguments[number]
    if kind == "result":
        return lowered.results[number]
    return compiler.companions.requested(number)


def without(kind: Any, number: int, spec: Any, axes: set[str]) -> Any:
    """A change that leaves axes out of a spec."""
    from shardscope.inspector.capture.worker.requests.lowered import Change

    dims = tuple(tuple(axis for axis in dim if axis.partition(":")[0] not in axes) for dim in spec.dims)
    return Change(kind, number, spec._replace(dims=dims))


# Prices


def prices(compiler: Compiler) -> dict[str, Any]:
    """How many candidates there are and were compiled, what the best saves, its place by price, and ms for a price."""
    from shardscope.inspector.capture.worker.requests.main import priced
    from shardscope.inspector.capture.worker.requests.price import Pricing

    lowered, requests = compiler.lowered, compiler.requests
    pricing = Pricing(lowered)
    known = compiler.folder / "prices.json"
    every = list(requests.candidates(pricing))
    if not known.exists():
        started = time.monotonic()
        kept = priced(lowered, time.monotonic() + 600)["candidates"]
        known.write_text(json.dumps([len(kept), 1000 * (time.monotonic() - started) / max(1, len(every))]))
    _, ms = json.loads(known.read_text())
    facts: dict[str, Any] = {"candidates": len(every), "compiled": 0, "place": 0, "ms": ms}
    base = compiler.text(requests.pinned(()))
    if base is None or not every:
        return facts
    today, now = pricing.of(requests.pinned(())), bytes_in(compiler, base)
    allowed = list(ranked(requests, pricing, every, today))
    rest = allowed[BEST:]
    chosen = [*allowed[:BEST], *rest[:: max(1, len(rest) // OTHERS)]]
    compiled = [
        (place, bytes_in(compiler, text))
        for place, each in chosen
        if (text := compiler.text(requests.pinned(each.changes)))
    ]
    facts["compiled"] = len(compiled)
    if compiled and now:
        least = min(size for _, size in compiled)
        facts["place"] = min(place for place, size in compiled if size <= 1.005 * least)
        facts["best"] = min(0.0, (least - now) / now) if least < 0.98 * now else 0.0
    return facts


def ranked(requests: Any, pricing: Any, every: Iterable[Any], today: Any) -> Iterator[tuple[int, Any]]:
    """The candidates that hold no more than today, with their places by price."""
    from shardscope.inspector.capture.worker.requests.main import _is_allowed

    found = []
    for each in every:
        try:
            price = pricing.of(requests.pinned(each.changes))
        except Exception:  # Shardy refuses some programs
            continue
        if _is_allowed(price, today):
            found.append((price.bytes, each.is_removal, len(each.changes), len(found), each))
    found.sort(key=lambda row: row[:4])
    yield from ((place, row[-1]) for place, row in enumerate(found, 1))


def bytes_in(compiler: Compiler, text: str) -> int:
    """Bytes that a device sends."""
    sys.path.insert(0, str(HERE))
    from sent import sent

    return int(sent(text, compiler.np, DEVICES))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
