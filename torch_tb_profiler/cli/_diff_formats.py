"""What a diff is written as: a comment for a pull request, a JUnit report, and lines of its checks."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

from torch_tb_profiler.analyses.diff.changes import Verdict
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import Check, describe_change
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload, DiffWaterfall
from torch_tb_profiler.views.diff.words import CATEGORIES, signed_duration

MAX_OPERATORS = 10
"""Most changed operators in a comment."""

MAX_NAME_LENGTH = 80
"""Characters of a name in a comment."""


class StepRow(NamedTuple):
    """A row for the step below its parts.

    before, now, delta  ns
    interval            95% interval of the change in ns; None where the row has none
    verdict             in words; "" where the row has none
    """

    name: str
    before: float
    now: float
    delta: float
    interval: tuple[float | None, float | None]
    verdict: str


def step_rows(diff: DiffPayload, waterfall: DiffWaterfall) -> list[StepRow]:
    """Return a row for the mean step, which the parts sum to, and one for the typical step if that differs.

    Headline and verdict are about the typical step.
    """
    before, now = diff.base.typical_ns, diff.candidate.typical_ns
    interval, verdict = (diff.step.low_ns, diff.step.high_ns), verdict_text(diff.step.verdict)
    mean = StepRow(
        diff.step_noun, waterfall.base_ns, waterfall.candidate_ns, waterfall.delta_ns, interval, verdict
    )
    if abs(before - waterfall.base_ns) < 1 and abs(now - waterfall.candidate_ns) < 1:
        return [mean]
    return [
        mean._replace(name=f"mean {diff.step_noun}", interval=(None, None), verdict=""),
        StepRow(f"typical {diff.step_noun} (headline)", before, now, now - before, interval, verdict),
    ]


def diff_sentences(diff: DiffPayload) -> list[str]:
    """Return headline, explanation and notes of a diff."""
    return [plain(sentence) for sentence in (diff.headline, *diff.explanation, *diff.notes)]


def operator_name(row: DiffOperator) -> str:
    return f"{row.name} -> {row.candidate_name}" if row.candidate_name else row.name


def verdict_text(verdict: Verdict) -> str:
    return "inconclusive" if verdict == "cannot_tell" else verdict.replace("_", " ")


def check_result(check: Check) -> str:
    if not check.comparable:
        return "not comparable"
    return {True: "passed", False: "FAILED", None: "inconclusive"}[check.passed]


def format_checks(checks: list[Check]) -> str:
    """Return a line per check."""
    return "".join(f"{check_result(check)}: {check.name}: {check.message}\n" for check in checks)


def format_markdown(diff: DiffPayload, checks: list[Check]) -> str:
    """Return a comment for a pull request: the verdict, what explains it, and the significant operators."""
    change = diff.per_sample or diff.step
    mark = {"slower": "🔴", "faster": "🟢", "cannot_tell": "🟡"}.get(change.verdict, "⚪")
    lines = [f"### {mark} {_escape(plain(diff.headline))}", ""]
    if diff.explanation:
        lines += [*(_escape(plain(sentence)) for sentence in diff.explanation), ""]
    if checks:
        lines += ["| Check | | |", "|---|---|---|"]
        lines += [
            f"| {_code(check.name)} | {check_result(check)} | {_escape(check.message)} |" for check in checks
        ] + [""]
    waterfall = diff.waterfalls[0]
    lines += [
        f"| Per {diff.step_noun} | Base | Candidate | Change | 95% interval | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for bar in waterfall.bars:
        if bar.base_ns or bar.candidate_ns:
            times = f"{format_duration(bar.base_ns)} | {format_duration(bar.candidate_ns)}"
            interval = _interval(bar.low_ns, bar.high_ns)
            lines.append(
                f"| {CATEGORIES.get(bar.name, bar.name)} | {times} | {signed_duration(bar.delta_ns)} "
                f"| {interval} | {verdict_text(bar.verdict)} |"
            )
    for row in step_rows(diff, waterfall):
        times = f"**{format_duration(row.before)}** | **{format_duration(row.now)}**"
        interval = _interval(*row.interval)
        lines.append(
            f"| **{row.name}** | {times} | **{signed_duration(row.delta)}** | {interval} | {row.verdict} |"
        )
    lines.append("")
    lines += _changed_operators(diff)
    lines += [f"- {_escape(plain(note))}" for note in diff.notes]
    return "\n".join(lines).rstrip() + "\n"


def _changed_operators(diff: DiffPayload) -> list[str]:
    rows = []
    for row in diff.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if change.verdict in ("slower", "faster"):
                rows.append((row, name, change))
    if not rows:
        return ["No operator changed significantly.", ""] if diff.step.low_ns is not None else []
    rows.sort(key=lambda entry: -abs(entry[2].delta_ns))
    lines = ["| Operator | Time | Change | | |", "|---|---|---|--:|---|"]
    for row, name, change in rows[:MAX_OPERATORS]:
        status = "" if row.status == "matched" else row.status.replace("_", " ")
        time, delta = name.replace("_", " "), signed_duration(change.delta_ns)
        cells = f"{time} | {describe_change(change)} | {delta} | {status}"
        lines.append(f"| {_code(operator_name(row))} | {cells} |")
    more = [f"{len(rows) - MAX_OPERATORS} more changed.", ""] if len(rows) > MAX_OPERATORS else []
    return [*lines, "", *more]


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{signed_duration(low)} .. {signed_duration(high)}"


def _code(text: str) -> str:
    """Return a name as code, so that nothing in it acts as markup, a mention or a new cell."""
    flat = " ".join(text.replace("`", "'").split())
    short = flat if len(flat) <= MAX_NAME_LENGTH else f"{flat[: MAX_NAME_LENGTH - 1]}…"
    return f"`{short.replace('|', chr(92) + '|')}`"


def _escape(text: str) -> str:
    """Return a sentence with its markup escaped, as its names may come from the trace."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|@#":
        flat = flat.replace(sign, f"\\{sign}" if sign != "@" else "@\u200b")
    return flat


def format_junit(diff: DiffPayload, checks: list[Check]) -> str:
    """Return a JUnit report with a test case per check, or one for the step time if there are no checks."""
    is_open = diff.step.verdict in ("cannot_tell", "unknown")
    cases = checks or [Check(f"{diff.step_noun} time", None if is_open else True, describe_change(diff.step))]
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
        name = _xml_text(case.name)
        node = ElementTree.SubElement(suite, "testcase", classname="torch-tb-profiler.diff", name=name, time="0")
        if case.passed is False:
            ElementTree.SubElement(node, "failure", message=_xml_text(case.message), type="regression")
        elif case.passed is None:
            ElementTree.SubElement(node, "skipped", message=_xml_text(case.message))
    ElementTree.SubElement(suite, "system-out").text = _xml_text("\n".join(diff_sentences(diff)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _xml_text(text: str) -> str:
    """Replace characters that XML doesn't allow."""
    return "".join(
        c if c in "\t\n\r" or 0x20 <= ord(c) < 0xD800 or 0xE000 <= ord(c) < 0xFFFE or ord(c) > 0xFFFF else "\ufffd"
        for c in text
    )
