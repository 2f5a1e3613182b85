"""`torch-tb-profiler view`: the payload of one view."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._command import FORMATS, OK, Command, add_path, add_selection, selection
from torch_tb_profiler.cli._output import print_payload
from torch_tb_profiler.cli._session import open_session, wait_for
from torch_tb_profiler.views import SLUGS, find_view

if TYPE_CHECKING:
    from torch_tb_profiler.session import FileState


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    # No `choices`: a view also has parts, such as operators/stacks.
    parser.add_argument("slug", metavar="SLUG", help=f"the view: {', '.join(SLUGS)}, or a part of one")
    add_path(parser)
    add_selection(parser)
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the view"
    )
    parser.add_argument("--format", choices=FORMATS, default="json")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    params = dict(_param(text) for text in options.param)
    with open_session(options.path, settings) as session:

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(options.slug, *selection(options), params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        payload = wait_for(ask)
    if options.format == "json":
        sys.stdout.write(payload.decode() + "\n")
    else:
        print_payload(json.loads(payload), options.format, find_view(options.slug).rows)
    return OK


def _param(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--param {text!r} is not KEY=VALUE")
    return key, value


COMMAND = Command("view", "print a view of one trace", _add_arguments, _run)
