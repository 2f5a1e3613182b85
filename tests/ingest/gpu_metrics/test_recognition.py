from __future__ import annotations

import pytest

from tests.support.traces import document, event
from torch_tb_profiler.ingest.formats import recognize_trace
from torch_tb_profiler.ingest.gpu_metrics import dcgm, nvidia_smi


def test_no_pattern_is_tried_where_its_word_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are asked; a trace is often one line, which the patterns would search from every place."""
    monkeypatch.setattr(nvidia_smi, "_QUERY_HEADER", None)
    monkeypatch.setattr(dcgm, "_LINE_IN_HEAD", None)
    head = document([event("host cpu_op aten::mm 0 10")])
    assert b"\n" not in head
    found = recognize_trace(head)
    assert found is not None and found.name not in ("nvidia-smi samples", "DCGM metrics")
