"""Tests of which calls wait for the device, and for which items."""

from __future__ import annotations

from tests.support.traces import draw, event
from torch_tb_profiler.model.schedule.blocking import BlockingCalls, WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.trace import Trace


def sources(trace: Trace) -> dict[str, list[str]]:
    """Return the names of the items that each call waits for."""
    calls, items = blocking_calls(trace), device_items(trace)

    def name(row: int) -> str:
        text: str = trace.strings[trace.events.name[row]]
        return text

    return {
        name(call): [name(items.row[item]) for item in calls.sources[low:high]]
        for call, low, high in zip(calls.call.tolist(), calls.first_source, calls.first_source[1:], strict=False)
    }


def only_call(trace: Trace) -> BlockingCalls:
    calls = blocking_calls(trace)
    assert len(calls.call) == 1
    return calls


TWO_STREAMS = """
host  cuda_runtime  cudaLaunchKernel    0   5  correlation=1
host  cuda_runtime  cudaLaunchKernel   10   5  correlation=2
host  cuda_runtime  cudaLaunchKernel   20   5  correlation=3
gpu0  kernel        first               6   9  correlation=1 stream=7
gpu0  kernel        second             16  60  correlation=2 stream=7
gpu0  kernel        other              26  20  correlation=3 stream=20
"""


def test_a_device_wide_call_waits_for_the_last_item_of_every_stream() -> None:
    trace = draw(TWO_STREAMS + "host cuda_runtime cudaDeviceSynchronize 30 55")
    assert sources(trace) == {"cudaDeviceSynchronize": ["second", "other"]}
    calls = only_call(trace)
    assert (calls.sources_end.tolist(), calls.resume_time.tolist()) == ([76_000], [85_000])
    assert calls.has_waited.tolist() == [True]


def test_freeing_memory_waits_for_the_device_but_not_in_order_of_a_stream() -> None:
    trace = draw(TWO_STREAMS + "host cuda_runtime cudaFree 30 55\nhost cuda_runtime cudaFreeAsync 90 55")
    assert sources(trace) == {"cudaFree": ["second", "other"]}


def test_a_call_waits_for_the_stream_that_is_recorded() -> None:
    recorded = """
    host  cuda_runtime  cudaStreamSynchronize  30  55  correlation=9
    gpu0  cuda_sync     Stream~Sync            31  50  correlation=9 stream=20
    """
    assert sources(draw(TWO_STREAMS + recorded)) == {"cudaStreamSynchronize": ["other"]}


def test_a_call_waits_for_the_event_that_is_recorded() -> None:
    # The event was recorded after the first kernel, before the second was launched.
    calls = """
    host  cuda_runtime  cudaEventRecord         7   1  correlation=8
    host  cuda_runtime  cudaEventSynchronize   30  55  correlation=9
    """
    mark = event("gpu0 cuda_sync Event~Sync 31 50")
    mark["args"] = {
        "correlation": 9,
        "stream": 4294967295,
        "wait_on_stream": 7,
        "wait_on_cuda_event_record_corr_id": 8,
    }
    assert sources(draw(TWO_STREAMS + calls, mark)) == {"cudaEventSynchronize": ["first"]}


def test_without_a_record_a_call_waits_for_the_stream_that_ends_last() -> None:
    trace = draw(TWO_STREAMS + "host cuda_runtime cudaStreamSynchronize 30 55")
    assert sources(trace) == {"cudaStreamSynchronize": ["second"]}


def test_an_item_that_ends_after_the_call_returned_is_no_source() -> None:
    trace = draw(TWO_STREAMS + "host cuda_runtime cudaStreamSynchronize 30 20")
    assert sources(trace) == {"cudaStreamSynchronize": ["other"]}


IN_ROW = """
host  cuda_runtime  cudaLaunchKernel         0   5  correlation=1
host  cuda_runtime  cudaLaunchKernel        10   5  correlation=2
host  cuda_runtime  cudaEventSynchronize    20  {time}
gpu0  kernel        before                   6  300  correlation=1 stream=7
gpu0  kernel        after                  308  300  correlation=2 stream=7
"""


def test_an_event_may_be_older_than_what_was_launched_last() -> None:
    assert sources(draw(IN_ROW.format(time=300))) == {"cudaEventSynchronize": ["before"]}
    assert sources(draw(IN_ROW.format(time=600))) == {"cudaEventSynchronize": ["after"]}
    # Nothing ends up to 50 us before it returns; a stream has no older work to wait for.
    for picture in (IN_ROW.format(time=400), IN_ROW.format(time=300).replace("Event", "Stream")):
        assert list(sources(draw(picture)).values()) == [[]]


def test_later_than_50_us_after_its_source_a_call_runs_its_own_code() -> None:
    calls = only_call(draw(TWO_STREAMS + "host cuda_runtime cudaFree 30 500"))
    assert calls.resume_time.tolist() == [76_000 + 50_000]


def test_a_call_after_all_work_has_ended_waits_for_nothing() -> None:
    calls = only_call(draw(TWO_STREAMS + "host cuda_runtime cudaDeviceSynchronize 100 5"))
    assert (calls.has_waited.tolist(), calls.resume_time.tolist()) == ([False], [105_000])


def test_only_the_outermost_of_nested_calls_counts() -> None:
    nested = "host cuda_runtime cudaStreamSynchronize 30 55\nhost cuda_driver cuStreamSynchronize 31 50"
    assert list(sources(draw(TWO_STREAMS + nested))) == ["cudaStreamSynchronize"]


def test_a_pageable_copy_that_its_call_outlasts_blocks_and_a_pinned_one_does_not() -> None:
    trace = draw("""
    host  cuda_runtime  cudaMemcpyAsync                    0  90  correlation=1
    host  cuda_runtime  cudaMemcpy2DAsync                100  90  correlation=2
    gpu0  gpu_memcpy    Memcpy~HtoD~(Pageable~->~Device)  20  60  correlation=1
    gpu0  gpu_memcpy    Memcpy~HtoD~(Pinned~->~Device)   120  60  correlation=2
    """)
    calls = only_call(trace)
    assert calls.kind.tolist() == [WaitKind.COPY]
    assert sources(trace) == {"cudaMemcpyAsync": ["Memcpy HtoD (Pageable -> Device)"]}


def launches(count: int, call_us: int) -> str:
    """Return `count` launches whose kernels run 100 us each, one after the other."""
    lines = []
    for i in range(count):
        lines.append(f"host cuda_runtime cudaLaunchKernel {200 * i} {call_us} correlation={i + 1}")
        lines.append(f"gpu0 kernel k{i} {200 * i + 10} 100 correlation={i + 1}")
    return "\n".join(lines)


def test_launches_block_where_most_kernels_end_with_their_call() -> None:
    calls = blocking_calls(draw(launches(12, 115)))
    assert calls.kind.tolist() == [WaitKind.LAUNCH] * 12
    assert calls.sources.tolist() == list(range(12))


def test_launches_that_return_at_once_do_not_block() -> None:
    assert len(blocking_calls(draw(launches(12, 5))).call) == 0
    assert len(blocking_calls(draw(launches(9, 115))).call) == 0  # too few to tell


def full_queue(count: int, room: int) -> str:
    """Return launches of 5 us and kernels of 50: with `room` of them queued, a call returns when one starts."""
    lines, now, start, starts = [], 0, 0, list[int]()
    for i in range(count):
        begin = now
        if len(starts) >= room:
            now = max(now, starts[-room])
        now += 5
        start = max(now + 5, start + 50)
        starts.append(start)
        lines.append(f"host cuda_runtime cudaLaunchKernel {begin} {now - begin} correlation={i + 1}")
        lines.append(f"gpu0 kernel k{i} {start} 49 correlation={i + 1}")
    return "\n".join(lines)


def test_a_launch_waits_for_room_in_a_full_queue() -> None:
    calls = blocking_calls(draw(full_queue(200, 32)))
    assert (calls.kind == WaitKind.QUEUE).all()
    # A call ahead of the stream by the whole queue goes on when the item before the one that starts has ended.
    assert calls.has_waited.sum() > 150
    assert set((calls.resume_time - calls.sources_end)[calls.has_waited].tolist()) == {6_000}


def test_a_queue_that_never_fills_blocks_no_launch() -> None:
    assert len(blocking_calls(draw(full_queue(200, 1024))).call) == 0


def test_the_launch_of_a_graph_does_not_wait_for_items_of_that_graph() -> None:
    """The last one is slow, returns as an item starts, and has many items queued: its own and those before."""
    lines, start = [], 10
    for graph, takes in enumerate((5, 5, 60)):
        begin = 5 * graph
        lines.append(f"host cuda_runtime cudaGraphLaunch {begin} {takes} correlation={graph + 1}")
        for item in range(60):
            lines.append(f"gpu0 kernel k{item} {start} 9 correlation={graph + 1}")
            start += 10
    assert len(blocking_calls(draw("\n".join(lines))).call) == 0


def after_a_full_queue(count: int, last_takes: int) -> str:
    """Return a full queue and, much later, `count` launches 5 us apart; the last takes `last_takes` us."""
    lines = [full_queue(200, 32)]
    for i in range(count):
        begin, takes = 50_000 + 5 * i, last_takes if i == count - 1 else 5
        lines.append(f"host cuda_runtime cudaLaunchKernel {begin} {takes} correlation={1000 + i}")
        lines.append(f"gpu0 kernel late{i} {50_010 + 50 * i} 49 correlation={1000 + i}")
    return "\n".join(lines)


def test_a_slow_launch_is_not_blocked_by_a_half_empty_queue() -> None:
    """It returns as a kernel starts, with 14 of 32 queued."""
    trace = draw(after_a_full_queue(17, 33))
    calls = blocking_calls(trace)
    assert (calls.kind == WaitKind.QUEUE).any()
    assert int(trace.events.start[calls.call].max()) < 50_000_000


def test_a_launch_behind_half_a_queue_has_a_source_that_it_did_not_wait_for() -> None:
    trace = draw(after_a_full_queue(24, 5))
    calls = blocking_calls(trace)
    behind = trace.events.start[calls.call] >= 50_000_000
    assert behind.sum() > 3
    assert not calls.has_waited[behind].any()


def test_a_call_inside_a_later_call_does_not_count() -> None:
    nested = """
    host  cuda_runtime  cudaStreamSynchronize  24   3
    host  cuda_runtime  cudaDeviceSynchronize  30  55
    host  cuda_driver   cuStreamSynchronize    31  50
    """
    assert list(sources(draw(TWO_STREAMS + nested))) == ["cudaStreamSynchronize", "cudaDeviceSynchronize"]


def test_without_work_a_call_waits_for_nothing() -> None:
    calls = only_call(draw("host cuda_runtime cudaDeviceSynchronize 0 5"))
    assert (calls.has_waited.tolist(), len(calls.sources)) == ([False], 0)
