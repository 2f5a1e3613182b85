"""Dumps of a run, alone or beside traces, through the session, the routes, Python, and the command line."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import fsspec
import pytest
from werkzeug.test import Client

import torch_tb_profiler
from tests.report.test_report import answers, embedded_data
from tests.support.dumps import DrawnJob, hung_job
from tests.support.traces import document
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.http import App
from torch_tb_profiler.mcp.tools import Tools
from torch_tb_profiler.session import open_session
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.hangs.payload import HangsPayload

TRACE = document([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])
SENTENCE = "Rank 1 never called all_reduce 4; ranks 0, 2 and 3 have waited 10 min for it."


def test_a_folder_of_dumps_is_a_run_without_workers(tmp_path: Path) -> None:
    hung_job().write(tmp_path / "hang")
    with open_session(str(tmp_path)) as session:
        client = Client(App(session))
        (run,) = ask(client, "/runs")["runs"]
        assert (run["name"], run["workers"], run["dumps"]) == ("hang", 0, 4) and run["bytes"] > 0
        available = {view["slug"] for view in ask(client, "/views")["views"] if view["available"]}
        assert available == {"hangs"}
        body = ask(client, "/view/hangs")
        assert plain_text(body["payload"]["headline"]) == SENTENCE
        answer = client.get("/view/operators")
        assert answer.status_code == 404 and "no trace" in answer.get_data(as_text=True)
        assert client.get("/view/distributed").status_code == 404


def ask(client: Client, path: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(client.get(path).get_data())
    return body


def plain_text(phrases: list[dict[str, Any]]) -> str:
    return "".join(phrase["text"] for phrase in phrases)


def test_dumps_beside_traces_belong_to_their_run_and_change_no_default(tmp_path: Path) -> None:
    hung_job().write(tmp_path / "job" / "fr")
    hung_job(culprit=2).write(tmp_path / "a_hang")
    (tmp_path / "job" / "w.1.pt.trace.json").write_bytes(TRACE)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert list(log.runs) == ["a_hang", "job"]
        assert log.run().name == "job"  # a run with a trace stays the default
        assert headline(log["job"].hangs().data) == SENTENCE
        assert log["a_hang"].hangs().data.verdict.culprit_ranks == [2]
        with pytest.raises(NotFoundError, match="no trace"):
            log["a_hang"].operators()
    (tmp_path / "job" / "fr" / "nccl_trace_rank_0").unlink()
    with open_session(str(tmp_path)) as session:
        assert session.unavailable_views("job", None, None) is None  # its trace is not read yet


def headline(payload: HangsPayload) -> str:
    return plain(payload.headline)


def test_a_run_without_dumps_has_none_to_show(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").write_bytes(TRACE)
    with torch_tb_profiler.open(str(tmp_path)) as log, pytest.raises(NotFoundError, match="no flight recorder"):
        log.run().hangs()


def test_dumps_in_a_bucket_give_the_same_answer(tmp_path: Path) -> None:
    bucket = fsspec.filesystem("memory")
    job = hung_job()
    for rank in range(4):
        bucket.pipe_file(f"/hangs/job/nccl_trace_rank_{rank}", job.data(rank))
    with torch_tb_profiler.open("memory://hangs") as log:
        assert log["job"].hangs().data.verdict.culprit_ranks == [1]


def test_many_dumps_are_read_by_worker_processes(tmp_path: Path) -> None:
    hung_job(world=120, culprit=77).write(tmp_path)
    with open_session(str(tmp_path), Settings(cache_bytes=0, small_file_bytes=1000)) as session:
        answer = session.view("hangs", wait=True)
        assert answer.payload is not None
        assert json.loads(answer.payload)["verdict"]["culprit_ranks"] == [77]


def test_a_damaged_dump_costs_only_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = hung_job().write(tmp_path)
    (folder / "nccl_trace_rank_0").write_bytes(b"\x80\x02cos\nsystem\n.")
    assert main(["view", "hangs", str(tmp_path)]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["verdict"]["culprit_ranks"] == [1] and payload["verdict"]["unseen_waiting_ranks"] == [0]
    row = payload["ranks"][0]
    assert row["state"] == "unreadable" and "refused" in row["problem"] and row["file"] == "nccl_trace_rank_0"


def test_the_form_with_stacks_is_read_where_both_are_there(tmp_path: Path) -> None:
    folder = hung_job().write(tmp_path)
    for rank in range(4):
        (folder / f"nccl_trace_rank_{rank}.json").write_bytes(hung_job().json(rank))
    with torch_tb_profiler.open(str(tmp_path)) as log:
        payload = log.run().hangs().data
    assert payload.verdict.line == "/job/train.py:88" and len(payload.ranks) == 4


def test_the_log_of_a_job_says_what_its_watchdogs_gave_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = (
        "[rank{0}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds before "
        "timing out.\n"
    )
    folder = hung_job().write(tmp_path, after_ns=10**15)
    (folder / "job.out").write_text(line.format(0) + line.format(3))
    (folder / "other.log").write_text("step 7\n")
    with torch_tb_profiler.open(str(tmp_path)) as log:
        payload = log.run().hangs().data
    facts = {fact.title: fact.text for fact in payload.facts}
    assert facts["Watchdog"] == "gave up all_reduce 4 after 10 min on ranks 0 and 3"
    assert headline(payload) == SENTENCE and not payload.problems  # the files' times are those of a copy
    monkeypatch.setattr("torch_tb_profiler.session.answers.dumps.MAX_LOGS", 1)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert log.run().hangs().data.problems == ["Only 1 of 2 logs were searched for timeouts."]


def test_two_dumps_of_a_job_in_one_folder_say_whether_it_runs(tmp_path: Path) -> None:
    job = hung_job()
    job.write(tmp_path, after_ns=2 * 10**9, series="first_rank_")
    for entries in job.entries.values():
        for entry in entries:
            entry.update(state="completed", retired=True)
    job.call("all_reduce", [1]).call("all_reduce", [0], done=False).write(tmp_path, after_ns=60 * 10**9)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert log.run().hangs().data.verdict.verdict == "running"


def test_an_exit_code_for_a_hang_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hang, healthy = hung_job().write(tmp_path / "a"), DrawnJob(2).call("all_reduce").write(tmp_path / "b")
    assert main(["view", "hangs", str(hang)]) == 0
    assert main(["view", "hangs", str(hang), "--fail-on-hang"]) == 3
    assert main(["view", "hangs", str(healthy), "--fail-on-hang"]) == 0
    assert main(["view", "overview", str(hang), "--fail-on-hang"]) == 2
    capsys.readouterr()


def test_a_stack_beside_the_dumps_says_where_the_culprit_is(tmp_path: Path) -> None:
    folder = hung_job().write(tmp_path)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        payload = log.run().hangs().data
    assert "py-spy dump" in plain(payload.explanation) and payload.stacks[-1].source == "flight recorder"
    (folder / "rank1.stack.txt").write_text('Thread 7 (idle): "MainThread"\n    load (data.py:3)\n')
    (folder / "rank2.stack.txt").write_text("Permission denied\n")
    with torch_tb_profiler.open(str(tmp_path)) as log:
        payload = log.run().hangs().data
    stack = payload.stacks[-1]
    assert (stack.source, stack.ranks, stack.frames[0].file) == ("py-spy", [1], "data.py")
    assert "py-spy" not in plain(payload.explanation)
    assert payload.problems[0].startswith("rank2.stack.txt can't be read: the text has no stack")


def test_a_pickle_with_a_rank_in_its_name_stays_a_memory_snapshot(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").write_bytes(TRACE)
    (tmp_path / "snapshot_0.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": []}))
    with open_session(str(tmp_path)) as session:
        (run,) = session.catalog.runs
        assert [file.name for file in run.memory_files] == ["snapshot_0.pickle"] and not run.dumps


def test_a_hostile_name_of_a_group_stays_text(tmp_path: Path) -> None:
    job = DrawnJob(2, {"<script>": [0, 1]}).call("all_reduce", [0], group="<script>", done=False)
    folder = job.write(tmp_path)
    os.utime(folder / "nccl_trace_rank_0", (1, 1))  # older than what it holds: no time of the dump
    with torch_tb_profiler.open(str(tmp_path)) as log:
        payload = log.run().hangs().data
    assert payload.verdict.group == "<script>" and payload.as_of_ns is not None


def test_every_surface_says_the_same_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hung_job().write(tmp_path / "hang")
    (tmp_path / "hang" / "nccl_trace_rank_3").write_bytes(b"")
    sentence = (
        "Rank 1 never called all_reduce 4; ranks 0 and 2 have waited 10 min for it."  # rank 3 isn't known to
    )
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert log["hang"].summary().headline[0] == sentence
        assert "nccl_trace_rank_3 can't be read: the file is empty" in log["hang"].summary().health.notes[0]
    assert main(["summary", str(tmp_path)]) == 0
    assert f"- {sentence}" in capsys.readouterr().out.replace("\\", "")
    assert main(["check", str(tmp_path)]) == 1  # one dump yields nothing
    checked = capsys.readouterr().out
    assert f"hang    hang: {sentence}" in checked and "ready   hang/nccl_trace_rank_0: 4 entries" in checked
    assert "failed  hang/nccl_trace_rank_3: the file is empty" in checked
    with open_session(str(tmp_path)) as session:
        tools = Tools(session)
        assert sentence in tools.view("hangs") and sentence in tools.summary().replace("\\", "")
        assert '"flight_recorder_dumps":4' in tools.list_runs().replace(" ", "")
    output = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "-o", str(output)]) == 0
    report = embedded_data(output.read_text("utf-8"))
    names = report["recordings"][0]
    status, body = answers(report)["view/hangs", json.dumps({"run": names["run"], "span": ""}, sort_keys=True)]
    assert status == 200 and plain_text(body["payload"]["headline"]) == sentence


def test_the_summary_of_a_run_with_traces_leads_with_the_hang(tmp_path: Path) -> None:
    hung_job().write(tmp_path)
    (tmp_path / "w.1.pt.trace.json").write_bytes(TRACE)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert log.run().summary().headline[0] == SENTENCE
    DrawnJob(4).call("all_reduce").write(tmp_path)
    with torch_tb_profiler.open(str(tmp_path)) as log:
        assert "rank" not in " ".join(log.run().summary().headline).lower()
