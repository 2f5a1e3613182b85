"""A file that is cut off gets no verdict in any view that judges how a step is spent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.traces import document, event, read_bytes
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views import all_tabs, find_view
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.build import build as build_overview

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
    assert headline(WHOLE[:-25], slug).startswith("The file is truncated")
    assert not headline(WHOLE, slug).startswith("The file is truncated")


def test_a_window_of_a_cut_off_file_names_what_is_left_and_no_share() -> None:
    view: Any = find_view("trace/headline")

    def window(content: bytes, begin: int, end: int) -> str:
        answer = msgspec.to_builtins(view.build(read_bytes(content), view.params(begin=begin, end=end)))
        return "".join(phrase["text"] for phrase in answer["headline"])

    assert window(WHOLE, 0, 100_000) == "GPU 0 is busy 50% of this window; gemm takes the most time."
    left = "The file is truncated. In what remains of this window, gemm takes the most time."
    assert window(WHOLE[:-25], 0, 100_000) == left
    assert window(WHOLE[:-25], 200_000, 300_000) == "The file is truncated and has nothing left in this window."


def test_what_a_window_of_a_cut_off_file_lacks_is_neither_idle_nor_exposed() -> None:
    """The kernel behind which a transfer hides may be in the part that is missing."""
    lines = [
        "gpu0 kernel ncclDevKernel_AllReduce 10 20 stream=8",
        "gpu0 kernel gemm 20 30 stream=7",
        "host cpu_op a 60 5",
    ]
    content = document([event(line) for line in lines])

    def summary_text(slug: str, content: bytes) -> str:
        view: Any = find_view(slug)
        answer = msgspec.to_builtins(view.build(read_bytes(content), view.params(begin=0, end=100_000)))
        texts = [answer["detail"]] if slug == "trace/headline" else answer["summary"]
        return " ".join("".join(phrase["text"] for phrase in each) for each in texts)

    assert "50% of its communication overlaps compute." in summary_text("trace/headline", content)
    assert "overlap" not in summary_text("trace/headline", content[:-25])
    whole = "GPU 0: busy 40.0 µs (40%), idle 60.0 µs; communication 20.0 µs, 10.0 µs overlapped with compute."
    assert summary_text("trace/selection", content) == whole
    assert summary_text("trace/selection", content[:-25]) == "GPU 0: 40.0 µs of work in what remains of the file."
    host = document([event("host cpu_op a 0 5"), event("host cpu_op b 60 5")])
    assert summary_text("trace/selection", host) == "No device work was recorded."
    assert summary_text("trace/selection", host[:-25]) == "The file is truncated and has no device work left."


HOST = document(
    [
        event(line)
        for line in (
            "host user_annotation ProfilerStep#1   0 100",
            "host cpu_op aten::mm                 10  20",
            "host user_annotation ProfilerStep#2 100 200",
            "host cpu_op aten::mm                110 150",
            "host cpu_op aten::add               295   3",
        )
    ]
)


@pytest.mark.parametrize("slug", ["kernels", "roofline", "idle"])
def test_that_a_cut_off_file_holds_no_device_work_blames_no_option(slug: str) -> None:
    tab = next(each for each in all_tabs() if each.view.slug == slug)
    assert "activities" in (tab.unavailable(read_bytes(HOST)) or "")
    assert tab.unavailable(read_bytes(HOST[:-25])) == "the file is truncated before any device work"


@pytest.mark.parametrize("slug", ["memory", "modules", "origins"])
def test_what_a_cut_off_file_may_have_lost_blames_no_option(slug: str) -> None:
    tab = next(each for each in all_tabs() if each.view.slug == slug)
    whole, cut = (tab.unavailable(read_bytes(content)) or "" for content in (HOST, HOST[:-25]))
    assert "`" in whole and "truncated" not in whole
    assert "`" not in cut and "the file is truncated, which may be why" in cut


def test_shapes_that_a_cut_off_file_lacks_were_not_recorded() -> None:
    view: Any = find_view("operators")
    payload = view.build(read_bytes(HOST[:-25]), view.params())
    assert plain(payload.reasons["input_shape"]).endswith("(`profile(record_shapes=True)`)")


def test_of_a_cut_off_file_nobody_says_what_varies_or_what_was_not_recorded() -> None:
    whole, cut = (build_overview(read_bytes(content), NoParams()) for content in (HOST, HOST[:-25]))
    assert plain(whole.explanation).startswith("2 steps of 100 µs to 200 µs; operators on the host vary most")
    assert plain(cut.explanation) == "2 steps of 100 µs to 200 µs before the file ends."
    assert whole.configuration.recorded["device"] is False
    assert cut.configuration.recorded == {"host": True}
