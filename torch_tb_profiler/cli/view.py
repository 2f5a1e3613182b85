"""`torch-tb-profiler view`: print a view of a trace."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.cli._background import prepare_in_background
from torch_tb_profiler.cli._command import (
    HANG,
    OK,
    PATH_HELP,
    Command,
    add_format,
    add_selection,
    check_table_options,
    selection,
)
from torch_tb_profiler.cli._session import open_cli_session, wait_with_progress
from torch_tb_profiler.views import CACHED_VIEWS, SLUGS, find_view, views_of

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session


NO_HANG = ("finished", "running", "unknown")
"""Verdicts that are no hang, or may be none."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    # No `choices`, as parts of views, such as operators/stacks, are valid too.
    parser.add_argument("slug", nargs="?", metavar="SLUG", help=f"the view: {', '.join(SLUGS)}, or a part of one")
    parser.add_argument("path", nargs="?", metavar="PATH", help=PATH_HELP)
    add_selection(parser)
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the view; repeatable"
    )
    parser.add_argument(
        "--fail-on-hang", action="store_true", help="with `view hangs`: exit with code 3 if a rank is waiting"
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
    check_table_options(options)
    if options.fail_on_hang and options.slug != "hangs":
        raise UsageError("--fail-on-hang needs the view `hangs`", hint="torch-tb-profiler view hangs PATH")
    params = dict(_parse_param(text) for text in options.param)
    with open_cli_session(options.path, settings) as session:
        slug = options.slug if options.format != "table" else _slug_of_page(session, options)

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(slug, *selection(options), params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        payload = wait_with_progress(ask)
        unprepared = session.lacks_answers(*selection(options)) if slug in CACHED_VIEWS else False
    _print(options, slug, payload)
    if unprepared:
        sys.stdout.flush()
        prepare_in_background(options.path, selection(options))
    return _exit_code(options, payload)


def _print(options: argparse.Namespace, slug: str, payload: bytes) -> None:
    if options.format == "json":
        sys.stdout.write(payload.decode() + "\n")
        return
    import json

    from torch_tb_profiler.cli._output import print_payload
    from torch_tb_profiler.view import RankView

    view = find_view(slug)
    print_payload(json.loads(payload), options, view.tab if isinstance(view, RankView) else slug, view.rows)


def _exit_code(options: argparse.Namespace, payload: bytes) -> int:
    import json

    hung = options.fail_on_hang and json.loads(payload)["verdict"]["verdict"] not in NO_HANG
    return HANG if hung else OK


def _slug_of_page(session: Session, options: argparse.Namespace) -> str:
    """Return the view that the page shows: in a job of a few ranks, the one that compares the rank with them."""
    slug: str = options.slug
    run = next((run for run in session.catalog.runs if options.select_run in (None, run.name)), None)
    ranks = 0 if run is None else len(session.workers(run))
    if ranks < 2:
        return slug  # without importing the view, which is done while the file is read, or not at all
    from torch_tb_profiler.view import RankView

    views = (view for view in views_of(slug.partition("/")[0]) if isinstance(view, RankView))
    beside = next((view for view in views if view.alone.slug == slug), None)
    return slug if beside is None or ranks > beside.max_members else beside.slug


def _parse_param(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--param {text!r} is not KEY=VALUE")
    return key, value


def _views_help() -> str:
    from torch_tb_profiler.api.views import describe_views

    return f"views, with what each answers and its parameters (--param KEY=VALUE):\n{describe_views()}"


COMMAND = Command(_add_arguments, _run)
