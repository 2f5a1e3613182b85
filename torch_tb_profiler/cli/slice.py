"""`torch-tb-profiler slice`: write part of a trace to a new trace file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torch_tb_profiler.base.format import parse_duration
from torch_tb_profiler.cli._command import OK, Command, add_path, add_selection, selection
from torch_tb_profiler.cli._output import write_file
from torch_tb_profiler.cli._session import open_cli_session, wait_with_progress

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    add_selection(parser)
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="TIME",
        help="start at this time, counted from the start of the trace, such as 1.5s",
    )
    parser.add_argument(
        "--to", dest="end", metavar="TIME", help="end at this time, counted from the start of the trace"
    )
    parser.add_argument("--step", metavar="N", help="write one step instead of a time range")
    parser.add_argument(
        "--category", action="append", default=[], metavar="C", help="keep only this category; repeatable"
    )
    parser.add_argument("--min-duration", default="0ns", metavar="TIME", help="drop slices shorter than this")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the new file, compressed if it ends in .gz; - is stdout",
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    times = {"begin": options.begin, "end": options.end, "min_duration_ns": options.min_duration}
    params = {name: str(parse_duration(text)) for name, text in times.items() if text is not None}
    params["categories"] = ",".join(options.category)
    if options.step is not None:
        params["step"] = options.step
    with open_cli_session(options.path, settings) as session:
        excerpt = wait_with_progress(lambda: session.excerpt(*selection(options), params, wait=True, timeout=0.5))
        write_file(options.output, excerpt.pieces)
    return OK


COMMAND = Command(_add_arguments, _run)
