"""While a large file is read in its worker process, the session tells how far it is."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from benchmarks.grow import read_recording, write_grown
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import ProgressInfo, Root, Session

SAMPLE = next((Path(__file__).parents[2] / "samples" / "ddp").glob("rank0*.gz"))

STAGES = ["reading", "arranging", "analyzing", "saving"]


def test_bytes_events_and_stage_move_while_a_large_file_is_read(tmp_path: Path) -> None:
    trace = tmp_path / "w.1.pt.trace.json"
    with trace.open("w", encoding="utf-8") as out:
        write_grown(read_recording(SAMPLE), 40, out)
    size = trace.stat().st_size
    settings = replace(Settings.from_environment(), cache_dir=str(tmp_path / "cache"))
    states: list[ProgressInfo] = []
    with Session([Root(str(tmp_path))], settings) as session:
        session.scan()
        clock = threading.Event()
        while (state := session.view("overview").state).state in ("waiting", "loading"):
            if state.progress is not None and state.progress not in states:
                states.append(state.progress)
            clock.wait(0.002)
        assert state.state == "ready"
        assert session.view("overview").payload
    reading = [progress for progress in states if progress.stage == "reading" and progress.bytes_total]
    assert len(reading) > 5
    assert {progress.bytes_total for progress in reading} == {size}
    assert [progress.bytes_done for progress in reading] == sorted(progress.bytes_done for progress in reading)
    assert reading[0].bytes_done < size / 2
    assert [progress.events for progress in reading] == sorted(progress.events for progress in reading)
    assert reading[-1].events > reading[0].events
    stages = [STAGES.index(progress.stage) for progress in states]
    assert stages == sorted(stages)
    assert stages[-1] > 0
