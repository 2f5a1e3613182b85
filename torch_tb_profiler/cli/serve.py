"""`torch-tb-profiler serve`: open TensorBoard on a log folder or a trace file."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.cli._command import OK, Command, add_path

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument("--host", default="localhost", help="address to listen on; default: localhost")
    parser.add_argument("--port", help="default: 6006 or the next free port; 0 picks any free port")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    if "://" not in options.path and not os.path.exists(options.path):
        raise UsageError("there is no such folder or file", where=options.path)
    from tensorboard import main as tensorboard_main

    # TensorBoard looks for a free port only if it is given none.
    port = ["--port", options.port] if options.port is not None else []
    sys.argv = ["tensorboard", "--logdir", options.path, "--host", options.host, *port]
    tensorboard_main.run_main()
    return OK


COMMAND = Command(_add_arguments, _run)
