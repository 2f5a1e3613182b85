"""Request spans beside a trace: arrivals, queue, first token, a lane on the timeline, and what can't be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.spans import request_span, spans_document
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Session, open_session

BEGIN = 1_795_000_000_000_000_000
MS = 1_000_000


def step(label: str, start_ms: int, length_ms: int) -> dict[str, Any]:
    span = {"ts": 1000 * start_ms, "dur": 1000 * length_ms, "pid": 1, "tid": 1}
    return {"ph": "X", "cat": "user_annotation", "name": f"step[{label}]", "args": {}, **span}


STEPS = [
    *(step("DECODE bs=1", 10 * n, 9) for n in range(10)),
    step("EXTEND bs=1 toks=64", 400, 20),
    *(step("DECODE bs=1", 420 + 10 * n, 9) for n in range(8)),
]


def request(start_ms: int, end_ms: int, queue: float, first: float, name: str = "r") -> dict[str, Any]:
    return request_span(
        BEGIN + start_ms * MS,
        BEGIN + end_ms * MS,
        request__id=name,
        latency__time_in_queue=queue,
        latency__time_to_first_token=first,
    )


def write(folder: Path, spans: str | None, *, name: str = "otlp.jsonl", base_ns: int = BEGIN) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {"schemaVersion": 1, "baseTimeNanoseconds": base_ns, "traceEvents": STEPS}
    (folder / "rank0.1.pt.trace.json").write_text(json.dumps(document))
    if spans is not None:
        (folder / name).write_text(spans)


def answer(session: Session, view: str, **params: str) -> dict[str, Any]:
    found = session.view(view, "run", None, params=params, wait=True)
    assert found.payload is not None, found.state
    payload: dict[str, Any] = json.loads(found.payload)
    return payload


def open_run(tmp_path: Path) -> Session:
    return open_session(str(tmp_path), Settings(executor="serial", cache_dir=""))


def health(session: Session) -> dict[str, str]:
    return {note["kind"]: note["message"] for note in answer(session, "overview")["health"]}


SPANS = spans_document(request(-50, 95, 0.01, 0.03, "old"), request(300, 499, 0.1, 0.118, "new")) + "\n"
SPANS += spans_document(request(-9000, -8000, 0.5, 0.6, "long ago"))


@pytest.mark.parametrize("name", ["otlp.jsonl", "vllm_spans.json", "otel-traces.jsonl"])
def test_spans_beside_a_trace_give_arrivals_queue_and_first_token(tmp_path: Path, name: str) -> None:
    write(tmp_path / "run", SPANS, name=name)
    with open_run(tmp_path) as session:
        assert [run.name for run in session.catalog.runs] == ["run"]
        payload = answer(session, "serving")
    rates, requests = payload["rates"], payload["requests"]
    assert (rates["time_to_first_token_ns"], rates["queue_median_ns"]) == (74 * MS, 55 * MS)
    assert rates["arrivals"] == 1  # the other one was there before
    assert requests["arrival_ns"] == [-50 * MS, 300 * MS] and requests["end_ns"] == [95 * MS, 499 * MS]
    assert "time_to_first_token_ns" not in rates["reasons"]
    assert len(payload["iterations"]["phase"]) == len(STEPS)


def test_requests_are_lanes_of_the_timeline_within_the_recording(tmp_path: Path) -> None:
    write(tmp_path / "run", spans_document(request(-50, 200, 0.01, 0.03, "a"), request(90, 9000, 0.1, 0.2, "b")))
    with open_run(tmp_path) as session:
        event = answer(session, "serving")["requests"]["event"]
        shown = [answer(session, "trace/event", event=str(row)) for row in event]
        trace = answer(session, "trace")
        lanes = [track["name"] for track in trace["tracks"] if track["slices"] in (2, 3, 4)]
        selection = answer(session, "trace/headline", begin="0", end=str(499 * MS))
    assert [(each["name"], each["start_ns"]) for each in shown] == [("a", 0), ("b", 90 * MS)]
    assert shown[1]["duration_ns"] == (499 - 90) * MS
    assert lanes == ["lane 1", "lane 2"]  # they overlap
    # No thread runs requests: the work of the window is that of the engine's thread.
    headline = "".join(part["text"] for part in selection["headline"])
    assert "step[" in headline and "decode" not in headline


def test_a_request_that_is_there_tells_that_a_pause_is_no_wait_for_requests(tmp_path: Path) -> None:
    for folder, spans in (("none", None), ("spans", SPANS)):
        write(tmp_path / folder / "run", spans)
    idle = {}
    for folder in ("none", "spans"):
        with open_run(tmp_path / folder) as session:
            idle[folder] = answer(session, "serving")["idle_by_cause"]
    assert idle["none"]["idle"] == pytest.approx(301 * MS, rel=0.01)
    assert idle["spans"]["idle"] == pytest.approx(201 * MS, rel=0.02)  # from 300 ms on a request waited
    assert idle["spans"]["host_unrecorded"] - idle["none"]["host_unrecorded"] == pytest.approx(100 * MS, rel=0.02)


def test_what_cannot_be_used_is_named_and_costs_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "broken" / "run", "no spans")
    write(tmp_path / "outside" / "run", SPANS, base_ns=BEGIN + 10**15)
    write(tmp_path / "timeless" / "run", SPANS, base_ns=0)
    for folder, kind, message in (
        ("broken", "requests_unreadable", "otlp.jsonl: its requests can't be used"),
        ("outside", "requests_outside", "none of the 3 requests beside the trace ran while it was recorded"),
        ("timeless", "requests_outside", "the trace doesn't say when it was recorded"),
    ):
        with open_run(tmp_path / folder) as session:
            assert message in health(session)[kind]
            payload = answer(session, "serving")
        assert payload["requests"] is None and payload["rates"]["time_to_first_token_ns"] is None
        assert "start SGLang with" in payload["rates"]["reasons"]["time_to_first_token_ns"]


LOG = """[2026-11-18 19:06:40] Profiling starts. Traces will be saved to: /traces
[2026-11-18 19:06:40 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.25, #queue-req: 2
[2026-11-18 19:06:40] ReqTimeStats(rid=7f, input_len=64, cached_input_len=0, output_len=9, type=unified): \
queue_duration=100.00ms, initial_prefill_elapsed=18.00ms, forward_duration=99.00ms, entry_time=1795000000.300
"""


def test_a_server_log_beside_a_trace_gives_arrivals_queue_and_first_token(tmp_path: Path) -> None:
    write(tmp_path / "run", LOG, name="sglang_tp8.log")
    with open_run(tmp_path) as session:
        assert [run.name for run in session.catalog.runs] == ["run"]
        payload = answer(session, "serving")
        counters = {track["name"] for track in answer(session, "trace")["tracks"] if track["kind"] == "counter"}
    rates, requests = payload["rates"], payload["requests"]
    assert (rates["time_to_first_token_ns"], rates["queue_median_ns"]) == (118 * MS, 100 * MS)
    assert rates["arrivals"] == 1 and requests["arrival_ns"] == [300 * MS] and requests["end_ns"] == [499 * MS]
    assert (rates["queued_mean"], rates["queued_max"]) == (2.0, 2)
    assert counters >= {"log: requests running", "log: requests waiting", "log: KV cache usage"}


def test_whole_seconds_do_not_tell_what_arrived_within_the_trace(tmp_path: Path) -> None:
    """Nor that a request was there in a pause of less than a second."""
    received = "[2026-11-18 19:06:40] Receive: obj=GenerateReqInput(rid='7f')\n"
    write(tmp_path / "run", LOG.splitlines(keepends=True)[0] + received, name="server.log")
    with open_run(tmp_path) as session:
        payload = answer(session, "serving")
    assert payload["rates"]["arrivals"] is None and "whole seconds" in payload["rates"]["reasons"]["arrivals"]
    assert payload["requests"]["arrival_precision_ns"] == [10**9] and payload["requests"]["end_ns"] == [None]
    assert payload["idle_by_cause"]["idle"] == pytest.approx(301 * MS, rel=0.01)


def test_an_unusable_log_is_named_and_other_logs_are_not(tmp_path: Path) -> None:
    for folder, log, notes in (
        ("zone", LOG.splitlines(keepends=True)[1], {"requests_unreadable"}),
        (
            "late",
            LOG.splitlines(keepends=True)[0] + LOG.splitlines()[1].replace("19:06:40", "19:09:40"),
            {"requests_outside"},
        ),
        ("other", "epoch 3 loss 0.1\n", set()),
    ):
        write(tmp_path / folder / "run", log, name="engine.txt")
        with open_run(tmp_path / folder) as session:
            found = health(session)
            assert {kind for kind in found if kind.startswith("requests")} == notes, folder
            assert "`sglang.log`" in answer(session, "serving")["rates"]["reasons"]["queued_mean"]


def test_a_trace_whose_name_reads_like_spans_stays_a_trace(tmp_path: Path) -> None:
    write(tmp_path / "run", None)
    (tmp_path / "run" / "rank0.1.pt.trace.json").rename(tmp_path / "run" / "spans.json")
    with open_run(tmp_path) as session:
        assert [run.name for run in session.catalog.runs] == ["run"]
        assert answer(session, "serving")["requests"] is None
