"""Progress is reported while a large file is loaded, here or in a worker process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.grow import read_recording, write_grown
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.executors import ProgressTuple
from torch_tb_profiler.session import ProgressInfo, Root, Session
from torch_tb_profiler.session.jobs import LoadRequest, load_file
from torch_tb_profiler.storage import open_location

SAMPLE = next((Path(__file__).parents[2] / "samples" / "ddp").glob("rank0*.gz"))

STAGES = ["reading", "arranging", "analyzing", "saving"]


def grow(folder: Path, megabytes: int) -> Path:
    trace = folder / "log" / "w.1.pt.trace.json"
    trace.parent.mkdir()
    with trace.open("w", encoding="utf-8") as out:
        write_grown(read_recording(SAMPLE), megabytes, out)
    return trace


def check_order(reported: Sequence[ProgressTuple], size: int) -> None:
    """Check that stages follow each other and that bytes and events only increase."""
    stages = [STAGES.index(stage) for stage, *_ in reported]
    assert stages == sorted(stages)
    reading = [progress for progress in reported if progress[0] == "reading" and progress[2]]
    assert {total for _, _, total, _ in reading} <= {size}
    assert [done for _, done, _, _ in reading] == sorted(done for _, done, _, _ in reading)
    assert [events for *_, events in reading] == sorted(events for *_, events in reading)


def test_bytes_events_and_stage_move_while_a_large_file_is_read(tmp_path: Path) -> None:
    reported: list[ProgressTuple] = []
    large = grow(tmp_path, 10)
    size = large.stat().st_size
    location = open_location(str(large.parent))
    file = ListedFile.of(location, location.entry(large.name))
    request = LoadRequest(str(large.parent), file.path, size, file.id, 0)
    load_file(request, Cache(str(tmp_path / "cache"), 1 << 30), reported.append)
    check_order(reported, size)
    reading = [progress for progress in reported if progress[0] == "reading" and progress[2]]
    assert len(reading) > 5
    assert reading[0][1] < size / 2
    assert reading[-1][3] > reading[0][3]
    assert {stage for stage, *_ in reported} == set(STAGES)


def test_a_session_reports_the_progress_of_its_worker_process(tmp_path: Path) -> None:
    large = grow(tmp_path, 40)
    settings = replace(Settings.from_environment(), cache_dir=str(tmp_path / "cache"))
    reported: list[ProgressInfo] = []
    with Session([Root(str(large.parent))], settings) as session:
        session.scan()
        clock = threading.Event()
        while (state := session.view("overview").state).state in ("waiting", "loading"):
            if state.progress is not None and state.progress not in reported:
                reported.append(state.progress)
            clock.wait(0.002)
        assert state.state == "ready"
        assert session.view("overview").payload
    # How often this process is scheduled in the meantime is up to the system.
    assert reported
    check_order(
        [(each.stage, each.bytes_done, each.bytes_total, each.events) for each in reported], large.stat().st_size
    )
