from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.launches.repeats import drop_overlaps, extend_repeats, find_repeats, is_repetition
from torch_tb_profiler.analyses.launches.sequences import common_slice, graph_capture_savings, work_sequences
from torch_tb_profiler.model.trace import Trace


def run(names: str, length: float = 10, step: str = "") -> str:
    """Return kernels one after the other on stream 7, a letter each; "|" begins another step."""
    lines, time, number = [], 0.0, 0
    for steps, part in enumerate(names.split("|")):
        begin = time
        for letter in part:
            number += 1
            lines.append(f"host cuda_runtime launch {time} 1 correlation={number}")
            lines.append(f"gpu0 kernel {letter} {time + 2} {length} correlation={number} stream=7")
            time += length + 5
        if "|" in names:
            lines.append(f"host user_annotation ProfilerStep#{steps} {begin} {time - begin}")
    return "\n".join(lines)


def find_sequences(trace: Trace) -> list[tuple[str, int]]:
    return [
        ("".join(trace.strings[trace.events.name[row]] for row in sequence.rows[0]), sequence.runs)
        for sequence in work_sequences(trace).sequences
    ]


def test_layers_are_found_without_being_told() -> None:
    trace = draw(run("x" + "abcde" * 4 + "y"))
    assert find_sequences(trace) == [("abcde", 4)]
    (sequence,) = work_sequences(trace).sequences
    assert (sequence.length, sequence.time_ns) == (5, 200_000)
    assert work_sequences(trace).covered_ns == 200_000
    assert work_sequences(trace).time_ns == 220_000


def test_a_sequence_is_as_long_as_it_goes() -> None:
    layer = "abcdefghijklm"  # 13: not among the lengths that are asked for
    trace = draw(run("x".join([layer] * 3) + "y"))
    assert find_sequences(trace)[0][0] in (layer, "x" + layer)


def test_two_runs_are_none_and_three_are_not_enough_for_two_steps() -> None:
    assert find_sequences(draw(run("abxab"))) == []
    assert find_sequences(draw(run("abxabyab"))) == [("ab", 3)]
    assert find_sequences(draw(run("abxab|yab"))) == []
    assert find_sequences(draw(run("abxab|yabzab"))) == [("ab", 4)]


def test_no_sequence_crosses_a_step_or_a_stream() -> None:
    assert find_sequences(draw(run("ab|ab|ab"))) == []  # once in each step, and never twice in a row
    lines = []
    for i in range(3):
        lines += [f"gpu0 kernel a {i * 100} 10 stream=7", f"gpu0 kernel b {i * 100 + 20} 10 stream=8"]
    assert find_sequences(draw("\n".join(lines))) == []


def test_a_repetition_is_not_a_sequence() -> None:
    assert find_sequences(draw(run("aaaaaaaaaaaa"))) == []
    assert find_sequences(draw(run("abababababab"))) == [("ab", 6)]
    assert is_repetition(np.array([1, 2, 1, 2])) and not is_repetition(np.array([1, 2, 1]))


def test_nothing_is_counted_twice() -> None:
    trace = draw(run("abcabcabcxbcxbcxbc"))
    rows = np.concatenate([sequence.rows.ravel() for sequence in work_sequences(trace).sequences])
    assert len(rows) == len(set(rows.tolist()))


def test_overlapping_occurrences_count_once() -> None:
    assert drop_overlaps(np.array([0, 2, 4, 9]), 3).tolist() == [0, 4, 9]


@pytest.mark.parametrize("seed", range(30))
def test_repeats_are_all_there_are_of_their_length(seed: int) -> None:
    rng = random.Random(seed)
    codes = np.array([rng.choice([-1, 0, 0, 1, 1, 2, 3]) for _ in range(120)])
    before = np.arange(len(codes) + 1)
    got = {
        (length, tuple(codes[p[0] : p[0] + length])): p.tolist() for length, p in find_repeats(codes, before, 3)
    }
    wanted = {}
    for length in (2, 3, 4, 5, 6, 8):
        places: dict[tuple[int, ...], list[int]] = {}
        for at in range(len(codes) - length + 1):
            places.setdefault(tuple(codes[at : at + length].tolist()), []).append(at)
        for stretch, at_all in places.items():
            apart = [at_all[0]]
            for at in at_all[1:]:
                apart += [at] if at >= apart[-1] + length else []
            if min(stretch) >= 0 and len(apart) >= 3 and not is_repetition(np.array(stretch)):
                wanted[length, stretch] = apart
    assert got == wanted
    for length, positions in extend_repeats(codes, [*find_repeats(codes, before, 3)]):
        grown = codes[positions[0] : positions[0] + length]
        assert min(grown) >= 0
        assert all((codes[at : at + length] == grown).all() for at in positions)
        assert all(b - a >= length for a, b in pairwise(positions.tolist()))


def test_fusing_saves_at_most_all_but_the_longest_neighbor() -> None:
    lines, time = [], 0
    for _ in range(3):
        for name, length in (("gemm", 50), ("mul_elementwise_kernel", 10), ("add_elementwise_kernel", 30)):
            lines.append(f"gpu0 kernel {name} {time} {length} stream=7")
            time += 100
        lines.append(f"gpu0 kernel relu_elementwise_kernel {time} 20 stream=7")
        lines.append(f"gpu0 kernel norm {time + 100} 20 stream=7")
        lines.append(f"gpu0 kernel other_elementwise_kernel {time + 200} 20 stream=7")
        time += 300
    (sequence,) = work_sequences(draw("\n".join(lines))).sequences
    assert sequence.fusion_ns == 3 * (10 + 20) * 1000  # beside 30; `other` has no elementwise neighbor


def test_where_a_sequence_is_launched() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1     0  100
    host  python_function  nn.Module:~Net_0   1   98
    host  cpu_op           aten::linear       5   40
    host  cuda_runtime     launch            10    2  correlation=1
    host  cuda_runtime     launch            20    2  correlation=2
    host  cpu_op           aten::relu        60   20
    host  cuda_runtime     launch            65    2  correlation=3
    host2 cuda_runtime     launch            65    2  correlation=4
    gpu0  kernel           a                 30    5  correlation=1
    gpu0  kernel           b                 40    5  correlation=2
    gpu0  kernel           c                 70    5  correlation=3
    gpu0  kernel           d                 80    5  correlation=4
    gpu0  kernel           e                 90    5
    """)

    def name(*rows: int) -> str | None:
        row = common_slice(trace, np.array(rows, np.int32))
        return None if row < 0 else trace.strings[trace.events.name[row]]

    assert name(8, 9) == "aten::linear"
    assert name(8, 10) == "nn.Module: Net_0"
    assert name(8) == "launch"
    assert name(8, 11) is None  # from two threads
    assert name(8, 12) is None  # one has no launch


def test_capturing_gains_the_host_time_between_the_launches_of_a_run() -> None:
    """48 us from the start of the first call to the end of the second, in each of 6 runs."""
    lines = []
    for run in range(3):
        lines.append(f"host user_annotation ProfilerStep#{run} {200 * run} 200")
        for half in range(2):
            at, number = 200 * run + 100 * half, 4 * run + 2 * half + 1
            for k, name in enumerate(("first", "second")):
                launch = at + 10 + 44 * k
                lines.append(f"host cuda_runtime cudaLaunchKernel {launch} 4 correlation={number + k}")
                lines.append(f"gpu0 kernel {name} {launch + 6} 10 correlation={number + k} stream=7")
    trace = draw("\n".join(lines))
    find_sequences = work_sequences(trace).sequences
    assert [(each.runs, each.length) for each in find_sequences] == [(6, 2)]
    assert graph_capture_savings(trace, find_sequences) == [6 * 48_000]
    assert graph_capture_savings(trace, ()) == []


def test_what_nothing_explains_has_no_capture() -> None:
    lines = [f"gpu0 kernel {name} {100 * k + 37 * k * k} 5 stream=7" for k, name in enumerate("abababab")]
    trace = draw("host cpu_op aten::mm 0 5\n" + "\n".join(lines))
    assert graph_capture_savings(trace, work_sequences(trace).sequences) is None
