"""`torch-tb-profiler view`: print a view of a trace."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.cli._command import OK, PATH_HELP, Command, add_format, add_selection, selection
from torch_tb_profiler.cli._session import open_session, wait_for_answer
from torch_tb_profiler.views import CACHED_VIEWS, SLUGS, find_view

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    # No `choices`, as parts of views, such as operators/stacks, are valid too.
    parser.add_argument("slug", nargs="?", metavar="SLUG", help=f"the view: {', '.join(SLUGS)}, or a part of one")
    parser.add_argument("path", nargs="?", metavar="PATH", help=PATH_HELP)
    add_selection(parser)
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the view; repeatable"
    )
    add_format(parser, "json")

    def print_help(file: Any = None) -> None:
        (file or sys.stdout).write(f"{parser.format_help()}\n{_views_help()}")

    parser.print_help = print_help  # type: ignore[method-assign]


def _run(options: argparse.Namespace, settings: Settings) -> int:
    if options.slug is None:
        sys.stdout.write(_views_help())
        return OK
    if options.slug not in CACHED_VIEWS:
        find_view(options.slug)  # an unknown view is an error before any file is read
    if options.path is None:
        raise UsageError("PATH is missing", hint=f"torch-tb-profiler view {options.slug} PATH")
    params = dict(_parse_param(text) for text in options.param)
    with open_session(options.path, settings) as session:

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(options.slug, *selection(options), params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        payload = wait_for_answer(ask)
    if options.format == "json":
        sys.stdout.write(payload.decode() + "\n")
    else:
        import json

        from torch_tb_profiler.cli._output import print_payload

        print_payload(json.loads(payload), options.format, find_view(options.slug).rows, options.wide)
    return OK


def _parse_param(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--param {text!r} is not KEY=VALUE")
    return key, value


def _views_help() -> str:
    from torch_tb_profiler.api.views import describe_views

    return f"views, with what each answers and its parameters (--param KEY=VALUE):\n{describe_views()}"


COMMAND = Command(_add_arguments, _run)
