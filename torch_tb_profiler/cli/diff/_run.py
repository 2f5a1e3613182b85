"""Compare two sides, print the difference, and judge it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._command import CANNOT_TELL, OK, REGRESSION, selection
from torch_tb_profiler.cli._print.table import terminal_width
from torch_tb_profiler.cli._session import open_session, run_name, wait_for_answer
from torch_tb_profiler.cli.diff import BETWEEN
from torch_tb_profiler.cli.diff._junit import junit
from torch_tb_profiler.cli.diff._markdown import markdown
from torch_tb_profiler.cli.diff._table import table
from torch_tb_profiler.cli.diff._words import verdict_word
from torch_tb_profiler.session import Root
from torch_tb_profiler.view import ALSO, BASE, BASE_ALSO
from torch_tb_profiler.views.diff.gate import Budget, Check, parse_budget, run_checks
from torch_tb_profiler.views.diff.payload import MIN_EFFECT, DiffPayload

if TYPE_CHECKING:
    from torch_tb_profiler.session import FileState

_BASE, _CANDIDATE = "base", "candidate"


def run(options: argparse.Namespace, settings: Settings) -> int:
    """The exit code: REGRESSION if a check failed, CANNOT_TELL if one is open; `--strict` lets that fail too."""
    budget = None if options.budget is None else _read_budget(options.budget)
    payload = _payload(options, settings)
    diff = msgspec.json.decode(payload, type=DiffPayload)
    gate = run_checks(diff, options.fail_over, budget, options.strict)
    if options.format == "json":
        sys.stdout.write(_json(payload, gate) + "\n")
    elif options.format == "table":
        sys.stdout.write(table(diff, gate, None if options.wide else terminal_width(sys.stdout)))
    else:
        draw = {"markdown": markdown, "junit": junit}[options.format]
        sys.stdout.write(draw(diff, gate))
    for check in gate:
        if not check.passed:
            sys.stderr.write(f"{verdict_word(check).lower()}: {check.name}: {check.message}\n")
    outcomes = {check.passed for check in gate}
    return REGRESSION if False in outcomes else CANNOT_TELL if None in outcomes else OK


def _read_budget(path: str) -> Budget:
    try:
        with open(path, encoding="utf-8") as file:
            return parse_budget(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the budget cannot be read: {error}", where=path) from error
    except UsageError as error:
        raise UsageError(error.message, where=path, hint=error.hint) from error


def _payload(options: argparse.Namespace, settings: Settings) -> bytes:
    bases, candidates = _sides(options.paths)
    roots = _roots(bases, _BASE) + _roots(candidates, _CANDIDATE)
    with open_session(roots, settings) as session:
        runs = [run.name for run in session.catalog.runs]
        named = options.base_run, options.base_worker, options.base_span
        base = _recordings(runs, _roots(bases, _BASE), *named)
        candidate = _recordings(runs, _roots(candidates, _CANDIDATE), *selection(options))
        params = {name: text for name, text in zip(BASE, base[0], strict=True) if text is not None}
        params |= {name: json.dumps(side[1:]) for name, side in ((BASE_ALSO, base), (ALSO, candidate)) if side[1:]}
        params["min_effect"] = str(_min_effect(options))

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view("diff", *candidate[0], params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        return wait_for_answer(ask)


def _min_effect(options: argparse.Namespace) -> float:
    """What must not be exceeded matters."""
    if options.min_effect is not None:
        return float(options.min_effect)
    return MIN_EFFECT if options.fail_over is None else min(MIN_EFFECT, options.fail_over)


def _sides(paths: list[str]) -> tuple[list[str], list[str]]:
    """A and B, or what stands on either side of `--`."""
    if BETWEEN in paths:
        at = paths.index(BETWEEN)
        bases, candidates = paths[:at], paths[at + 1 :]
    else:
        bases, candidates = paths[:1], paths[1:]
        if len(candidates) > 1:
            raise UsageError("more than two recordings", hint="A1 A2 -- B1 B2 says which belong to which side")
    if not bases or not candidates or BETWEEN in candidates:
        raise UsageError("two sides are needed", hint="A B, or A1 A2 -- B1 B2")
    return bases, candidates


def _roots(paths: list[str], side: str) -> list[Root]:
    """Called `base`, `base2`, ..."""
    return [Root(path, side if number == 1 else f"{side}{number}") for number, path in enumerate(paths, 1)]


def _recordings(
    runs: list[str], roots: list[Root], run: str | None, worker: str | None, spans: str | None
) -> list[tuple[str, str | None, str | None]]:
    """(run, worker, span) of each recording of a side; `spans` may be several, with commas between them."""
    names = [run_name(runs, root.name or "", run, root.url) for root in roots]
    return [(name, worker, span) for name in names for span in (spans.split(",") if spans else [None])]


def _json(payload: bytes, gate: list[Check]) -> str:
    """The payload of the view, with the checks of the gate under `checks`."""
    document = json.loads(payload)
    if gate:
        document["checks"] = msgspec.to_builtins(gate)
    return json.dumps(document, indent=1)
