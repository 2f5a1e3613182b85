"""Iterations of AORTA's metrics in traces of the same process: joined where they fit, else a note."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers.aorta import Busy, line, write
from tests.support.producers.aorta_traces import (
    BEGINS,
    COLLECTIVES,
    STEPS,
    iterations,
    timed_iterations,
    write_capture,
    write_trace,
)
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Session, open_session


@pytest.fixture
def job(tmp_path: Path) -> Path:
    write_trace(tmp_path / "artifacts" / "torch_profiler" / "rank0")
    return tmp_path / "artifacts"


class Opened:
    """The trace of rank 0 of a job."""

    def __init__(self, folder: Path, run: str = "artifacts/torch_profiler") -> None:
        self._folder, self._run = folder, run

    def ask(self, view: str, **params: str) -> dict[str, Any]:
        with open_session(str(self._folder.parent), Settings(executor="serial", cache_dir="")) as session:
            return self._payload(session, view, params)

    def _payload(self, session: Session, view: str, params: dict[str, str]) -> dict[str, Any]:
        found = session.view(view, self._run, None, params=params, wait=True)
        assert found.payload is not None, found.state
        payload: dict[str, Any] = json.loads(found.payload)
        return payload

    def notes(self) -> dict[str, str]:
        kinds = {note["kind"]: note["message"] for note in self.ask("overview")["health"]}
        return {kind: message for kind, message in kinds.items() if kind.startswith("metrics")}

    def slices(self) -> list[tuple[str, int, int]]:
        """Return (name, start, duration) in µs of all slices of the iterations."""
        found = self.ask("trace/search", query="^(iteration|epoch)", regex="true")
        return sorted((hit["name"], hit["start_ns"] // 1000, hit["duration_ns"] // 1000) for hit in found["rows"])


def test_an_iteration_begins_with_the_first_event_record_of_its_step(job: Path) -> None:
    write(job, 0, iterations(2, 3, 4, 5))
    opened = Opened(job)
    assert opened.notes() == {
        "metrics_joined": "rank_00_metrics.jsonl: 2 iterations joined by step number; each lies in its step, "
        "at most 500 µs from where it is drawn"
    }
    assert opened.slices() == [
        ("epoch0_step3_allreduce", 500, 100),
        ("epoch0_step3_compute", 250, 300),
        ("epoch0_step4_allreduce", 1300, 100),  # no event is recorded in step 4, so it begins with the step
        ("epoch0_step4_compute", 1050, 300),
        ("iteration 3", 200, 500),
        ("iteration 4", 1000, 500),
    ]


def test_the_slice_of_an_iteration_shows_its_metrics(job: Path) -> None:
    write(job, 0, iterations(3, grad_norm=2.5))
    opened = Opened(job)
    (hit,) = opened.ask("trace/search", query="iteration 3")["rows"]
    assert opened.ask("trace/event", event=str(hit["event"]))["args"] == {
        "iteration loss": 0.25,
        "iteration lr": 0.001,
        "iteration grad norm": 2.5,
        "iteration global step": 3,
        "iteration epoch": 0,
    }


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (iterations(7, 8), "no iteration has the number of a step"),
        (iterations(3, 4, total=1200), "an iteration takes longer than the step with its number"),
        (iterations(3, 4) + iterations(3, 4), "2 recordings of the file fit the steps"),
    ],
)
def test_iterations_that_may_be_others_are_not_joined(job: Path, lines: list[dict[str, Any]], reason: str) -> None:
    write(job, 0, lines)
    opened = Opened(job)
    assert opened.notes() == {
        "metrics_outside": f"rank_00_metrics.jsonl: its iterations are not joined with the steps: {reason}"
    }
    assert opened.slices() == []


def test_of_several_recordings_the_one_that_fits_is_joined(job: Path) -> None:
    write(job, 0, iterations(3, 4, total=1200) + iterations(3, 4, total=600))
    assert [each for each in Opened(job).slices() if each[0] == "iteration 4"] == [("iteration 4", 1000, 600)]


def test_metrics_of_other_ranks_are_left_out(job: Path) -> None:
    write(job, 1, iterations(3, 4, rank=1))
    opened = Opened(job)
    assert opened.notes() == {} and opened.slices() == []
    write_trace(job / "tool")
    write(job, 0, iterations(3, 4))
    assert list(Opened(job, "artifacts/tool").notes()) == ["metrics_unknown"]


def test_broken_metrics_cost_a_note_and_nothing_else(job: Path) -> None:
    (job / "rank_00_metrics.jsonl").write_text('{"global_step": 0, "profile": {}}\n')
    opened = Opened(job)
    assert "its iterations can't be used: the file has no iterations" in opened.notes()["metrics_unreadable"]
    assert opened.ask("kernels")["rows"][0]["total_ns"] == 600_000


def test_a_trace_without_steps_is_left_as_it_is(job: Path) -> None:
    write(job, 0, iterations(3, 4))
    write_trace(job / "torch_profiler" / "rank0", [each for each in STEPS if "ProfilerStep" not in each])
    assert Opened(job).notes() == {}


CAPTURE = "rocprof_traces/run_20260101"


def iteration_slices(opened: Opened) -> list[tuple[str, int, int]]:
    return [each for each in opened.slices() if each[0].startswith("iteration")]


def test_a_capture_without_steps_is_joined_by_the_kernels_of_its_collectives(tmp_path: Path) -> None:
    write(tmp_path / "artifacts", 0, timed_iterations())
    write_capture(tmp_path / CAPTURE, more=[10, 5600])
    opened = Opened(tmp_path / "artifacts", CAPTURE)
    assert opened.notes() == {
        "metrics_joined": "rank_00_metrics.jsonl: 5 iterations joined by 10 kernels of collectives, which fit "
        "their ranges in one way; each lies at most 25.0 µs from where it is drawn"
    }
    first = 10  # the trace begins with its first kernel
    assert iteration_slices(opened) == [
        (f"iteration {step}", begin - first, 800) for step, begin in enumerate(BEGINS)
    ]


@pytest.mark.parametrize(
    ("lines", "capture", "reason"),
    [
        (timed_iterations(), {"late": -60}, "the kernels of the collectives don't lie in their ranges"),
        (timed_iterations()[:2], {}, "they are fewer than 3"),
        (timed_iterations([*COLLECTIVES[:4], []]), {}, "one of them has no range of a collective"),
        (timed_iterations([*COLLECTIVES, *COLLECTIVES]), {}, "the trace has fewer kernels of a collective"),
        (timed_iterations([[(0, 800), (0, 800)]] * 5), {}, "are so similar that they fit just as well"),
        (
            timed_iterations([[(0, 800), (0, 800)]] * 5),
            {"more": [5600, 5900]},
            "the ranges fit the kernels in 2 ways",
        ),
        (
            [line(step, [Busy("reducescatter", 0, 80)], 800) for step in range(5)],
            {},
            "no range of a collective has",
        ),
        (timed_iterations() * 2, {}, "2 recordings of the file fit the kernels"),
    ],
)
def test_a_capture_that_fits_in_no_way_or_in_several_says_what_to_record(
    tmp_path: Path, lines: list[dict[str, Any]], capture: dict[str, Any], reason: str
) -> None:
    write(tmp_path / "artifacts", 0, lines)
    write_capture(tmp_path / CAPTURE, **capture)
    opened = Opened(tmp_path / "artifacts", CAPTURE)
    (note,) = opened.notes().items()
    assert note[0] == "metrics_outside" and reason in note[1]
    assert 'mark steps with roctx (`roctxRangePush("step 4")`) and record with `--marker-trace`' in note[1]
    assert opened.slices() == []


def test_a_capture_with_steps_of_roctx_is_joined_by_number(tmp_path: Path) -> None:
    write(tmp_path / "artifacts", 0, timed_iterations())
    write_capture(tmp_path / CAPTURE, marked=True)
    opened = Opened(tmp_path / "artifacts", CAPTURE)
    assert "5 iterations joined by step number" in opened.notes()["metrics_joined"]
    assert iteration_slices(opened) == [
        (f"iteration {step}", begin - BEGINS[0], 800) for step, begin in enumerate(BEGINS)
    ]


def overlap_links(folder: Path, *, read: Sequence[str] = (), span: str = "1") -> list[list[str | None]]:
    """Return where the cells of the metrics' maps lead beyond their own run, once the runs in `read` are read."""
    with open_session(str(folder.parent), Settings(executor="serial", cache_dir="")) as session:
        for run in read:
            assert session.view("overview", run, None, wait=True).payload is not None
        found = session.view("overlap", folder.name, None, span, wait=True)
        assert found.payload is not None, found.state
        links: list[list[str | None]] = json.loads(found.payload)["traced_links"]
    return links


TRACES = "artifacts/torch_profiler"


def test_an_iteration_leads_to_the_trace_of_its_process_in_another_run(job: Path) -> None:
    write(job, 0, iterations(2, 3, 4))
    write(job, 1, iterations(2, 3, 4, rank=1))
    assert overlap_links(job) == [[None] * 3] * 2, "nothing is known of a trace that was not read"
    place = "trace?run=artifacts%2Ftorch_profiler&worker=rank0&span=1&at="
    assert overlap_links(job, read=[TRACES]) == [
        [None, f"{place}200000-700000", f"{place}1000000-1500000"],
        [None] * 3,
    ]


def test_only_the_recording_that_was_joined_leads_to_the_trace(job: Path) -> None:
    write(job, 0, iterations(3, 4, total=1200) + iterations(3, 4, total=600))
    assert overlap_links(job, read=[TRACES], span="1") == [[None, None]]
    assert all(overlap_links(job, read=[TRACES], span="2")[0])


def test_an_iteration_leads_to_the_capture_of_rocprofv3(tmp_path: Path) -> None:
    write(tmp_path / "artifacts", 0, timed_iterations())
    write_capture(tmp_path / CAPTURE, more=[10, 5600])
    (links,) = overlap_links(tmp_path / "artifacts", read=[CAPTURE])
    ends = [f"at={1000 * (begin - 10)}-{1000 * (begin + 790)}" for begin in BEGINS]
    assert [link is not None and link.rpartition("&")[2] for link in links] == ends


def test_a_page_that_shows_iterations_has_the_traces_beside_them_read(job: Path) -> None:
    write(job, 0, iterations(3, 4))
    with open_session(str(job.parent), Settings(executor="serial", cache_dir="")) as session:
        session.view("overlap", "artifacts", None, wait=True)
        first = session.view("overlap", "artifacts", None)
        assert first.payload is not None and first.loading == 1
        session.view("overview", TRACES, None, wait=True)
        then = session.view("overlap", "artifacts", None)
        assert then.payload is not None and then.loading == 0
        assert "at=200000-700000" in json.loads(then.payload)["traced_links"][0][0]
