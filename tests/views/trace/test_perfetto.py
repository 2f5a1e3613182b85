"""Whether ui.perfetto.dev opens a file as it is stored, and what it is given else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ingest.gpu_metrics.test_nvidia_smi import HEADER, LINES
from tests.ingest.rocprof.test_read import slices
from tests.support.producers import aorta
from tests.support.producers.composer import Batch, content, cycle
from tests.support.producers.rocprof import chrome, draw_training, rocprof_json
from tests.support.producers.rocprof_tables import tables
from tests.support.traces import read_bytes
from tests.support.views import ask
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

RUN = draw_training(2)
FILES = {
    "PyTorch": (chrome(RUN), True),
    "Composer": (content(cycle([Batch()])), True),
    "JSON of rocprofv3": (rocprof_json(RUN), False),
    "tables of rocprofv3": ("".join(tables(RUN).values()).encode(), False),
    "AORTA": (json.dumps(aorta.line(0, aorta.iteration(0), 100)).encode() + b"\n", False),
    "nvidia-smi": ("\n".join([HEADER, *LINES]).encode(), False),
}


@pytest.mark.parametrize("producer", FILES)
def test_perfetto_opens_what_is_a_chrome_trace(producer: str) -> None:
    stored, opens = FILES[producer]
    assert ask(read_bytes(stored), "trace")["perfetto"] is opens


def test_a_slice_without_a_window_is_all_of_the_trace_as_a_chrome_trace(tmp_path: Path) -> None:
    (tmp_path / "7_results.json").write_bytes(rocprof_json(RUN))
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        _, whole = session.excerpt(params={}, wait=True, timeout=PATIENCE)
        assert whole is not None
        again = read_bytes(b"".join(whole.pieces))
    assert slices(again) == slices(read_bytes(rocprof_json(RUN)))
