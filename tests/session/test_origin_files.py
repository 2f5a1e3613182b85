"""Files of origins are found beside a trace, read with it, and named where they can't be used."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler
from tests.model.origins.drawing import LAYERS, capture, host, replay
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Session, open_session

KERNELS = [kernel for _, _, kernel in LAYERS]


def write(path: Path, events: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def open_folder(folder: Path) -> Session:
    return open_session(str(folder), Settings(executor="serial", cache_dir=""))


def known_ns(session: Session, run: str, worker: str | None = None, **params: str) -> int:
    answer = session.view("origins", run, worker, params=params, wait=True)
    assert answer.payload is not None, answer.state
    return int(json.loads(answer.payload)["known_ns"]["operator"])


@pytest.mark.parametrize(
    "place",
    [
        "log/run/capture_traces/bs_16_rank0.json",
        "log/run/graph_capture_rank_0.json",
        "log/run/graph_capture_rank_0/x.pt.trace.json",
        "log/run_capture/rank0.1.pt.trace.json",
    ],
)
def test_a_capture_is_found_beside_the_run_and_is_not_the_first_run(tmp_path: Path, place: str) -> None:
    write(tmp_path / "log/run/rank0.2.pt.trace.json", replay(KERNELS))
    write(tmp_path / "log/run/rank1.2.pt.trace.json", replay(KERNELS))
    write(tmp_path / place, capture())
    with open_folder(tmp_path / "log") as session:
        assert session.catalog.runs[0].name == "run"
        assert [worker.name for worker in session.catalog.runs[0].workers] == ["rank0", "rank1"]
        assert len(session.catalog.runs) == 2
        assert known_ns(session, "run", "rank0") == 4 * 8_000
        assert known_ns(session, "run", "rank1") == 0  # the capture is of another rank


def test_captures_without_the_run_that_they_are_of_stay_where_they_are(tmp_path: Path) -> None:
    write(tmp_path / "run/graph_capture_rank_0.1.pt.trace.json", [*capture(), *replay(KERNELS)])
    with open_folder(tmp_path) as session:
        assert [run.name for run in session.catalog.runs] == ["run"]
        assert known_ns(session, "run") == 4 * 8_000


def test_any_other_run_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / "run/rank0.2.pt.trace.json", replay(KERNELS))
    write(tmp_path / "warmup/rank0.1.pt.trace.json", capture())
    with open_folder(tmp_path) as session:
        assert known_ns(session, "run") == 0
        assert known_ns(session, "run", capture="warmup") == 4 * 8_000
        with pytest.raises(NotFoundError, match="no run 'nope'"):
            known_ns(session, "run", capture="nope")


def test_columns_and_health_say_what_the_view_says(tmp_path: Path) -> None:
    write(tmp_path / "run/rank0.2.pt.trace.json", [*replay(KERNELS), *replay(["other"] * 3, 20_000)])
    write(tmp_path / "run_capture/rank0.1.pt.trace.json", capture())
    with torch_tb_profiler.open(str(tmp_path)) as log:
        kernels = log["run"].columns().kernels.to_pylist()
        note = next(each for each in log["run"].overview().to_dict()["health"] if each["kind"] == "origins")
    assert [row["operator"] for row in kernels] == [None] * 7  # the recorded link stays what it was
    assert [row["origin_operator"] for row in kernels] == [operator for operator, _, _ in LAYERS] + [None] * 3
    assert [row["origin_module"] for row in kernels[:4]] == [module for _, module, _ in LAYERS]
    assert [row["origin_line"] for row in kernels[:4]] == [f"model.py:{10 + n}" for n in range(4)]
    assert {row["origin_reason"] for row in kernels[4:]} == {"no capture has these kernels in this order"}
    assert note["message"] == (
        "57.1% of kernel time is traced to a source line; 42.9%: no capture has these kernels in this order"
    )


def test_a_capture_that_can_not_be_read_costs_a_note(tmp_path: Path) -> None:
    write(tmp_path / "run/rank0.2.pt.trace.json", replay(KERNELS))
    broken = tmp_path / "run/capture_traces/bs_8_rank0.json"
    broken.parent.mkdir()
    broken.write_text("nonsense")
    with open_folder(tmp_path) as session:
        assert known_ns(session, "run") == 0
        span = session.catalog.run("run").workers[0].spans[0]
        notes = [note.message for note in session.health(span) if note.kind == "origins_unreadable"]
        assert len(notes) == 1 and notes[0].startswith("bs_8_rank0.json: the captures can't be used: ")


def test_columns_take_a_named_capture_as_the_view_does(tmp_path: Path) -> None:
    write(tmp_path / "decode/rank0.2.pt.trace.json", replay(KERNELS))
    write(tmp_path / "warmup/rank0.1.pt.trace.json", capture())
    with torch_tb_profiler.open(str(tmp_path)) as log:
        run = log["decode"]
        assert run.columns().origins["operator"].null_count == 4
        operators = run.columns(capture="warmup").origins["operator"].to_pylist()
        assert operators == [operator for operator, _, _ in LAYERS]
        with pytest.raises(NotFoundError, match="no run 'nope'"):
            run.columns(capture="nope")


NODES = [1, 2, 3, 4]


def write_stacks(trace: Path) -> None:
    stacks = {str((3 << 32) | node): f"model.py:{node}:forward" for node in NODES}
    trace.with_name(f"{trace.name}.py_stacks.json.gz").write_bytes(gzip.compress(json.dumps(stacks).encode()))


def lines_of(folder: Path, run: str, **params: str) -> int:
    with open_folder(folder) as session:
        answer = session.view("origins", run, params=params, wait=True)
        assert answer.payload is not None, answer.state
        return int(json.loads(answer.payload)["known_ns"]["line"])


@pytest.mark.parametrize(("at", "known"), [(10_000, 4 * 8_000), (10_001, 0)])
def test_launch_stacks_count_for_the_same_recording_by_another_exporter(
    tmp_path: Path, at: int, known: int
) -> None:
    name = "rank0.1.pt.trace.json"
    write(tmp_path / "cuspy" / name, replay(KERNELS, nodes=NODES))
    write_stacks(tmp_path / "cuspy" / name)
    write(tmp_path / "other" / name, replay(KERNELS, at, nodes=NODES))  # at another time: another recording
    assert lines_of(tmp_path, "cuspy") == 4 * 8_000
    assert lines_of(tmp_path, "other") == known


@pytest.mark.parametrize(("kernels", "known"), [(KERNELS, 4 * 8_000), ([*KERNELS[:3], "mul"], 0)])
def test_launch_stacks_of_a_named_run_count_if_its_nodes_have_the_same_kernels(
    tmp_path: Path, kernels: list[str], known: int
) -> None:
    write(tmp_path / "first/rank0.1.pt.trace.json", replay(KERNELS, nodes=NODES))
    write_stacks(tmp_path / "first/rank0.1.pt.trace.json")
    write(tmp_path / "later/rank0.2.pt.trace.json", replay(kernels, 50_000, nodes=NODES))
    assert lines_of(tmp_path, "later") == 0
    assert lines_of(tmp_path, "later", capture="first") == known


@pytest.mark.parametrize(
    ("record", "known"), [('"stack_traces": ["File \\"model.py\\", line 4, in f"]', 8_000), ("", None)]
)
def test_the_record_of_aotinductor_is_found_beside_the_trace(
    tmp_path: Path, record: str, known: int | None
) -> None:
    name = "triton_poi_fused_add_0"
    launch = host("cuda_driver", "cuLaunchKernel", 1, 4, correlation=1)
    kernel = host("kernel", name, 9, 8, correlation=1, device=0, stream=7) | {"pid": 0, "tid": 7}
    write(tmp_path / "run/rank0.2.pt.trace.json", [launch, kernel])
    content = f'{{"{name}:1": {{{record}}}}}' if known else "nonsense"
    (tmp_path / "run/kernel_information.json").write_text(content)
    with open_folder(tmp_path) as session:
        assert [worker.name for worker in session.catalog.runs[0].workers] == ["rank0"]
        span = session.catalog.run("run").workers[0].spans[0]
        payload = session.view("origins", "run", wait=True).payload
        assert payload is not None and json.loads(payload)["known_ns"]["line"] == (known or 0)
        notes = [note.message for note in session.health(span) if note.kind == "origins_unreadable"]
    assert [note.split(":")[:2] for note in notes] == (
        [] if known else [["kernel_information.json", " the record of AOTInductor can't be used"]]
    )
