"""`torch-tb-profiler diff A B`: two traces compared on the command line, and a gate for continuous integration."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError, StorageError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.base.units import format_duration
from torch_tb_profiler.cli._output import table, wait_for
from torch_tb_profiler.views.diff.gate import Budget, Check, checks, describe, parse_budget
from torch_tb_profiler.views.diff.payload import Change, DiffOperator, DiffPayload

if TYPE_CHECKING:
    from torch_tb_profiler.session import FileState

OK, REGRESSION = 0, 3

FORMATS = ("table", "json", "markdown", "junit")

ROWS = 10
"""Operators in a comment for people."""

LONGEST = 80

_SIDES = ("base", "candidate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("base", metavar="A", help="what to compare with: a log folder, a URL, or one trace file")
    parser.add_argument("candidate", metavar="B", help="what is compared, likewise")
    for name in ("run", "worker", "span"):
        parser.add_argument(f"--base-{name}", metavar=name.upper(), help=f"of A; default: the first {name}")
        parser.add_argument(
            f"--{name}", dest=f"select_{name}", metavar=name.upper(), help=f"of B; default: the first {name}"
        )
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--fail-over",
        metavar="PERCENT",
        type=_percent,
        help="exit with 3 if the step or an operator really is slower, by more than this part of A's step",
    )
    parser.add_argument("--budget", metavar="FILE", help="exit with 3 if B breaks a limit of this JSON file")
    parser.add_argument(
        "--min-effect",
        metavar="PERCENT",
        type=_percent,
        default=0.02,
        help="smallest change that counts; default: 2",
    )


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 100


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Compare, print, and judge."""
    budget = None if options.budget is None else _read_budget(options.budget)
    payload = _payload(options, settings)
    found = msgspec.json.decode(payload, type=DiffPayload)
    gate = checks(found, options.fail_over, budget)
    if options.format == "json":
        sys.stdout.write(_json(payload, gate) + "\n")
    else:
        draw = {"table": _table, "markdown": _markdown, "junit": _junit}[options.format]
        sys.stdout.write(draw(found, gate))
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
    from torch_tb_profiler.session import Root, Session

    roots = [Root(options.base, _SIDES[0]), Root(options.candidate, _SIDES[1])]
    with Session(roots, settings) as session:
        session.scan()
        if session.error is not None:
            raise StorageError(session.error.message, where=session.error.where, hint=session.error.hint)
        runs = [run.name for run in session.catalog.runs]
        base = _run(runs, _SIDES[0], options.base_run, options.base)
        candidate = _run(runs, _SIDES[1], options.select_run, options.candidate)
        params = {"base_run": base, "base_worker": options.base_worker, "base_span": options.base_span}
        params = {name: text for name, text in params.items() if text is not None}
        params["min_effect"] = str(options.min_effect)
        selected = candidate, options.select_worker, options.select_span

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view("diff", *selected, params, wait=True, timeout=0.5)
            return answer.state, answer.payload

        return wait_for(ask)


def _run(names: list[str], side: str, wanted: str | None, path: str) -> str:
    """The run of a side; runs carry the side's name in front."""
    mine = [name for name in names if name == side or name.startswith(f"{side}/")]
    if not mine:
        raise ProfilerError("there is no trace", where=path)
    if wanted is None:
        return mine[0]
    full = f"{side}/{wanted}"
    if full not in mine:
        known = ", ".join(name.removeprefix(f"{side}/") for name in mine)
        raise NotFoundError(f"there is no run {wanted!r}", where=path, hint=f"runs: {known}")
    return full


# ---- formats ----------------------------------------------------------------------------------------


def _json(payload: bytes, gate: list[Check]) -> str:
    """The payload of the view; what was asked of the gate under `checks`."""
    shown = json.loads(payload)
    if gate:
        shown["checks"] = msgspec.to_builtins(gate)
    return json.dumps(shown, indent=1)


def _table(found: DiffPayload, gate: list[Check]) -> str:
    blocks = ["\n".join([*found.summary, *found.notes]) + "\n"]
    blocks += [
        f"by {fall.by}\n"
        + table(
            [
                {
                    fall.by: bar.name,
                    "before_ns": bar.base_ns,
                    "now_ns": bar.candidate_ns,
                    "delta_ns": bar.delta_ns,
                    "verdict": bar.verdict,
                }
                for bar in fall.bars
            ]
            + [
                {
                    fall.by: "step",
                    "before_ns": fall.base_ns,
                    "now_ns": fall.candidate_ns,
                    "delta_ns": fall.delta_ns,
                    "verdict": found.step.verdict,
                }
            ]
        )
        for fall in found.waterfalls
    ]
    parts = [{"part": part.name, "status": part.status, **_columns(part.host)} for part in found.level.parts]
    operators = [{"operator": _named(row), "status": row.status, **_both(row)} for row in found.level.operators]
    kernels = [{"kernel": row.name, "status": row.status, **_columns(row.total)} for row in found.kernels]
    memory = [
        {"device": row.device, "base_bytes": row.peak_allocated.base_bytes}
        | {"candidate_bytes": row.peak_allocated.candidate_bytes, "delta_bytes": row.peak_allocated.delta_bytes}
        for row in found.memory
    ]
    tables: tuple[list[dict[str, Any]], ...] = (parts, operators, kernels, memory)
    titles = ("parts of the step, host", "operators, self", "kernels", "peak memory allocated")
    for title, rows in zip(titles, tables, strict=True):
        if rows:
            blocks.append(f"{title}\n{table(rows)}")
    if gate:
        blocks.append("".join(f"{_word(check)}: {check.name}: {check.message}\n" for check in gate))
    return "\n".join(blocks)


def _columns(change: Change, prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}before_ns": change.base_ns,
        f"{prefix}now_ns": change.candidate_ns,
        f"{prefix}delta_ns": change.delta_ns,
        f"{prefix}verdict": change.verdict,
    }


def _both(row: DiffOperator) -> dict[str, Any]:
    return (
        {"delta_calls": row.calls.delta_calls}
        | _columns(row.host_self, "host.")
        | _columns(row.device_self, "device.")
    )


def _named(row: DiffOperator) -> str:
    return f"{row.name} -> {row.candidate_name}" if row.candidate_name else row.name


def _word(check: Check) -> str:
    return {True: "passed", False: "FAILED", None: "unknown"}[check.passed]


def _markdown(found: DiffPayload, gate: list[Check]) -> str:
    """A comment for a pull request: the answer, what explains it, the operators that really changed."""
    mark = {"slower": "🔴", "faster": "🟢"}.get(found.step.verdict, "⚪")
    lines = [f"### {mark} {_plain(found.summary[0])}", ""]
    lines += [*map(_plain, found.summary[1:]), ""] if len(found.summary) > 1 else []
    if gate:
        lines += ["| Check | | |", "|---|---|---|"]
        lines += [f"| {_code(check.name)} | {_word(check)} | {_plain(check.message)} |" for check in gate] + [""]
    fall = found.waterfalls[0]
    lines += ["| Per step | Base | Candidate | Change | 95 % interval | |", "|---|--:|--:|--:|--:|---|"]
    for bar in fall.bars:
        if bar.base_ns or bar.candidate_ns:
            times = f"{format_duration(bar.base_ns)} | {format_duration(bar.candidate_ns)}"
            within = _interval(bar.low_ns, bar.high_ns)
            lines.append(f"| {bar.name} | {times} | {_signed(bar.delta_ns)} | {within} | {bar.verdict} |")
    within = _interval(found.step.low_ns, found.step.high_ns)
    times = f"**{format_duration(fall.base_ns)}** | **{format_duration(fall.candidate_ns)}**"
    lines += [f"| **step** | {times} | **{_signed(fall.delta_ns)}** | {within} | {found.step.verdict} |", ""]
    lines += _changed_operators(found)
    lines += [f"- {_plain(note)}" for note in found.notes]
    return "\n".join(lines).rstrip() + "\n"


def _changed_operators(found: DiffPayload) -> list[str]:
    rows = []
    for row in found.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if change.verdict in ("slower", "faster"):
                rows.append((row, name, change))
    if not rows:
        return ["No operator changed beyond noise.", ""] if found.step.verdict != "unknown" else []
    rows.sort(key=lambda entry: -abs(entry[2].delta_ns))
    lines = ["| Operator | Time | Change | | |", "|---|---|---|--:|---|"]
    for row, name, change in rows[:ROWS]:
        state = "" if row.status == "matched" else row.status
        words = f"{name.replace('_', ' ')} | {describe(change)} | {_signed(change.delta_ns)} | {state}"
        lines.append(f"| {_code(_named(row))} | {words} |")
    more = [f"{len(rows) - ROWS} more changed.", ""] if len(rows) > ROWS else []
    return [*lines, "", *more]


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_signed(low)} .. {_signed(high)}"


def _signed(ns: float | None) -> str:
    whole = None if ns is None else round(ns)  # less than a ns is the rounding of means
    return ("+" if (whole or 0) > 0 else "") + format_duration(whole)


def _code(text: str) -> str:
    """A name as code: nothing in it is markup, a mention or a new cell."""
    flat = " ".join(text.replace("`", "'").split())
    short = flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
    return f"`{short.replace('|', chr(92) + '|')}`"


def _plain(text: str) -> str:
    """A sentence in which names of the trace may stand."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|@#":
        flat = flat.replace(sign, f"\\{sign}" if sign != "@" else "@\u200b")
    return flat


def _junit(found: DiffPayload, gate: list[Check]) -> str:
    """A test case per check; without any, the step's time as the only one."""
    cases = gate or [Check("step time", None if found.step.verdict == "unknown" else True, describe(found.step))]
    failures, skipped = (sum(case.passed is state for case in cases) for state in (False, None))
    suite = ElementTree.Element(
        "testsuite",
        name="torch-tb-profiler diff",
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped=str(skipped),
        time="0",
    )
    for case in cases:
        node = ElementTree.SubElement(
            suite, "testcase", classname="torch-tb-profiler.diff", name=_text(case.name), time="0"
        )
        if case.passed is False:
            ElementTree.SubElement(node, "failure", message=_text(case.message), type="regression")
        elif case.passed is None:
            ElementTree.SubElement(node, "skipped", message=_text(case.message))
    ElementTree.SubElement(suite, "system-out").text = _text("\n".join([*found.summary, *found.notes]))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(
        c if c in "\t\n\r" or 0x20 <= ord(c) < 0xD800 or 0xE000 <= ord(c) < 0xFFFE or ord(c) > 0xFFFF else "�"
        for c in text
    )
