"""Batches of a trainer are steps, its marks phases, its waits data loading."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.producers.composer import EPOCH, LOOP, Batch, counter, cycle
from tests.support.traces import read
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.shared.breakdown import TRAINER_ONLY_REASON, breakdown
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.model.kinds import slice_mask
from torch_tb_profiler.model.phases import PHASES, event_phases
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.trainer import loading_per_batch

BATCHES = (Batch(60, 20, 15, 40), Batch(10, 5, 6, 12), Batch(33, 7, 8, 21))


def torch(name: str, start: int, length: int, category: str = "cpu_op") -> dict[str, object]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 0, "tid": LOOP, "ts": EPOCH + start, "dur": length,
        "args": {},
    }  # fmt: skip


@pytest.mark.parametrize("loader", ["event/dataloader", "dataloader/train"])
def test_a_batch_and_the_wait_for_its_data_are_a_step(loader: str) -> None:
    trace = read(cycle(BATCHES, first=7, loader=loader))
    lengths = [1000 * (each.load + each.work) for each in BATCHES]
    found = breakdown(trace)
    assert (steps(trace).names, found.durations.tolist()) == (("7", "8", "9"), lengths)
    assert found.times["dataloader"].tolist() == [1000 * each.load for each in BATCHES]
    assert found.times["other"].tolist() == [1000 * each.work for each in BATCHES]
    assert found.unknown["kernel"] == found.unknown["cpu_exec"] == TRAINER_ONLY_REASON
    assert "dataloader" not in found.unknown


def test_a_wait_behind_the_last_batch_belongs_to_no_step() -> None:
    last = [e for e in cycle([Batch(60)]) if e["name"] == "event/dataloader"]
    events = cycle([Batch(60, work=40)]) + [{**each, "ts": each["ts"] + 500} for each in last]
    assert steps(read(events)).ends.tolist() == [100_000]


def test_steps_of_the_profiler_go_before_batches() -> None:
    trace = read([*cycle(BATCHES), torch("ProfilerStep#3", 0, 50, "user_annotation")])
    assert steps(trace).names == ("3",)


def test_a_trainer_that_records_no_loader_leaves_it_unknown() -> None:
    events = [each for each in cycle(BATCHES) if each["name"] != "event/dataloader"]
    assert breakdown(read(events)).unknown["dataloader"] == TRAINER_ONLY_REASON
    assert loading_per_batch(read(events)) is None
    assert advice(read(events)) == ()


def test_beside_pytorch_events_the_trainer_adds_only_its_waits() -> None:
    operators = [torch("aten::mm", 65, 10), torch("aten::add", 80, 4)]
    with_trainer = breakdown(read([*cycle([Batch(60, work=40)]), *operators]))
    assert with_trainer.times["cpu_exec"].tolist() == [14_000]
    assert with_trainer.times["dataloader"].tolist() == [60_000]
    assert with_trainer.unknown == {}


def test_phases_come_from_the_marks_of_the_trainer() -> None:
    trace = read(
        [*cycle([Batch(60, 20, 15, 40)]), torch("aten::a", 62, 3), torch("aten::b", 85, 3), torch("c", 5, 9)]
    )
    rows = np.flatnonzero(slice_mask(trace))
    of = {trace.strings[trace.events.name[row]]: PHASES[event_phases(trace)[row]] for row in rows}
    expected = {"aten::a": "forward", "aten::b": "backward", "c": "data", "event/backward": "backward"}
    assert {name: of[name] for name in expected} == expected


def test_advice_says_how_many_times_the_batch_loading_takes() -> None:
    (found,) = advice(read(cycle(BATCHES)))
    assert (found.finding.id, found.finding.case) == ("data_loading", "trainer")
    assert found.finding.value == pytest.approx((60 + 10 + 33) / (40 + 12 + 21))
    assert found.gain is not None and found.gain.ns == pytest.approx(1000 * (60 + 10 + 33) / 3)


def test_overlapped_loading_gives_no_advice() -> None:
    assert advice(read(cycle([Batch(load=1, work=99)] * 4))) == ()


def test_the_trainer_has_a_lane_of_its_own_above_the_thread_that_runs_it() -> None:
    table = tracks(read([*cycle(BATCHES), torch("aten::mm", 65, 10)]))
    assert [(track.role, track.name, track.slices) for track in table.tracks] == [
        ("trainer", "Trainer", 5 * len(BATCHES)),
        ("main", "Training Loop", 1),
    ]


def samples(name: str, argument: str, *values: float, every: int = 500_000) -> list[dict[str, object]]:
    """Return a sample every half second."""
    return [counter(name, EPOCH + every * at, {argument: value}) for at, value in enumerate(values)]


def machine(*events: list[dict[str, object]]) -> Trace:
    return read([*cycle(BATCHES), *(each for some in events for each in some)])


def values(trace: Trace) -> dict[str, tuple[str, list[float]]]:
    return {each.name: (each.unit, each.values.tolist()) for each in all_series(trace)}


def test_machine_samples_are_rescaled() -> None:
    gib = 2**30
    trace = machine(
        samples("cpu", "cpu_percent", 12.5, 100.0),
        samples("memory/cuda/reserved_mem", "reserved_mem", 1.25, 2.5),
        samples("memory/virtual", "used_gb", 3 * gib / 2**9, 4 * gib / 2**9),
        samples("memory/swap", "used_gb", 0.0, 4096 / 2**9),
    )
    assert values(trace) == {
        "CPU": ("ratio", [0.125, 1.0]),
        "CUDA memory: reserved": ("bytes", [1.25e9, 2.5e9]),
        "Virtual memory: used": ("bytes", [3.0 * gib, 4.0 * gib]),
        "Swap memory: used": ("bytes", [0.0, 4096.0]),
    }


def test_counters_since_boot_become_rates() -> None:
    mib = 2**20
    trace = machine(
        samples("network/eth0/kb_recv", "kb_recv", *((7 * mib + n * mib) / 2**3 for n in (0, 1, 3))),
        samples("disk/nvme0n1/read_bytes", "field_name", 100.0, 100.0, 600.0),
        samples("disk/nvme0n1/read_count", "field_name", 5.0, 8.0),
        samples("disk/nvme0n1/busy_time", "field_name", 1000.0, 1250.0),
    )
    assert values(trace) == {
        "Network eth0: received": ("bytes/s", [2.0 * mib, 4.0 * mib]),
        "Disk nvme0n1: read": ("bytes/s", [0.0, 1000.0]),
        "Disk nvme0n1: read operations": ("/s", [6.0]),
        "Disk nvme0n1: busy time": ("ratio", [0.5]),
    }


def test_a_falling_counter_has_restarted_from_zero() -> None:
    trace = machine(samples("disk/sda/write_bytes", "field_name", 900.0, 50.0))
    assert values(trace) == {"Disk sda: write": ("bytes/s", [100.0])}


def test_memory_in_an_unknown_scale_is_unchanged() -> None:
    assert values(machine(samples("memory/virtual", "used_gb", 3.0, 4.0))) == {
        "memory/virtual · used_gb": ("", [3.0, 4.0])
    }
