"""What a summary says of memory beside the peak: who ran out of it, whether others held it, and what grows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler as ttp
from tests.support.memory_traces import CALLS, STEPS, memory, out_of_memory
from tests.support.snapshots import snapshot
from tests.support.traces import document, event
from torch_tb_profiler.summary import as_markdown

GIB = 2**30
CARDS = [{"id": number, "name": "A100", "totalGlobalMem": 80 * GIB} for number in (0, 1)]
FEW = f"20 GPU0 a {GIB} {3 * GIB} {4 * GIB}"
OTHER = f"21 GPU1 b {GIB} {3 * GIB} {4 * GIB}"

Events = list[dict[str, Any]]


def calls(*more: dict[str, Any], memory_of: str = FEW) -> Events:
    timeline = [event(line) for line in CALLS.strip().splitlines()]
    return [*timeline, *memory(memory_of), *more]


def failing(*devices: str, reserved: int = 4 * GIB) -> Events:
    return calls(
        *out_of_memory(*devices, size=2 * GIB, allocated=3 * GIB, reserved=reserved), memory_of=f"{FEW}\n{OTHER}"
    )


def leaking(on: str, also: str = "") -> Events:
    """Return five steps that leave a MiB each on a device; `also`: further memory events."""
    lines = [f"{100 * i + 12} {on} block{i} {2**20} {i * 2**20} {2**30}" for i in range(1, 6)]
    return [*map(event, STEPS.splitlines()), *memory("\n".join([*lines, also]))]


def read_headline(folder: Path, *ranks: Events) -> list[str]:
    for number, events in enumerate(ranks):
        (folder / f"w{number}.1.pt.trace.json").write_bytes(document(events, deviceProperties=CARDS))
    found = ttp.open(str(folder)).run().summary().memory
    assert found is not None
    return found.growth


HELD = (
    "At least 74.0 GiB of GPU 0 were held outside PyTorch's allocator then, likely by other processes, unless "
    "a limit of this process refused the request."
)
LEAK = "Memory may leak 1.00 MiB per step: blocks that code outside operators allocated in 5 of 5 steps are still "
SENTENCES = {
    "one device of two failed": ([failing("GPU1")], "1 allocation on GPU 1 ran out of memory.", [failing("GPU0")]),
    "one rank of two failed": (
        [calls(), failing("GPU0")],
        "w1: 1 allocation on GPU 0 ran out of memory.",
        [failing("GPU0"), calls()],
    ),
    "no other rank, so none is named": (
        [failing("GPU0")],
        "1 allocation on GPU 0 ran out of memory.",
        [calls(), failing("GPU0")],
    ),
    "both failures are counted": (
        [failing("GPU0", "GPU0")],
        "2 allocations on GPU 0 ran out of memory.",
        [failing("GPU0", "GPU1")],
    ),
    "others hold most of the device": (
        [failing("GPU0")],
        f"1 allocation on GPU 0 ran out of memory. {HELD}",
        [failing("GPU0", reserved=78 * GIB)],
    ),
    "several devices, so the one that leaks is named": (
        [leaking("GPU0", also=f"30 CPU x 8 {2**20} 0")],
        f"GPU 0: {LEAK}",
        [leaking("GPU0")],
    ),
    "one device, so none is named": (
        [leaking("GPU0")],
        LEAK,
        [leaking("GPU0", also=f"30 CPU x 8 {2**20} 0")],
    ),
    "several ranks and devices": (
        [leaking("GPU0", also=f"30 CPU x 8 {2**20} 0"), leaking("GPU0")],
        f"w0: GPU 0: {LEAK}",
        [leaking("GPU1", also=f"30 CPU x 8 {2**20} 0"), leaking("GPU0")],
    ),
}
"""What holds -> the ranks' events, the beginning of what is said, and the events where something else does."""


@pytest.mark.parametrize("case", SENTENCES)
def test_it_is_said_where_it_holds_and_not_where_it_is_false(case: str, tmp_path: Path) -> None:
    holds, start, other = SENTENCES[case]
    for name in ("holds", "other"):
        (tmp_path / name).mkdir()
    assert [line for line in read_headline(tmp_path / "holds", *holds) if line.startswith(start)]
    assert not [line for line in read_headline(tmp_path / "other", *other) if line.startswith(start)]


def test_the_peak_of_a_snapshot_counts_requested_bytes_where_it_records_them(tmp_path: Path) -> None:
    value = snapshot()
    (tmp_path / "w.pickle").write_bytes(pickle.dumps(value))
    run = ttp.open(str(tmp_path)).run()
    assert "- Memory peaks at 2.93 KiB requested, before the allocator's rounding" in as_markdown(run.summary())
    for segment in value["segments"]:
        for each in segment["blocks"]:
            each.pop("requested_size", None)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "w.pickle").write_bytes(pickle.dumps(value))
    assert "- Memory peaks at 2.96 KiB (GPU 0, " in as_markdown(ttp.open(str(tmp_path / "old")).run().summary())
