from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import document
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import ListedRun
from torch_tb_profiler.discovery.names import parse_file_name, stamp_label, stamp_order
from torch_tb_profiler.session import Root, Session

TRACE = document([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])


def put(root: Path, *paths: str, content: bytes = TRACE) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content) if path.endswith(".gz") else content)


def find_runs(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return run -> worker -> files of its spans, in order."""
    with Session([Root(str(path))], Settings()) as session:
        return {run.name: shape(run) for run in session.scan().runs}


def shape(run: ListedRun) -> dict[str, list[str]]:
    return {worker.name: [os.path.basename(s.file.path) for s in worker.spans] for worker in run.workers}


def test_torch_handler_files_are_workers_with_spans_in_order_of_time(tmp_path: Path) -> None:
    put(
        tmp_path,
        "run/host_1.1700000000009.pt.trace.json",
        "run/host_1.1700000000010000000.pt.trace.json.gz",
        "run/host_2.1700000000001.pt.trace.json",
        "run/events.out.tfevents.1.host",
    )
    assert find_runs(tmp_path) == {
        "run": {
            "host_1": ["host_1.1700000000009.pt.trace.json", "host_1.1700000000010000000.pt.trace.json.gz"],
            "host_2": ["host_2.1700000000001.pt.trace.json"],
        }
    }


def test_stamps_in_ms_us_and_ns_order_on_one_axis() -> None:
    """Older handlers stamp in ms, newer ones in ns, files named by hand in µs; small numbers are steps."""
    stamps = ["1700000000004", "1700000000001000000", "1700000000003", "1700000000002000", "5", "12", None]
    assert sorted(stamps, key=stamp_order) == [
        None, "5", "12", "1700000000001000000", "1700000000002000", "1700000000003", "1700000000004",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stamp", "order"),
    [
        (10**11 - 1, 10**11 - 1),
        (10**11, 10**17),
        (10**15 - 1, 10**21 - 10**6),
        (10**15, 10**18),
        (10**18 - 1, 10**21 - 10**3),
        (10**18, 10**18),
    ],
)
def test_the_digits_of_a_stamp_tell_its_unit(stamp: int, order: int) -> None:
    """12 to 15 digits are ms (from 1973 on), 16 to 18 µs (from 2001 on), more ns; fewer are a step."""
    assert stamp_order(str(stamp))[1] == (order,)


def test_steps_within_a_folder_order_before_their_times_do() -> None:
    stamps = ["10.1700000000001", "9.1700000000002000", "9.1700000000001"]
    assert sorted(stamps, key=stamp_order) == ["9.1700000000001", "9.1700000000002000", "10.1700000000001"]


def test_batches_of_an_epoch_are_no_times(tmp_path: Path) -> None:
    put(tmp_path, "run/ep1-ba10-rank0.json", "run/ep1-ba9-rank0.json", "run/ep0-ba20-rank0.json")
    with Session([Root(str(tmp_path))], Settings()) as session:
        (worker,) = session.scan().runs[0].workers
    assert [span.label for span in worker.spans] == ["ep0-ba20", "ep1-ba9", "ep1-ba10"]


def test_files_in_the_log_folder_itself_are_a_run_named_after_it(tmp_path: Path) -> None:
    put(tmp_path / "log", "w.1.pt.trace.json", "nested/a/b/w.pt.trace.json")
    assert set(find_runs(tmp_path / "log")) == {"log", "nested/a/b"}


def test_one_file_is_a_log_folder_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "anything.txt", "other.pt.trace.json")
    assert find_runs(tmp_path / "anything.txt") == {tmp_path.name: {"anything.txt": ["anything.txt"]}}


def test_folders_of_ranks_fold_into_workers_and_iterations_into_spans(tmp_path: Path) -> None:
    put(
        tmp_path,
        "aorta/rank0/h_1.1700000000001.pt.trace.json",
        "aorta/rank1/h_2.1700000000002.pt.trace.json",
        "titan/iteration_9/rank0_trace.json",
        "titan/iteration_10/rank0_trace.json",
        "titan/iteration_10/rank1_trace.json",
    )
    with Session([Root(str(tmp_path))], Settings()) as session:
        aorta, titan = session.scan().runs
    assert [(w.name, w.rank) for w in aorta.workers] == [("rank0", 0), ("rank1", 1)]
    assert shape(titan) == {"rank0": ["rank0_trace.json"] * 2, "rank1": ["rank0_trace.json".replace("0", "1", 1)]}
    assert [span.label for span in titan.workers[0].spans] == ["9", "10"]


def test_the_same_window_exported_twice_by_aorta_is_one_span(tmp_path: Path) -> None:
    folder = "artifacts/torch_profiler"
    put(tmp_path, f"{folder}/rank0/h_1.1700000000001.pt.trace.json", f"{folder}/rank0/trace_step7.json")
    put(tmp_path, f"{folder}/rank1/trace.json", "other/rank0/h_1.1.pt.trace.json", "other/rank0/trace_step7.json")
    assert find_runs(tmp_path) == {
        folder: {"rank0": ["h_1.1700000000001.pt.trace.json"], "rank1": ["trace.json"]},
        "other": {"rank0": ["h_1.1.pt.trace.json", "trace_step7.json"]},
    }


@pytest.mark.parametrize(
    ("name", "worker", "rank", "stamp"),
    [
        ("host.local_12.1623143089861.pt.trace.json.gz", "host.local_12", None, "1623143089861"),
        ("rank3.12.pt.trace.json", "rank3", 3, "12"),
        ("ep1-ba5-rank2.json", "rank2", 2, "ep1-ba5"),
        ("rank7_trace.json", "rank7", 7, None),
        ("1712345678-TP-1-DP-0-PP-0-EP-2.trace.json.gz", "TP-1-DP-0-PP-0-EP-2", None, "1712345678"),
        ("fit-pl-[Strategy]SingleDevice.training_step.1795224795862.pt.trace.json", None, None, "1795224795862"),
        ("trace.json", "trace", None, None),
        ("trace_step12.json", "trace", None, "12"),
        ("rank-34.json.gz", "rank-34", 34, None),
        ("node0.json", "node0", None, None),
    ],
)
def test_names(name: str, worker: str | None, rank: int | None, stamp: str | None) -> None:
    parsed = parse_file_name(name)
    assert parsed is not None
    assert (worker or parsed.worker, rank, stamp) == (parsed.worker, parsed.rank, parsed.stamp)


def test_names_that_say_nothing_are_told_by_content(tmp_path: Path) -> None:
    put(tmp_path, "run/profile.json", "run/bare.json.gz")
    put(tmp_path, "run/config.json", content=b'{"lr": 0.1}')
    put(tmp_path, "run/memory.json", content=json.dumps([[1, 2, 3]]).encode())
    put(tmp_path, "run/broken.pt.trace.json", content=b"")
    assert set(find_runs(tmp_path)["run"]) == {"profile", "bare", "broken"}


def test_same_worker_and_time_twice_loses_neither(tmp_path: Path) -> None:
    put(tmp_path, "r/w.5.pt.trace.json", "r/w.5.pt.trace.json.gz")
    assert find_runs(tmp_path)["r"]["w"] == ["w.5.pt.trace.json", "w.5.pt.trace.json.gz"]


def test_new_files_appear_and_vanished_runs_go(tmp_path: Path) -> None:
    put(tmp_path, "a/w.1.pt.trace.json")
    with Session([Root(str(tmp_path))], Settings()) as session:
        assert [run.name for run in session.scan().runs] == ["a"]
        put(tmp_path, "a/w.2.pt.trace.json", "b/w.pt.trace.json")
        assert [(run.name, len(run.files())) for run in session.scan().runs] == [("a", 2), ("b", 1)]
        for file in (tmp_path / "a").iterdir():
            file.unlink()
        assert [run.name for run in session.scan().runs] == ["b"]


def test_links_back_to_a_folder_above_end(tmp_path: Path) -> None:
    put(tmp_path, "a/w.pt.trace.json")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    assert set(find_runs(tmp_path)) == {"a", "b"}


def test_a_missing_folder_is_an_error_with_a_hint_and_then_recovers(tmp_path: Path) -> None:
    with Session([Root(str(tmp_path / "later"))], Settings()) as session:
        session.scan()
        assert session.error is not None
        assert session.error.hint
        put(tmp_path, "later/w.pt.trace.json")
        assert len(session.scan().runs) == 1
        assert session.error is None


def test_unknown_names_say_what_there_is(tmp_path: Path) -> None:
    put(tmp_path, "a/w.1.pt.trace.json", "a/w.2.pt.trace.json")
    with Session([Root(str(tmp_path))], Settings()) as session:
        session.scan()
        assert session.find(None, None, None).span.name == "1"
        assert session.find("a", "w", "2").span.file.path == "a/w.2.pt.trace.json"
        for names in (("x", None, None), ("a", "x", None), ("a", "w", "3"), ("../a", None, None)):
            with pytest.raises(NotFoundError) as caught:
                session.find(*names)
            assert caught.value.hint


def test_labels_are_times_where_stamps_are_times() -> None:
    assert stamp_label("1623143089861") == "2021-06-08 09:04:49 UTC"
    assert stamp_label("1623143089861000") == "2021-06-08 09:04:49 UTC"
    assert stamp_label("1700000000000000000") == "2023-11-14 22:13:20 UTC"
    assert stamp_label("12") == "12"
    assert stamp_label("²" * 13) == "²" * 13  # a digit, of which no number can be made


@pytest.mark.slow
@given(st.text(max_size=40))
def test_any_name_can_be_parsed_and_ordered(name: str) -> None:
    parse_file_name(name + ".pt.trace.json")
    parse_file_name(name)
    assert stamp_order(name) > stamp_order(None)


def test_every_real_file_is_found_once(corpus: Path) -> None:
    files = [p for p in (corpus / "traces").rglob("*.json*") if p.is_file()]
    with Session([Root(str(corpus / "traces"))], Settings()) as session:
        catalog = session.scan()
    listed = [file.path for run in catalog.runs for file in run.files()]
    assert sorted(listed) == sorted(p.relative_to(corpus / "traces").as_posix() for p in files)
    assert len(catalog.runs) == len({p.parent for p in files})


def test_a_merged_file_beside_the_files_of_its_ranks_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "c/node0.json", "c/merged_trace.json", "c/ep0-ba4-rank0.json", "c/ep0-ba4-rank1.json")
    put(tmp_path, "s/merged-17.trace.json.gz", "s/17-TP-0.trace.json.gz", "s/17-TP-1-DP-0.trace.json.gz")
    put(tmp_path, "alone/node0.json", "alone/merged-17.trace.json.gz", "alone/18-TP-0.trace.json.gz")
    assert find_runs(tmp_path) == {
        "c": {"rank0": ["ep0-ba4-rank0.json"], "rank1": ["ep0-ba4-rank1.json"]},
        "s": {"TP-0": ["17-TP-0.trace.json.gz"], "TP-1-DP-0": ["17-TP-1-DP-0.trace.json.gz"]},
        "alone": {
            "TP-0": ["18-TP-0.trace.json.gz"],
            "merged-17": ["merged-17.trace.json.gz"],
            "node0": ["node0.json"],
        },
    }
    assert find_runs(tmp_path / "c" / "node0.json") == {"c": {"node0": ["node0.json"]}}


@pytest.mark.parametrize(
    ("content", "is_trace"),
    [
        (b'[{"ts": 1030.0, "kernel": "gemm", "why": "expected"}]', False),
        (b'[{"ts": 1, "args": {"a": 1}, "dur": 1, "ph": "X", "name": "a", "pid": 1, "tid": 1}]', True),
        (b'[{"ph": "X", "ts": 1, "dur": 1, "name": "a", "pid": 1, "tid": 1}]', True),
    ],
)
def test_a_list_of_other_objects_with_times_is_no_trace(tmp_path: Path, content: bytes, is_trace: bool) -> None:
    put(tmp_path, "run/w.1.pt.trace.json")
    put(tmp_path, "run/expected.json", content=content)
    with Session([Root(str(tmp_path))], Settings()) as session:
        (run,) = session.scan().runs
    assert [worker.name for worker in run.workers] == (["expected", "w"] if is_trace else ["w"])
