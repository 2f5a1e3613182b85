"""The communication operations of a rank: their sizes, steps, and stalls, and how they are packed without loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import Job, ddp
from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.operations import (
    OPERATION,
    OPERATION_KIND,
    PACKED_ROW,
    WIDE_PACKED_ROW,
    Operations,
    SharedColumn,
    computation_stalls,
    concatenate_operations,
    pack_operations,
    select,
    unpack_operations,
)
from torch_tb_profiler.analyses.distributed.rank_summary import summarize_rank
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.kinds import event_intervals
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace


def record_operation(name: str, sent: int = 1000, received: int = 1000, ranks: int = 4, **more: str) -> Operations:
    """Return the table of one operation on Floats (4 bytes) in a group of `ranks` ranks."""
    size = f'Process Group Name="tp" Group size={ranks}' if ranks else ""
    extra = " ".join(f"{key.replace('_', ' ')}={value}" for key, value in more.items())
    arguments = f"Collective name={name} In msg nelems={sent} Out msg nelems={received} dtype=Float {size} {extra}"
    return summarize_rank(
        draw(f"""
        host  cpu_op        record_param_comms   0  10  {arguments}
        host  cuda_runtime  cudaLaunchKernel     2   5  correlation=7
        gpu0  kernel        ncclDevKernel       50  99  correlation=7 stream=20
        """)
    ).table()


@pytest.mark.parametrize(
    ("name", "sent", "received", "message", "bus"),
    [
        ("allreduce", 1000, 1000, 4000, 2 * 3 / 4 * 4000),
        ("_allgather_base", 1000, 4000, 16000, 3 / 4 * 16000),  # the message is what comes out
        ("_reduce_scatter_base", 4000, 1000, 16000, 3 / 4 * 16000),
        ("all_to_all", 1000, 1000, 4000, 3 / 4 * 4000),
        ("gather", 1000, 4000, 16000, 3 / 4 * 16000),  # what the root gets
        ("gather", 1000, 0, 16000, 3 / 4 * 16000),
        ("scatter", 1000, 1000, 4000, 3 / 4 * 4000),
        ("broadcast", 1000, 1000, 4000, 4000),  # each link carries the message once, however many ranks
        ("reduce", 1000, 1000, 4000, 4000),
        ("send", 1000, 0, 4000, 4000),
        ("recv", 0, 1000, 4000, 4000),  # a receiver sends nothing
        ("recv", 1000, 0, 4000, 4000),
    ],
)
def test_bytes_follow_the_conventions_of_nccl(
    name: str, sent: int, received: int, message: int, bus: float
) -> None:
    (row,) = record_operation(name, sent, received)
    assert (row["message"], row["bus"]) == (message, bus)


def test_a_barrier_moves_nothing() -> None:
    (row,) = record_operation("barrier", 1, 1)
    assert row["message"] == ABSENT
    assert math.isnan(row["bus"])


def test_in_a_group_of_unknown_size_the_bytes_on_the_link_are_unknown() -> None:
    (row,) = record_operation("allreduce", ranks=0)
    assert row["message"] == 4000
    assert math.isnan(row["bus"])
    (row,) = record_operation("broadcast", ranks=0)
    assert row["bus"] == 4000


def test_uneven_splits_determine_the_bytes_on_the_link() -> None:
    """1000 elements in rows of 1, 2, 3 and 4 tenths; rank 3 keeps its own four tenths."""
    (row,) = record_operation("all_to_allv", In_split_size="[1,2,3,4]", Rank="3")
    assert (row["message"], row["bus"]) == (4000, 2400)


# ---- steps ----------------------------------------------------------------------------------------------


def two_steps(*times: int, kernel: int | None = None) -> Trace:
    """Return a trace of two steps with a pause between them, and operations issued at `times`."""
    lines = ["host user_annotation ProfilerStep#1 0 100", "host user_annotation ProfilerStep#2 200 100"]
    lines += [f"host2 cpu_op gloo:all_reduce {time} 1" for time in times]
    if kernel is not None:
        lines.append(f"gpu0 kernel ncclDevKernel_AllReduce {kernel} 5 stream=20")
    return draw("\n".join(lines))


def test_an_operation_belongs_to_the_step_in_which_the_host_issued_it() -> None:
    """The first and the last instant belong to a step; the time between two steps belongs to none."""
    assert summarize_rank(two_steps(0, 100, 101, 200, 300, 301)).table()["step"].tolist() == [
        0, 0, NO_CODE, 1, 1, NO_CODE,
    ]  # fmt: skip


def test_an_operation_between_two_adjacent_steps_belongs_to_the_later_one() -> None:
    trace = draw("""
    host   user_annotation  ProfilerStep#1     0  100
    host   user_annotation  ProfilerStep#2   100  100
    host2  cpu_op           gloo:all_reduce  100    1
    """)
    assert summarize_rank(trace).table()["step"].tolist() == [1]


def test_an_operation_without_a_recorded_call_belongs_to_the_step_in_which_it_ran() -> None:
    assert summarize_rank(two_steps(kernel=50)).table()["step"].tolist() == [0]
    assert summarize_rank(two_steps(kernel=150)).table()["step"].tolist() == [NO_CODE]


# ---- stalls ---------------------------------------------------------------------------------------------

NO_COMPUTATION = merge(np.empty(0, np.int64), np.empty(0, np.int64))


@pytest.mark.parametrize(
    ("resumes", "stall"),
    [
        (112, 97_000),  # at the end of the operation
        (108, 97_000),  # just before: the communicating thread noted its end later
        (60, 0),  # the computation went on long before: what it waited for was something else
    ],
)
def test_the_host_waits_until_the_operation_ends_or_just_before(resumes: int, stall: int) -> None:
    trace = draw(
        f"""
        host  cpu_op aten::mm          0  15
        host2 cpu_op gloo:all_reduce  12 100
        host  cpu_op aten::add  {resumes}  60
        """
    )
    assert computation_stalls(trace, collectives(trace), NO_COMPUTATION).tolist() == [stall]


@pytest.mark.parametrize(("device", "stall"), [(0, 0), (1, 50_000)])
def test_a_device_waits_whatever_another_one_of_its_process_computes(device: int, stall: int) -> None:
    """The operation runs on device 0 from 50 to 150; on it, or on another one, something is computed until 200."""
    trace = draw(
        f"""
        gpu0  kernel  gemm                      0 100  device=0 stream=7
        gpu0  kernel  ncclDevKernel_AllReduce  50 100  device=0 stream=20
        gpu{device}  kernel  attention         90 110  device={device} stream=7
        gpu0  kernel  adam                    210  50  device=0 stream=7
        """
    )
    computation = event_intervals(trace, np.array([0, 2, 3]))
    assert computation_stalls(trace, collectives(trace), computation).tolist() == [stall]


# ---- readiness ------------------------------------------------------------------------------------------

QUEUED = """
host  cuda_runtime  cudaLaunchKernel        0   2  correlation=1
host  cuda_runtime  cudaLaunchKernel       10   2  correlation=2
host  cuda_runtime  cudaLaunchKernel       20   2  correlation=3
host  cuda_runtime  cudaLaunchKernel       30   2  correlation=4
host  cuda_runtime  cudaLaunchKernel       40   2  correlation=5
gpu0  kernel        gemm                    5  95  correlation=1 stream=7
gpu0  kernel        ncclDevKernel_1       101 300  correlation=2 stream=20
gpu0  kernel        gemm                  101 100  correlation=3 stream=7
gpu0  kernel        ncclDevKernel_2       402 100  correlation=4 stream=20
gpu0  kernel        gemm                  201  50  correlation=5 stream=7
"""


def held_ns(drawing: str) -> list[int]:
    held: list[int] = summarize_rank(draw(drawing)).table()["held"].tolist()
    return held


def test_an_operation_is_held_from_the_end_of_the_last_kernel_launched_before_it() -> None:
    """The second one could start at 201, when its kernels are done, but its stream is busy until 401."""
    assert held_ns(QUEUED) == [1_000, 201_000]


def test_what_was_launched_before_the_recording_counts_as_launched_before() -> None:
    """The third kernel, of unknown launch, may have been launched before the operations that it outlasts."""
    unknown = QUEUED.replace("40   2  correlation=5", "40   2  correlation=9")
    assert held_ns(unknown) == [0, 402_000 - 251_000]


def test_within_one_launched_graph_it_is_unknown_when_an_operation_could_start() -> None:
    graph = QUEUED.replace("correlation=3", "correlation=4")
    assert held_ns(graph) == [1_000, 0]
    assert held_ns("gpu0 kernel ncclDevKernel_1 10 20 stream=20") == [0]


def test_an_operation_has_the_time_that_its_rank_computes_before_it() -> None:
    """From the first event to the first operation at 101, and from there to the second one at 402."""
    computed = summarize_rank(draw(QUEUED)).table()["computed"].tolist()
    assert computed == [95_000, 150_000]


# ---- packing --------------------------------------------------------------------------------------------

_LENGTHS = ("latency", "exposed", "stall", "window", "computed", "held")
_TIMES = st.integers(-(2**40), 2**62)


@st.composite
def tables(draw: st.DrawFn, longest: int = 2**33) -> Operations:
    """Draw operations of few kinds, with and without a time."""
    table = np.zeros(draw(st.integers(0, 6)), OPERATION)
    small = st.integers(-1, 2)
    for row in table:
        for name in ("group", "step", "collective", "backend", "dtype", "timing"):
            row[name] = draw(small)
        for name in ("source", "target", "bytes_in", "bytes_out", "message"):
            row[name] = draw(st.sampled_from([ABSENT, 0, 2**40]))
        row["bus"] = draw(st.sampled_from([float("nan"), 0.0, 1e12]))
        row["sequence"], row["issue"] = draw(st.sampled_from([ABSENT, 7])), draw(_TIMES)
        row["start"] = row["end"] = ABSENT
        row["latency"] = row["exposed"] = row["window"] = ABSENT
        if draw(st.booleans()):
            row["start"] = draw(_TIMES)
            row["end"] = row["start"] + draw(st.integers(0, longest))
            for name in _LENGTHS:
                row[name] = draw(st.integers(0, longest))
    return table


@given(st.lists(tables(), max_size=4))
def test_unpacking_restores_every_bit(examples: list[Operations]) -> None:
    packed = [pack_operations(table) for table in examples]
    for table, rank in zip(examples, packed, strict=True):
        assert unpack_operations(rank).tobytes() == table.tobytes()
        assert len(rank) == len(table)
    concatenated = concatenate_operations(packed)
    expected = np.concatenate([np.zeros(0, OPERATION), *examples])
    last = len(expected) - 1
    for name, column in concatenated.columns.items():
        for rows in (np.array([last, 0]), expected["start"] != ABSENT, slice(1, None), last) if last >= 0 else ():
            assert column[rows].tobytes() == expected[name][rows].tobytes(), (name, rows)
    for name, column in {
        **concatenated.columns,
        **{name: kinds[concatenated.kind] for name, kinds in concatenated.kinds.items()},
    }.items():
        assert column[:].tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize(("longest", "width"), [(2**32 - 1, 60), (2**32, 88)])
@pytest.mark.parametrize("name", ["end", *_LENGTHS])
def test_an_operation_takes_60_bytes_unless_a_time_needs_more(name: str, longest: int, width: int) -> None:
    table: Operations = np.zeros(3, OPERATION)
    table[name][1] = longest
    packed = pack_operations(table)
    assert len(packed.rows) == 3 * width and PACKED_ROW.itemsize == 60 and WIDE_PACKED_ROW.itemsize == 88
    assert unpack_operations(packed).tobytes() == table.tobytes()


def test_common_fields_are_stored_once() -> None:
    """Three buckets over ten steps have three sizes."""
    (member,) = Job(2, ddp(2), steps=10).members(only=[0])
    assert member.result is not None
    assert len(member.result.operations) == 30
    assert len(member.result.operations.kinds) == 3 * OPERATION_KIND.itemsize


def test_columns_that_are_put_together_on_demand_are_not_compared_as_they_are() -> None:
    """`column == 3` would be False for each of them, whatever it holds."""
    table: Operations = np.zeros(2, OPERATION)
    operations = concatenate_operations([pack_operations(table)])
    shared = SharedColumn(operations.kinds["message"], operations.kind)
    for column in (operations.columns["exposed"], shared):
        assert (column[:] == 0).all() and len(column) == 2
        with pytest.raises(TypeError, match="by its entries"):
            assert column == 0


def test_all_entries_of_a_column_are_selected_without_a_copy() -> None:
    column = np.array([5, 7, 9])
    for rows, expected in (
        (np.array([0, 2]), [5, 9]),
        (np.array([True, False, True]), [5, 9]),
        (np.array([], np.int64), []),
        (np.arange(3), [5, 7, 9]),
        (np.ones(3, np.bool_), [5, 7, 9]),
    ):
        selected = select(column, rows)
        assert selected.tolist() == expected
        assert np.shares_memory(selected, column) == (len(expected) == 3)
    packed = SharedColumn(np.array([1, 2]), np.array([1, 0, 1], np.int32))
    assert select(packed, np.arange(3)).tolist() == [2, 1, 2] and select(packed, np.array([1])).tolist() == [1]
