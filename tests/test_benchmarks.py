"""What the benchmark measures on is a sound trace: all of the recording, several times, nothing in conflict."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from benchmarks.grow import read_recording, write_grown
from tests.support.traces import read_bytes
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import is_slice
from torch_tb_profiler.model.steps import steps

SAMPLE = next((Path(__file__).parents[1] / "samples" / "ddp").glob("rank0*.gz"))


def test_a_grown_recording_is_the_recording_repeated() -> None:
    out = StringIO()
    once = read_bytes(SAMPLE.read_bytes())
    assert write_grown(read_recording(SAMPLE), 2.0, out) == 3
    grown = read_bytes(out.getvalue().encode())
    assert grown.health == once.health
    assert grown.metadata == once.metadata
    assert len(steps(grown).names) == len(set(steps(grown).names)) == 3 * len(steps(once).names)
    assert is_slice(grown).sum() == 3 * is_slice(once).sum() - 2  # the profiler's own mark stays single
    assert call_tree(grown).overlaps == 3 * call_tree(once).overlaps
    names = [{text for text in trace.strings if not text.startswith("ProfilerStep#")} for trace in (once, grown)]
    assert names[0] == names[1]
