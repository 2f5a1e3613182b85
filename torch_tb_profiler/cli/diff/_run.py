"""Compare two traces, print the difference, and judge it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._command import OK, REGRESSION, selection
from torch_tb_profiler.cli._session import open_roots, wait_for
from torch_tb_profiler.cli.diff._junit import junit
from torch_tb_profiler.cli.diff._markdown import markdown
from torch_tb_profiler.cli.diff._table import table
from torch_tb_profiler.session import Root
from torch_tb_profiler.views.diff.budget import Budget, parse_budget
from torch_tb_profiler.views.diff.gate import Check, checks
from torch_tb_profiler.views.diff.payload import DiffPayload

if TYPE_CHECKING:
    from torch_tb_profiler.session import FileState

_BASE, _CANDIDATE = "base", "candidate"


def run(options: argparse.Namespace, settings: Settings) -> int:
    """The exit code: REGRESSION if a check failed."""
    budget = None if options.budget is None else _read_budget(options.budget)
    payload = _payload(options, settings)
    diff = msgspec.json.decode(payload, type=DiffPayload)
    gate = checks(diff, options.fail_over, budget)
    if options.format == "json":
        sys.stdout.write(_json(payload, gate) + "\n")
    else:
        draw = {"table": table, "markdown": markdown, "junit": junit}[options.format]
        sys.stdout.write(draw(diff, gate))
    for check in gate:
        if not check.passed:
            sys.stderr.write(f"{'unknown' if check.passed is None else 'failed'}: {check.name}: {check.message}\n")
    return REGRESSION if any(check.passed is False for check in gate) else OK


def _read_budget(path: str) -> Budget:
    try:
        with open(path, encoding="utf-8") as file:
            return parse_budget(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the budget cannot be read: {error}", where=path) from error
    except UsageError as error:
        raise UsageError(error.message, where=path, hint=error.hint) from error


def _payload(options: argparse.Namespace, settings: Settings) -> bytes:
    roots = [Root(options.base, _BASE), Root(options.candidate, _CANDIDATE)]
    with open_roots(roots, settings) as session:
        runs = [run.name for run in session.catalog.runs]
        base = _run_name(runs, _BASE, options.base_run, options.base)
        _, worker, span = selection(options)
        candidate = _run_name(runs, _CANDIDATE, options.select_run, options.candidate)
        params = {"base_run": base, "base_worker": options.base_worker, "base_span": options.base_span}
        params = {name: text for name, text in params.items() if text is not None}
        params["min_effect"] = str(options.min_effect)

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view("diff", candidate, worker, span, params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        return wait_for(ask)


def _run_name(names: list[str], side: str, wanted: str | None, path: str) -> str:
    """The run of a side, by default the first. With two roots, names of runs begin with the name of their root."""
    of_side = [name for name in names if name == side or name.startswith(f"{side}/")]
    if not of_side:
        raise ProfilerError("there is no trace", where=path)
    if wanted is None:
        return of_side[0]
    full = f"{side}/{wanted}"
    if full not in of_side:
        known = ", ".join(name.removeprefix(f"{side}/") for name in of_side)
        raise NotFoundError(f"there is no run {wanted!r}", where=path, hint=f"runs: {known}")
    return full


def _json(payload: bytes, gate: list[Check]) -> str:
    """The payload of the view, with the checks of the gate under `checks`."""
    document = json.loads(payload)
    if gate:
        document["checks"] = msgspec.to_builtins(gate)
    return json.dumps(document, indent=1)
