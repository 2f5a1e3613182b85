"""Names and order of processes and threads."""

from __future__ import annotations

from typing import Any

from tests.support.traces import draw
from torch_tb_profiler.model.thread_names import process_and_thread_names


def metadata(name: str, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": 1, "tid": 1, "ts": 0, "args": args}


def test_sort_indices_belong_to_their_thread_or_process() -> None:
    names = process_and_thread_names(
        draw(
            "host cpu_op a 0 1",
            metadata("process_sort_index", sort_index=4),
            metadata("thread_sort_index", sort_index=7),
            metadata("process_labels", sort_index=9),
        )
    )
    assert (names.process_order, names.thread_order) == ({1: 4}, {0: 7})


def test_without_an_index_there_is_no_order() -> None:
    names = process_and_thread_names(
        draw("host cpu_op a 0 1", metadata("thread_sort_index"), metadata("process_sort_index"))
    )
    assert (names.process_order, names.thread_order) == ({}, {})
