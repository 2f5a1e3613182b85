"""A diff as a comment on a pull request."""

from __future__ import annotations

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli.diff._words import operator_name, said, step_rows, verdict_word
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import Check, describe_change
from torch_tb_profiler.views.diff.payload import DiffPayload
from torch_tb_profiler.views.diff.words import CATEGORIES, signed_duration

MOST_OPERATORS = 10

LONGEST_NAME = 80


def markdown(diff: DiffPayload, gate: list[Check]) -> str:
    """A comment for a pull request: the answer, what explains it, the operators that changed significantly."""
    mark = {"slower": "🔴", "faster": "🟢", "cannot_tell": "🟡"}.get(diff.step.verdict, "⚪")
    lines = [f"### {mark} {_escaped(plain(diff.headline))}", ""]
    if diff.explanation:
        lines += [*(_escaped(plain(sentence)) for sentence in diff.explanation), ""]
    if gate:
        lines += ["| Check | | |", "|---|---|---|"]
        lines += [
            f"| {_code(check.name)} | {verdict_word(check)} | {_escaped(check.message)} |" for check in gate
        ] + [""]
    waterfall = diff.waterfalls[0]
    lines += ["| Per step | Base | Candidate | Change | 95% interval | |", "|---|--:|--:|--:|--:|---|"]
    for bar in waterfall.bars:
        if bar.base_ns or bar.candidate_ns:
            times = f"{format_duration(bar.base_ns)} | {format_duration(bar.candidate_ns)}"
            within = _interval(bar.low_ns, bar.high_ns)
            lines.append(
                f"| {CATEGORIES.get(bar.name, bar.name)} | {times} | {signed_duration(bar.delta_ns)} "
                f"| {within} | {said(bar.verdict)} |"
            )
    for row in step_rows(diff, waterfall):
        times = f"**{format_duration(row.before)}** | **{format_duration(row.now)}**"
        within = _interval(*row.interval)
        lines.append(f"| **{row.name}** | {times} | **{signed_duration(row.delta)}** | {within} | {row.verdict} |")
    lines.append("")
    lines += _changed_operators(diff)
    lines += [f"- {_escaped(plain(note))}" for note in diff.notes]
    return "\n".join(lines).rstrip() + "\n"


def _changed_operators(diff: DiffPayload) -> list[str]:
    rows = []
    for row in diff.level.operators:
        for name in ("host_self", "device_self"):
            change = getattr(row, name)
            if change.verdict in ("slower", "faster"):
                rows.append((row, name, change))
    if not rows:
        return ["No change of an operator is proven.", ""] if diff.step.low_ns is not None else []
    rows.sort(key=lambda entry: -abs(entry[2].delta_ns))
    lines = ["| Operator | Time | Change | | |", "|---|---|---|--:|---|"]
    for row, name, change in rows[:MOST_OPERATORS]:
        state = "" if row.status == "matched" else row.status.replace("_", " ")
        time, delta = name.replace("_", " "), signed_duration(change.delta_ns)
        words = f"{time} | {describe_change(change)} | {delta} | {state}"
        lines.append(f"| {_code(operator_name(row))} | {words} |")
    more = [f"{len(rows) - MOST_OPERATORS} more changed.", ""] if len(rows) > MOST_OPERATORS else []
    return [*lines, "", *more]


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{signed_duration(low)} .. {signed_duration(high)}"


def _code(text: str) -> str:
    """A name as code, so that nothing in it acts as markup, a mention or a new cell."""
    flat = " ".join(text.replace("`", "'").split())
    short = flat if len(flat) <= LONGEST_NAME else f"{flat[: LONGEST_NAME - 1]}…"
    return f"`{short.replace('|', chr(92) + '|')}`"


def _escaped(text: str) -> str:
    """A sentence whose names may come from the trace, without markup."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|@#":
        flat = flat.replace(sign, f"\\{sign}" if sign != "@" else "@\u200b")
    return flat
