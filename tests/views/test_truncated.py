"""A file that is cut off gets no verdict in any view that judges how a step is spent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.traces import document, event, read_bytes
from torch_tb_profiler.views import find_view

WHOLE = document(
    [
        event(line)
        for line in (
            "host user_annotation ProfilerStep#1 0 100",
            "host cuda_runtime cudaLaunchKernel 10 5 correlation=1",
            "gpu0 kernel gemm 20 30 correlation=1 stream=7",
            "host cuda_runtime cudaLaunchKernel 60 5 correlation=2",
            "gpu0 kernel gemm 70 20 correlation=2 stream=7",
            "host cpu_op aten::mm 95 3",
        )
    ]
)


def headline(content: bytes, slug: str) -> str:
    view: Any = find_view(slug)
    payload = msgspec.to_builtins(view.build(read_bytes(content), view.params()))
    return "".join(phrase["text"] for phrase in payload["headline"])


@pytest.mark.parametrize("slug", ["overview", "trace", "idle", "critical_path", "roofline"])
def test_a_cut_off_file_gets_no_verdict(slug: str) -> None:
    assert headline(WHOLE[:-25], slug).startswith("The file is cut off")
    assert not headline(WHOLE, slug).startswith("The file is cut off")


def test_a_window_of_a_cut_off_file_names_what_is_left_and_no_share() -> None:
    view: Any = find_view("trace/headline")

    def window(content: bytes, begin: int, end: int) -> str:
        answer = msgspec.to_builtins(view.build(read_bytes(content), view.params(begin=begin, end=end)))
        return "".join(phrase["text"] for phrase in answer["headline"])

    assert window(WHOLE, 0, 100_000) == "GPU 0 is busy 50% of this window; gemm takes the most time."
    left = "The file is cut off; of what is left of this window gemm takes the most time."
    assert window(WHOLE[:-25], 0, 100_000) == left
    assert window(WHOLE[:-25], 200_000, 300_000) == "The file is cut off; nothing is left of this window."
