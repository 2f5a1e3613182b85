"""No two views of a run contradict each other: who is late, how long a step takes, and what would shorten it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.corpus import real_traces
from tests.surfaces.asking import Surfaces
from torch_tb_profiler.base.errors import ProfilerError

pytestmark = real_traces.MARKS

Payload = dict[str, Any]

NOTHING = ("Nothing stands out", "nothing to gain", "No known fix")
"""What no view says of a trace that another one gives advice on."""

MIN_CONTRADICTION = 0.01
"""Step times of two views that differ by less than this ratio are the same: one rounds, the other replays."""


class ViewFigures:
    """What the views say of a worker, as plain values; None where a view has nothing to say."""

    def __init__(self, surfaces: Surfaces, run: str, worker: str) -> None:
        self._surfaces, self.run, self.worker = surfaces, run, worker

    def view(self, slug: str) -> Payload | None:
        """Return what a view answers, None where it is unavailable or the file can't be read."""
        try:
            answer = self._surfaces.session.view(slug, self.run, self.worker, wait=True)
        except ProfilerError:
            return None
        payload: Payload | None = None if answer.payload is None else json.loads(answer.payload)
        return payload

    def contradictions(self) -> Iterator[str]:
        """Yield what two views say otherwise about the same thing."""
        overview = self.view("overview/ranks") or self.view("overview")
        if overview is None:
            return
        job, idle, path = self.view("distributed"), self.view("idle"), self.view("critical_path/beside")
        yield from _step_times(overview, idle, self.view("critical_path"), self.view("diff"))
        yield from _nothing_beside_advice(overview, [overview, idle, path])
        if job is not None and job["rank_count"] > 1:
            yield from _stragglers(job["verdict"], overview, self.view("idle/ranks"), path)
        if path is not None and path["communication"] is not None:
            yield from _savings_of_communication(path, overview)


def _step_times(
    overview: Payload, idle: Payload | None, path: Payload | None, diff: Payload | None
) -> Iterator[str]:
    average = overview["average"]
    if average is None:
        return
    times = {"Overview": average["duration_ns"]}
    if idle is not None and idle["counted"]:
        times["Idle time"] = idle["duration_ns"] / idle["counted"]
    if path is not None and path["path"]["steps"]:
        times["Critical path"] = path["path"]["duration_ns"]
    if diff is not None and len(diff["candidate"]["recordings"]) == 1 and diff["candidate"]["steps"]:
        times["Diff"] = diff["candidate"]["typical_ns"]
    for name, time in times.items():
        if abs(time - times["Overview"]) > MIN_CONTRADICTION * times["Overview"]:
            yield f"a step takes {times['Overview']:,.0f} ns in Overview, {time:,.0f} in {name}"


def _nothing_beside_advice(overview: Payload, views: list[Payload | None]) -> Iterator[str]:
    if not overview["recommendations"]:
        return
    for view in views:
        for field in ("headline", "explanation", "no_advice"):
            text = plain((view or {}).get(field, []))
            if any(nothing in text for nothing in NOTHING):
                yield f"{text!r} beside the advice {plain(overview['recommendations'][0]['title'])!r}"


def _stragglers(verdict: Payload, overview: Payload, idle: Payload | None, path: Payload | None) -> Iterator[str]:
    """Check that views beside other ranks name a straggler where Distributed does, and nobody else."""
    advised = [each for each in overview["recommendations"] if each["id"] == "straggler"]
    complete = overview["average"] is not None and overview["no_advice"] == []
    if verdict["kind"] == "straggler" and complete and not advised and overview["beside"]:
        yield "Distributed names a straggler, Overview advises nothing about it"
    if verdict["kind"] != "straggler" and advised:
        yield f"Overview advises on a straggler, Distributed says {plain(verdict['text'])!r}"
    for name, view in (("Overview", overview), ("Critical path", path), ("Idle time", idle)):
        text = plain((view or {}).get("beside", []))
        if "straggler: " in text and verdict["kind"] != "straggler":
            yield f"{name} says {text!r}, Distributed {plain(verdict['text'])!r}"
    guesses = any(each["id"] == "late_rank" for each in overview["recommendations"])
    if guesses and verdict["kind"] in ("balanced", "uneven"):
        yield "Overview guesses that a rank is late, Distributed finds none"


def _savings_of_communication(path: Payload, overview: Payload) -> Iterator[str]:
    """Check that no what-if and no advice saves waiting for others, which no network shortens."""
    parts, now = path["communication"], path["path"]["duration_ns"]
    on_path = sum(parts[name] for name in ("transfer_ns", "waiting_ns", "uncompared_ns"))
    for result in path["what_if"]:
        if result["target"] == "communication":
            saved = now - result["step_ns"]
            if saved > max(on_path - parts["waiting_ns"], 0.05 * now) + MIN_CONTRADICTION * now:
                yield f"communication saves {saved:,.0f} ns, of which {parts['waiting_ns']:,.0f} is waiting"
    waiting = overview["waiting"]
    for advice in overview["recommendations"]:
        if advice["id"] == "communication" and waiting is not None and advice["gain_ns"] is not None:
            most = waiting["transfer_ns"] + waiting["uncompared_ns"]
            if advice["gain_ns"] > most * (1 + MIN_CONTRADICTION):
                yield f"{plain(advice['title'])!r} saves {advice['gain_ns']:,.0f} ns of {most:,.0f} transferred"


def plain(text: list[dict[str, str]]) -> str:
    """Return a text of a payload without its links."""
    return "".join(phrase["text"] for phrase in text)


def test_no_two_views_of_a_real_run_contradict_each_other(surfaces: Surfaces) -> None:
    found = []
    for run in surfaces.log:
        first = next(iter(surfaces.log[run].workers))
        found += [f"{run}: {each}" for each in ViewFigures(surfaces, run, first).contradictions()]
    assert found == []


def test_a_contradiction_is_found() -> None:
    """Each check sees the contradiction that it is there for."""

    def words(text: str) -> list[dict[str, str]]:
        return [{"text": text}]

    advice: Payload = {"id": "communication", "title": words("Compress"), "gain_ns": 90.0}
    overview: Payload = {
        "average": {"duration_ns": 100.0}, "recommendations": [advice], "no_advice": [], "beside": words("x"),
        "waiting": {"transfer_ns": 5.0, "waiting_ns": 80.0, "uncompared_ns": 0.0}, "headline": words("Slow."),
    }  # fmt: skip
    idle: Payload = {"counted": 2, "duration_ns": 300.0, "headline": words("Nothing stands out: no known fix.")}
    path: Payload = {
        "communication": {"transfer_ns": 5.0, "waiting_ns": 80.0, "uncompared_ns": 0.0},
        "path": {"duration_ns": 100.0, "steps": 2}, "what_if": [{"target": "communication", "step_ns": 20.0}],
        "beside": words("Rank 2 is a straggler: it is late."),
    }  # fmt: skip
    assert len(list(_step_times(overview, idle, path, None))) == 1
    assert len(list(_nothing_beside_advice(overview, [idle]))) == 1
    assert len(list(_savings_of_communication(path, overview))) == 2
    balanced: Payload = {"kind": "balanced", "text": words("The ranks are balanced.")}
    assert len(list(_stragglers(balanced, overview, None, path))) == 1
    late: Payload = {"kind": "straggler", "text": words("Rank 2 is a straggler.")}
    assert len(list(_stragglers(late, overview, None, path))) == 1
    straggling = {**overview, "recommendations": [{"id": "straggler"}, {"id": "late_rank"}]}
    assert len(list(_stragglers(balanced, straggling, None, None))) == 2
    agreeing = {**overview, "recommendations": [{**advice, "gain_ns": 5.0}]}
    assert not [*_stragglers(balanced, agreeing, None, None), *_nothing_beside_advice(agreeing, [overview])]
