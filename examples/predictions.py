"""Shared by the examples: what a change is said to bring, beside what it brought in a second recording."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from torch_tb_profiler.session import Session, open_session


class Planted(NamedTuple):
    """A cause that two runs differ in: `name` has it, `<name>_removed` does not; `target` as in critical_path."""

    name: str
    target: str
    change: str


def predict(logdir: Path, planted: list[Planted], worker: str | None = None) -> list[dict[str, Any]]:
    """Return for each cause step_ns with it, foreseen_ns and happened_ns without it, and the named part that the
    replay of the run with it calls the largest gain."""
    with open_session(str(logdir)) as session:
        return [_row(session, each, worker) for each in planted]


def _row(session: Session, planted: Planted, worker: str | None) -> dict[str, Any]:
    before = _ask(session, "critical_path", planted.name, worker)
    target = _ask(session, "critical_path/what_if", planted.name, worker, target=planted.target)
    after = _ask(session, "critical_path", f"{planted.name}_removed", worker)
    named = [row for row in before["targets"] if row["step_ns"] and row["target"] not in ("host", "device")]
    return {
        "name": planted.name,
        "target": planted.target,
        "change": planted.change,
        "step_ns": before["path"]["duration_ns"],
        "foreseen_ns": target["step_ns"][-1],
        "happened_ns": after["path"]["duration_ns"],
        "largest": min(named, key=lambda row: row["step_ns"][-1])["target"],
    }


def _ask(session: Session, slug: str, run: str, worker: str | None, **params: str) -> dict[str, Any]:
    answer = session.view(slug, run=run, worker=worker, params=params, wait=True)
    payload: dict[str, Any] = json.loads(answer.payload or b"null")
    return payload


def show(rounds: list[list[dict[str, Any]]]) -> None:
    """Print a table of Markdown; times in ms: medians, and the range where there are several rounds."""
    print("| change | target | step, ms | predicted gain, ms | gain in the second run, ms |")
    print("|---|---|---|---|---|")
    for rows in zip(*rounds, strict=True):
        now = [row["step_ns"] for row in rows]
        foreseen = [row["step_ns"] - row["foreseen_ns"] for row in rows]
        happened = [row["step_ns"] - row["happened_ns"] for row in rows]
        times = " | ".join(map(_spread, (now, foreseen, happened)))
        print(f"| {rows[0]['change']} | `{rows[0]['target']}` | {times} |")


def _spread(times: list[float]) -> str:
    middle = f"{median(times) / 1e6:.1f}"
    return middle if len(times) == 1 else f"{middle} [{min(times) / 1e6:.1f}, {max(times) / 1e6:.1f}]"
