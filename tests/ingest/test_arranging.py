"""Columns of a large file are put together for seconds: that the work goes on is told with each of them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from tests.ingest.rocprof.test_read import database
from tests.support.producers.pftrace import rocprof_pftrace
from tests.support.producers.pytorch_pftrace import pytorch_pftrace
from tests.support.producers.rocprof import chrome, draw_training, rocprof_json
from tests.support.traces import event
from torch_tb_profiler.ingest import Progress, read_trace

RUN = draw_training(2)
KERNEL = "gpu0 kernel gemm 19 200 correlation=1 stream=7 grid=[4,1,1] block=[128,1,1]"
HOST = "host cpu_op aten::mm 0 20 External id=2 Sequence number=4"
SEARCHES = 2
"""The first event is found by passes over all of them."""

MATCHES = 9
"""Begins and ends that lie apart are brought together by sorts and sums, then joined with their calls."""


def of_pytorch() -> bytes:
    return pytorch_pftrace([[event(HOST)], [event(KERNEL)]], "slices")


@pytest.mark.parametrize(
    ("drawn", "passes"),
    [
        (lambda: chrome(RUN), SEARCHES),
        (lambda: rocprof_json(RUN), SEARCHES),
        (lambda: database(RUN), SEARCHES),
        (lambda: rocprof_pftrace(RUN), SEARCHES),
        (of_pytorch, SEARCHES + MATCHES),
    ],
    ids=["chrome", "rocprofv3's JSON", "rocpd", "rocprofv3's .pftrace", "PyTorch's .pftrace"],
)
def test_each_arranged_column_reports_progress(drawn: Callable[[], bytes], passes: int) -> None:
    content, reported = drawn(), list[Progress]()
    trace = read_trace(io.BytesIO(content), size=len(content), report=reported.append)
    end = [each for each in reported if each == reported[-1]]
    columns = len(trace.events.__struct_fields__) + len(trace.args)
    assert (end[0].stage, end[0].bytes_done, end[0].bytes_total) == ("arranging", len(content), len(content))
    assert len(end) > columns + passes
