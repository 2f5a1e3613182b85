"""Events of any kind may have no name: every view answers all the same."""

from __future__ import annotations

import json

import pytest

from tests.support.traces import event, read
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_views

STEP = """
    host user_annotation ProfilerStep#1 0 400
    host python_function train.py(3):~f 5 300
    host python_function nn.Module:~Linear_0 6 80
    host cpu_op aten::mm 10 40
    host cuda_runtime cudaLaunchKernel 20 10 correlation=1
    gpu0 kernel gemm 60 50 correlation=1 stream=7
    host cuda_runtime cudaMemcpyAsync 100 10 correlation=2
    gpu0 gpu_memcpy Memcpy~HtoD~(Pageable~->~Device) 115 30 correlation=2 stream=7
    gpu0 gpu_memset Memset 150 3 stream=7
    gpu0 kernel ncclDevKernel_AllReduce 100 90 stream=8
    host2 cpu_op autograd::engine::evaluate_function:~AddmmBackward0 120 60
    host user_annotation enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ 310 15
    host cuda_runtime cudaDeviceSynchronize 330 50
"""
EVENTS = [event(line) for line in STEP.split("\n") if line.strip()]
VIEWS = [view for view in all_views() if isinstance(view, TraceView)]


@pytest.mark.parametrize(
    "lost",
    [*range(len(EVENTS)), None],
    ids=lambda position: "all" if position is None else EVENTS[position]["name"],
)
def test_events_without_a_name_break_no_view(lost: int | None) -> None:
    events = json.loads(
        json.dumps([{**each, "ts": each["ts"] + start} for start in (0, 400, 800) for each in EVENTS])
    )
    for position, each in enumerate(events):
        if lost is None or position % len(EVENTS) == lost:
            del each["name"]
    trace = read(events, distributedInfo={"rank": 0, "world_size": 2})
    answered = 0
    for view in VIEWS:
        try:
            for params in view.first(trace) if view.first else [view.params()]:
                view.build(trace, params)
                answered += 1
        except (NotFoundError, TypeError) as error:
            # What it is to answer for must be told, or there is none.
            assert isinstance(error, NotFoundError) or "required argument" in str(error)
    assert answered > 20
