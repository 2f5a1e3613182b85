"""Launches, queues and sequences of real traces: HTA's figures, and what is known of the models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corpus import hta, real_traces
from torch_tb_profiler.analyses.launches.bandwidth import bytes_between, copy_groups
from torch_tb_profiler.analyses.launches.calls import api_calls, launch_calls
from torch_tb_profiler.analyses.launches.queue import stream_queues
from torch_tb_profiler.analyses.launches.sequences import work_sequences
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind

pytestmark = real_traces.MARKS

# What `get_cuda_kernel_launch_stats` counts.
HTA_APIS = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}


@pytest.mark.parametrize(
    ("run", "span", "last_step", "figures", "longest"),
    [
        ("kineto2021_resnet50_v100_nw0", 0, False, (7580, 4788, 5, 6048), 567),
        ("kineto2021_resnet50_v100_nw0", 1, False, (7580, 4790, 5, 6067), 558),
        ("hta_nccl_data", 0, False, (2516, 1347, 0, 180), 10),
        ("hta_trace_diff_control_a100", 0, True, (9450, 3674, 30, 6098), 288),
        ("kineto2021_autograd_api_nw4", 0, True, (10099, 5843, 31, 7834), 543),
        ("tl_h100_owlv2", 0, True, (4440, 1928, 23, 4255), 777),
        ("hta_ns_resolution_v100", 0, False, (4876, 2173, 663, 4713), 1022),
    ],
)
def test_launch_statistics_and_queue_lengths_of_hta(
    corpus: Path, run: str, span: int, last_step: bool, figures: tuple[int, ...], longest: int
) -> None:
    trace = hta.filter_as_hta(real_traces.of_run(corpus, run, span), last_step)
    work = rows_of_kind(trace, *DEVICE_KINDS)
    found = api_calls(trace, launch_calls(trace, work))
    counted = np.isin([trace.strings[code] for code in trace.events.name[found.event]], list(HTA_APIS))
    columns = (found.calls, found.short, found.slow, found.delayed)
    assert tuple(int(column[counted].sum()) for column in columns) == figures
    assert max(queue.longest for queue in stream_queues(trace, work)) == longest


@pytest.mark.parametrize(
    ("run", "runs", "length", "share"),
    [
        ("tl_mi300_xdit_sd35", 144, 28, 0.83),  # 24 blocks in 6 steps
        ("tl_h100_owlv2", 120, 27, 0.96),
        ("tl_h100_qwen15", 34, 49, 0.98),
    ],
)
def test_the_layers_of_a_model_are_its_most_worthy_sequence(
    corpus: Path, run: str, runs: int, length: int, share: float
) -> None:
    found = work_sequences(real_traces.of_run(corpus, run))
    best = found.sequences[0]
    assert (best.runs, best.length) == (runs, length)
    assert best.time_ns / found.time_ns == pytest.approx(share, abs=0.006)


def test_bytes_over_time_sum_to_the_bytes_of_the_copies(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "traces").glob("kineto*/*.json*")):
        trace = real_traces.read(path)
        work = rows_of_kind(trace, *DEVICE_KINDS)
        if len(work) == 0:
            continue
        edges = np.linspace(trace.events.start[work].min(), event_ends(trace)[work].max() + 1, 101).astype(
            np.int64
        )
        for each in copy_groups(trace, work):
            if each.bytes is not None:
                assert int(bytes_between(trace, each.rows, edges).sum()) == each.bytes, path
                compared += 1
    assert compared > 5
