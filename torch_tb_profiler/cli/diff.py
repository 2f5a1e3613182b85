"""`torch-tb-profiler diff A B`: compare two sides, and fail a build if the candidate got slower."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.cli._command import (
    INCONCLUSIVE,
    NOT_COMPARABLE,
    OK,
    PATH_HELP,
    REGRESSION,
    Command,
    add_selection,
    add_table_size,
    selection,
)
from torch_tb_profiler.cli._session import find_run_name, open_cli_session, wait_with_progress

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Root
    from torch_tb_profiler.views.diff.gate import Budget, Check

FORMATS = ("table", "json", "markdown", "junit")

SIDE_SEPARATOR = "\0"
"""Replaces the `--` between the recordings of A and those of B for argparse; no path can have this name."""

_BASE, _CANDIDATE = "base", "candidate"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help=f"the base A and the candidate B, each {PATH_HELP}; for several recordings per side: A1 A2 -- B1 B2",
    )
    for name in ("run", "worker", "span"):
        parser.add_argument(
            f"--base-{name}", metavar=name.upper(), help=f"name of the {name} in A; default: the first"
        )
    add_selection(parser, " in B")
    parser.epilog = (
        "Two memory snapshots are compared by site of allocation. Several spans of one worker, as in "
        "`--span 1,2,3`, count as recordings of a side."
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format; default: table")
    add_table_size(parser)
    parser.add_argument(
        "--fail-over",
        metavar="PERCENT",
        type=_percent,
        help="exit with 3 if the step or an operator got significantly slower by more than this share of A's "
        "step, with 4 if the result for the step is inconclusive, with 5 if the sides compute different numbers "
        "of samples per step",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 also if the result for the step is inconclusive"
    )
    parser.add_argument("--budget", metavar="FILE", help="exit with 3 if B exceeds a limit in this JSON file")
    parser.add_argument(
        "--min-effect",
        metavar="PERCENT",
        type=_percent,
        help="smallest change that counts; default: 2, or the value of --fail-over if that is smaller",
    )


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 100


def _run(options: argparse.Namespace, settings: Settings) -> int:
    """Return REGRESSION if a check failed, else NOT_COMPARABLE or INCONCLUSIVE if one is open.

    `--strict` turns inconclusive into failed.
    """
    import msgspec

    from torch_tb_profiler.base.threadsafe import threadsafe
    from torch_tb_profiler.cli import _diff_formats as formats
    from torch_tb_profiler.views.diff.gate import run_checks
    from torch_tb_profiler.views.diff.payload import DiffPayload

    budget = None if options.budget is None else _read_budget(options.budget)
    slug, payload = _compare(options, settings)
    if slug != "diff":
        return _print_snapshots(options, slug, payload)
    diff = msgspec.json.decode(payload, type=threadsafe(DiffPayload))
    checks = run_checks(diff, options.fail_over, budget, options.strict)
    if options.format == "json":
        sys.stdout.write(_json(payload, checks) + "\n")
    elif options.format == "table":
        from torch_tb_profiler.cli._output import print_screen
        from torch_tb_profiler.cli.screens import screen_of

        print_screen(screen_of("diff", json.loads(payload)), options.wide, options.limit)
        sys.stdout.write(formats.format_checks(checks))
    elif options.format == "markdown":
        sys.stdout.write(formats.format_markdown(diff, checks))
    else:
        sys.stdout.write(formats.format_junit(diff, checks))
    for check in checks:
        if not check.passed:
            sys.stderr.write(f"{formats.check_result(check).lower()}: {check.name}: {check.message}\n")
    outcomes = {check.passed for check in checks}
    if False in outcomes:
        return REGRESSION
    if not all(check.comparable for check in checks):
        return NOT_COMPARABLE
    return INCONCLUSIVE if None in outcomes else OK


def _print_snapshots(options: argparse.Namespace, slug: str, payload: bytes) -> int:
    """Print the comparison of two memory snapshots. UsageError for options that are about steps."""
    if options.fail_over is not None or options.budget is not None or options.format not in ("table", "json"):
        raise UsageError(
            "memory snapshots have no steps to check", hint="use --format table or json, and none of the checks"
        )
    if options.format == "json":
        sys.stdout.write(json.dumps(json.loads(payload), indent=1) + "\n")
        return OK
    from torch_tb_profiler.cli._output import print_screen
    from torch_tb_profiler.cli.screens import screen_of

    print_screen(screen_of(slug, json.loads(payload)), options.wide, options.limit)
    return OK


def _read_budget(path: str) -> Budget:
    from torch_tb_profiler.views.diff.gate import parse_budget

    try:
        with open(path, encoding="utf-8") as file:
            return parse_budget(file.read())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the budget cannot be read: {reason}", where=path) from error
    except UsageError as error:
        raise UsageError(error.message, where=path, hint=error.hint) from error


def _compare(options: argparse.Namespace, settings: Settings) -> tuple[str, bytes]:
    """Return the view that compares both sides, and its answer: of memory snapshots, or of traces."""
    from torch_tb_profiler.view import ALSO, BASE, BASE_ALSO

    base_paths, candidate_paths = _split_sides(options.paths)
    base_roots, candidate_roots = _roots(base_paths, _BASE), _roots(candidate_paths, _CANDIDATE)
    with open_cli_session(base_roots + candidate_roots, settings) as session:
        runs = [run.name for run in session.catalog.runs]
        base_names = options.base_run, options.base_worker, options.base_span
        base = _recordings(runs, base_roots, *base_names)
        candidate = _recordings(runs, candidate_roots, *selection(options))
        params = {name: text for name, text in zip(BASE, base[0], strict=True) if text is not None}
        params |= {name: json.dumps(side[1:]) for name, side in ((BASE_ALSO, base), (ALSO, candidate)) if side[1:]}
        slug = session.comparison_view(candidate[0], base[0])
        if slug == "diff":
            params["min_effect"] = str(_min_effect(options))

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(slug, *candidate[0], params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        return slug, wait_with_progress(ask)


def _min_effect(options: argparse.Namespace) -> float:
    """Return the smallest relative change that counts, which is never above the limit of `--fail-over`."""
    from torch_tb_profiler.views.diff.payload import MIN_EFFECT

    if options.min_effect is not None:
        return float(options.min_effect)
    return MIN_EFFECT if options.fail_over is None else min(MIN_EFFECT, options.fail_over)


def _split_sides(paths: list[str]) -> tuple[list[str], list[str]]:
    """Return the paths of the base and of the candidate: A and B, or those before and after `--`."""
    if SIDE_SEPARATOR in paths:
        index = paths.index(SIDE_SEPARATOR)
        bases, candidates = paths[:index], paths[index + 1 :]
    else:
        bases, candidates = paths[:1], paths[1:]
        if len(candidates) > 1:
            raise UsageError("there are more than two paths", hint="put -- between the sides: diff A1 A2 -- B1 B2")
    if not bases or not candidates or SIDE_SEPARATOR in candidates:
        raise UsageError("two sides are needed", hint="diff A B, or diff A1 A2 -- B1 B2")
    return bases, candidates


def _roots(paths: list[str], side: str) -> list[Root]:
    """Return a root per path, called `base`, `base2`, and so on."""
    from torch_tb_profiler.session import Root

    return [Root(path, side if number == 1 else f"{side}{number}") for number, path in enumerate(paths, 1)]


def _recordings(
    runs: list[str], roots: list[Root], run: str | None, worker: str | None, spans: str | None
) -> list[tuple[str, str | None, str | None]]:
    """Return (run, worker, span) of each recording of a side; `spans` may list several, separated by commas."""
    names = [find_run_name(runs, root.name or "", run, root.url) for root in roots]
    return [(name, worker, span) for name in names for span in (spans.split(",") if spans else [None])]


def _json(payload: bytes, checks: list[Check]) -> str:
    """Return the payload of the view, with the checks, if any, under `checks`."""
    import msgspec

    document = json.loads(payload)
    if checks:
        document["checks"] = msgspec.to_builtins(checks)
    return json.dumps(document, indent=1)


COMMAND = Command(_add_arguments, _run)
