"""`torch-tb-profiler summary`: summarize a run on one page."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.cli._command import OK, Command, add_path
from torch_tb_profiler.cli._session import ProgressLine, open_cli_session

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument("--run", dest="select_run", metavar="RUN", help="name of the run; default: the first")
    parser.add_argument("--span", dest="select_span", metavar="SPAN", help="name of the span; default: the first")
    parser.add_argument(
        "--format", choices=("markdown", "json"), default="markdown", help="output format; default: markdown"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    from torch_tb_profiler.api.log import WorkerAnswers
    from torch_tb_profiler.cli._pager import paged
    from torch_tb_profiler.summary import as_json, as_markdown, summarize

    with open_cli_session(options.path, settings) as session, ProgressLine() as line:
        summary = summarize(WorkerAnswers(session, options.select_run, options.select_span, line.show))
    if options.format == "json":
        sys.stdout.write(as_json(summary) + "\n")
    else:
        with paged(sys.stdout) as stream:
            stream.write(as_markdown(summary))
    return OK


COMMAND = Command(_add_arguments, _run)
