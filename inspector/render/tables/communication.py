"""Communication of a step by strategy of parallelism."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ...catalog.spellings import KIND_OF, Kind
from ...ir.name_scopes import merged_parts
from ...report import Collective, Report, StrategyTotal, UncountedCommunication
from ...report.communication import AxisUse
from ...report.position import call_sites
from ...report.spelled import axes_text
from ...units import format_bytes, format_seconds, grouped, listed, plural
from ..collective_rows import SHORT_PASS, folded_names, output_of
from ..modules import Path, layers_in, module_names, module_tree, modules_of, rows_of_tree, shown_parts, without_layers
from ..table import Cell, Column, Piece, Row, Table, axes_cell, share_cell, size_cell, time_cell, titled

SHOWN = {
    "hlo": "",
    "hlo-spmd": " (after partitioning; not compiled)",
    "stablehlo": " (as written; not partitioned)",
}

"""Arguments, or lines, that one row names."""


def communication(report: Report) -> Table:
    """One row for each strategy, kind and axes, those that send most first."""
    totals = report.communication
    known = [each.wire_bytes for each in totals]
    whole = sum(each or 0 for each in known)
    estimated = any(each.seconds is not None for each in totals)
    layers = layers_in([path for total in totals for each in total.collectives for path in modules_of(each)])
    sums = whole if None not in known else None
    rows = [_row(each, sums, estimated, _where(each, report, layers)) for each in totals]
    rows += _uncounted_rows(report, estimated)
    return Table(
        id="communication",
        title="Communication",
        columns=(
            Column("share", 5, 5, align="right"),
            Column("bytes", 8, 8, align="right"),
            *([Column("est.", 7, 6, align="right")] if estimated else []),
            Column("strategy", 13, 10),
            Column("collectives", 15, 9),
            Column("over", 5, 11),
            Column("where", 12, 7),
        ),
        rows=tuple(rows),
        heading=_heading(report) if rows else "",
        most=12,
        unit="row",
    )


def modules(report: Report) -> Table:
    """Communication of each module in a step, with that of the modules in it below."""
    listed = [each for total in report.communication for each in total.collectives]
    root = module_tree(listed)
    named = [("  " * depth + name, each.wire_bytes) for depth, name, each in rows_of_tree(root.inside)]
    rest = root.wire_bytes - sum(each.wire_bytes for each in root.inside.values())
    several = module_tree(
        each for each in listed if not any(modules_of(each)) and len(merged_parts(each.op_name or "")) > 1
    ).wire_bytes
    others = (("of several modules", several), ("of no module", rest - several))
    named += [row for row in others if named and row[1] > 0]
    rows = [Row((share_cell(sent, root.wire_bytes), size_cell(sent), name)) for name, sent in named]
    return Table(
        id="modules",
        title="Modules",
        columns=titled("share", "bytes", "module", right=("share", "bytes")),
        rows=tuple(rows),
        heading="Communication by module, per device per step" if rows else "",
        most=40,
        unit="module",
    )


def sent_text(report: Report, *, is_complete: bool) -> str:
    """`128 KiB`; `at least` where some are not known, `at most` where a run decides how much, or by which branch."""
    totals = report.communication
    known = [each.wire_bytes for each in totals if each.wire_bytes is not None]
    if len(known) < len(totals) and report.most_sent is not None and is_complete:
        return f"at most {format_bytes(report.most_sent)}"
    kinds = (each.kind for each in totals)
    return bounded_text(sum(known), kinds, is_complete=is_complete and len(known) == len(totals))


def bounded_text(total: int, kinds: Iterable[Kind], *, is_complete: bool) -> str:
    """A total of the bytes that are known, and what it is of all."""
    if not is_complete and not total:
        return "unknown bytes"
    if not any(KIND_OF[kind].at_most for kind in kinds):
        return f"{'' if is_complete else 'at least '}{format_bytes(total)}"
    return f"{'at most' if is_complete else 'about'} {format_bytes(total)}"


def _heading(report: Report) -> str:
    stage = next((each.collectives[0].stage for each in report.communication), "hlo")
    return f"Communication per device per step{SHOWN.get(stage, '')}{widened_text(report)}{_overlapping(report)}"


def widened_text(report: Report) -> str:
    """` (CPUs send bf16 as f32)`: sizes are of what other targets send."""
    pairs = dict.fromkeys(pair for each in report.collectives for pair in each.widened)
    return f" (CPUs send {listed([f'{narrow} as {wide}' for narrow, wide in pairs])})" if pairs else ""


def _overlapping(report: Report) -> str:
    """Say that the rows' times are more than the step's together, as transfers beside each other do not take turns."""
    total = sum(each.seconds or 0.0 for each in report.communication)
    if report.cost is None or total <= report.cost.total:
        return ""
    return f" (times overlap: {format_seconds(total)} in all, in a step of {format_seconds(report.cost.total)})"


def _row(total: StrategyTotal, whole: int | None, estimated: bool, where: str) -> Row:
    kinds = plural(len(total.collectives), total.kind)
    cells: tuple[Cell, ...] = (
        share_cell(total.wire_bytes, whole),
        size_cell(total.wire_bytes, most=total.most_bytes),
        *([time_cell(total.seconds)] if estimated else []),
        total.strategy,
        f"{kinds}{_executed(total.collectives)}",
        axes_cell(total.axes) if total.axes else axes_text(total.collectives[0]),
        where,
    )
    return Row(cells, total)


def _executed(collectives: Sequence[Collective]) -> str:
    """The number of executions in a step, unless it is one."""
    runs = [each.executions for each in collectives]
    if None in runs:
        unbounded = [each for each in collectives if each.executions is None and each.most_executions is None]
        return " in a loop" if unbounded else " in a branch" if set(runs) == {None} else ", some in a branch"
    if len(set(runs)) == 1:
        return "" if runs[0] == 1 else f" × {runs[0]:,}"
    return f", {sum(each or 0 for each in runs):,} executions"


def _where(total: StrategyTotal, report: Report, layers: Collection[Path]) -> str:
    counted = plural(total.gradients, "gradient") if total.gradients else ""
    if total.strategy == "gradient sync":
        return ": ".join(filter(None, (counted, _places(total, report, layers))))
    return ", with ".join(filter(None, (_places(total, report, layers), counted)))


def _places(total: StrategyTotal, report: Report, layers: Collection[Path]) -> str:
    is_gradients = total.strategy == "gradient sync"
    if total.strategy == "input gathers" and total.arguments:
        return listed(folded_names(total.arguments))  # a module would be that of the operation that takes them
    largest = sorted(total.collectives, key=lambda each: -(each.wire_bytes or 0) * (each.executions or 1))
    paths = [path for each in largest for path in modules_of(each, scalars=False)]
    if paths and all(path and path[0] != "*" for path in paths):
        return ", ".join(module_names(without_layers(paths, layers)))
    if total.arguments:
        return listed(folded_names(total.arguments))
    sites = call_sites(part.source for each in report.collectives for part in each.parts or (each,))
    lines: dict[str, dict[str, None]] = {}
    for each in largest:
        if is_gradients and not each.parts and len(merged_parts(each.op_name or "")) > 1:
            continue  # Its line is that of one of many.
        for part in shown_parts(each, scalars=not is_gradients) or (each,):
            place = sites.get(part.source, part.source).own_text(report.script) or output_of(each, report)
            place = place or ("" if is_gradients else part.op_name or "")
            lines.setdefault(place, {})[SHORT_PASS[part.direction]] = None
    return listed([_with_passes(place, [each for each in passes if each]) for place, passes in lines.items() if place])


def _with_passes(place: str, passes: Sequence[str]) -> str:
    """`line 43 attention (bwd)`: a line of the forward pass alone has no word for it."""
    return place if not passes or list(passes) == [SHORT_PASS["forward"]] else f"{place} ({', '.join(passes)})"


def _uncounted_rows(report: Report, estimated: bool) -> Iterator[Row]:
    """Communication without a collective, whose bytes are in no total: one row for what differs in its devices only."""
    alike = grouped(
        ((_does(each), each.axes or (), str(each.type or ""), each.name, each.source.text(report.script)), each)
        for each in report.uncounted
    )
    for (does, _, type, *named), members in alike.items():
        where = " ".join(filter(None, named))
        counted = plural(sum(each.count for each in members), does)
        what = f"{counted} of {type}" if type else counted
        strategy = "kernels" if members[0].does != "unknown" else "may communicate"
        middle = ("",) if estimated else ()
        axes = axes_cell(members[0].axes or ())
        yield Row(("", "not counted", *middle, strategy, what, axes, where), members[0])


def _does(each: UncountedCommunication) -> str:
    names = {"copy": "remote copy", "signal": "remote signal", "host": "host transfer"}
    return names.get(each.does, "custom call")


def axes(report: Report) -> Table:
    """A row for each axis: what is sharded over it, what runs over it, whether that fits; none without collectives."""
    has_problems = any(use.problem for use in report.axes)
    is_listed = any(use.shards or use.runs for use in report.axes) and bool(report.communication or report.uncounted)
    return Table(
        id="axes",
        title="Axes",
        columns=(
            Column("axis", 6, 6),
            Column("shards", 20, 10),
            Column("runs as", 20, 10),
            Column("bytes", 8, 8, align="right"),
            *([Column("but", 20, 9)] if has_problems else []),
        ),
        rows=tuple(_axis_row(use, has_problems) for use in report.axes) if is_listed else (),
        heading="Axes" if is_listed else "",
        most=8,
        unit="axis",
    )


def _axis_row(use: AxisUse, has_problems: bool) -> Row:
    shards = ", ".join(part.what if part.share > 0.995 else f"{part.share:.0%} of {part.what}" for part in use.shards)
    runs = ", ".join(f"{run.strategy} ({f'{run.share:.0%}' if run.share >= 0.01 else '<1%'})" for run in use.runs)
    size = size_cell(use.bytes) if use.bytes else ""
    problem = [Piece(use.problem, "warning")] if has_problems else []
    return Row((Piece(f"{use.name}={use.size}", "strong"), shards or "nothing", runs or "nothing", size, *problem), use)
