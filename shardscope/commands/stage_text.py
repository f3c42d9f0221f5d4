"""`--stage`: the text of one stage in place of a report, for other programs to read."""

from __future__ import annotations

import argparse

from shardscope.commands.output import after_screen, write_rendered
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.render.printable import without_commands


def write_stage(capture: Capture, options: argparse.Namespace) -> ExitCode:
    """Write the stage that is asked for, and return how its capture went.

    Raises:
        CaptureError: the capture ended well, and does not have it.
    """
    program = Program(capture)
    stage = program.stage(options.stage)
    if stage is not None:
        write_rendered(_text, stage, options)
    elif capture.failure is None:
        recorded = ", ".join(each.name for each in program.stages) or "none"
        raise CaptureError(f"there is no stage {options.stage} in this capture; recorded: {recorded}")
    return after_screen(capture)


def _text(stage: ParsedStage) -> str:
    return without_commands(stage.text.text())
