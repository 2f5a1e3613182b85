"""The place that advice on waits names is that of most of the idle time, not of the longest single wait."""

from __future__ import annotations

from tests.support.claims import read_sentences, repeat
from torch_tb_profiler.model.trace import Trace

WAIT = """\
host cuda_runtime cudaLaunchKernel {launch} 5 correlation={number}
gpu0 kernel gemm {begin} {time} correlation={number} stream=7
host cpu_op aten::item {call} {waits}
host cuda_runtime cudaStreamSynchronize {call} {waits}
host python_function {frame} {launch} {length}"""


def waiting(*frames: tuple[str, int]) -> Trace:
    """Draw steps that wait in each (frame, us) for a kernel of that time, after which the GPU idles as long."""
    lines, now = [], 0
    for number, (frame, time) in enumerate(frames, 1):
        lines += WAIT.format(
            launch=now, number=number, begin=now + 10, time=time, call=now + 8, waits=time + 4, frame=frame,
            length=2 * time,
        ).splitlines()  # fmt: skip
        now += 2 * time
    return repeat(*lines, length=now)


def test_the_place_is_where_most_of_the_waits_cost() -> None:
    """`log.py` waits four times and costs 2.4 ms, `train.py` once and costs 1 ms."""
    text = read_sentences("overview", waiting(("train.py(9):~main", 1000), *[("log.py(5):~write", 600)] * 4))
    assert "Most of that follows aten::item (log.py(5): write)." in text, text


def test_most_is_said_of_at_least_half_in_one_place() -> None:
    text = read_sentences("overview", waiting(*[(f"step{n}.py({n}):~work", 700 - 10 * n) for n in range(1, 5)]))
    assert "The largest part of that follows aten::item (step1.py(1): work)." in text, text
