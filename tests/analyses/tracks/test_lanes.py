from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from tests.support.traces import draw, read
from torch_tb_profiler.analyses.tracks.events import all_slices, count_other, drawable_mask
from torch_tb_profiler.analyses.tracks.lanes import Lanes, count_lanes, lanes
from torch_tb_profiler.analyses.tracks.roles import Role, event_roles
from torch_tb_profiler.analyses.tracks.tracks import tracks, work_tracks
from torch_tb_profiler.ingest.kineto.native.nesting import compiled_functions
from torch_tb_profiler.model.calls.nesting import CompiledFunctions, use_compiled_functions
from torch_tb_profiler.model.trace import Trace


def lane_by_name(trace: Trace, layout: Lanes) -> dict[str, tuple[str, int]]:
    """Return slice name -> (name of its track, its lane)."""
    where = {}
    for i, (track, depth) in enumerate(zip(layout.track.tolist(), layout.depth.tolist(), strict=True)):
        for row in layout.rows[layout.bounds[i] : layout.bounds[i + 1]].tolist():
            where[trace.strings[trace.events.name[row]]] = (tracks(trace).tracks[track].name, depth)
    return where


def test_slices_nest_and_overlap_gets_a_side_lane() -> None:
    trace = draw("""
    host  cpu_op  outer   0  100
    host  cpu_op  inner  10   20
    host  cpu_op  leaf   12    5
    host  cpu_op  late   25   20
    host  cpu_op  in_late 26   2
    """)
    layout = lanes(trace, False)
    assert {name: lane for name, (_, lane) in lane_by_name(trace, layout).items()} == {
        "outer": 0,
        "inner": 1,
        "leaf": 2,
        "late": 3,
        "in_late": 2,
    }
    assert count_lanes(trace, False).side_slices == 1
    assert layout.root.tolist() == [True, False, False, True]


def test_lanes_without_python_frames_are_arranged_once() -> None:
    trace = draw("""
    host  cpu_op           outer   0  100
    host  python_function  inner  10   20
    """)
    assert lanes(trace, True) is not lanes(trace, False)
    without = draw("host  cpu_op  outer  0  100")
    assert lanes(without, True) is lanes(without, False)


SLICES = st.lists(
    st.tuples(st.sampled_from(["host", "host2"]), st.sampled_from(["cpu_op", "python_function"]),
              st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=14,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(SLICES, st.booleans())
def test_lanes_are_counted_as_they_are_arranged_by_functions_in_c_as_well(
    drawing: list[tuple[str, str, int, int]], python: bool
) -> None:
    picture = "\n".join(
        f"{thread} {category} f{i} {start} {lasting}"
        for i, (thread, category, start, lasting) in enumerate(drawing)
    )
    expected = None
    for functions in (None, native_functions()):
        use_compiled_functions(functions)
        try:
            arranged, counted = draw(picture), draw(picture)
            layout = lanes(arranged, python)
            found = *(column.tolist() for column in astuple(layout)), count_lanes(counted, python)
        finally:
            use_compiled_functions(None)
        assert count_lanes(arranged, python) == found[-1]  # of lanes that are there
        per_track = np.bincount(layout.track, minlength=len(tracks(arranged).tracks))
        assert found[-1].depths == per_track.tolist()
        expected = expected or found
        assert found == expected


def native_functions() -> CompiledFunctions | None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TORCH_PROFILER_NATIVE", "1")
        return compiled_functions()


def test_python_frames_are_folded_until_asked_for() -> None:
    trace = draw("""
    host  python_function  train  0  100
    host  cpu_op           mm    10   20
    """)
    assert lane_by_name(trace, lanes(trace, False)) == {"mm": ("thread 1", 0)}
    assert lane_by_name(trace, lanes(trace, True)) == {"train": ("thread 1", 0), "mm": ("thread 1", 1)}
    (track,) = tracks(trace).tracks
    assert (track.slices, track.python_slices) == (2, 1)


def test_annotations_and_waits_stand_beside_the_work_of_their_stream() -> None:
    trace = draw("""
    gpu0  gpu_user_annotation  forward   0   50  stream=7
    gpu0  kernel               gemm     10   45  stream=7
    gpu0  cuda_sync            wait     20   10  stream=7
    gpu0  gpu_memcpy           copy      0    5  stream=8
    gpu0  kernel               ncclDevKernel_AllReduce   0    5  stream=9
    """)
    assert [(track.kind, track.role, track.stream) for track in tracks(trace).tracks] == [
        ("stream", "compute", 7),
        ("stream", "annotation", 7),
        ("stream", "sync", 7),
        ("stream", "copy", 8),
        ("stream", "communication", 9),
    ]
    assert [track.name for track in tracks(trace).tracks[:3]] == [
        "stream 7",
        "stream 7, annotations",
        "stream 7, waits",
    ]
    assert set(lanes(trace, False).depth.tolist()) == {0}


def test_work_is_on_the_streams_and_without_any_on_the_threads() -> None:
    spans = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": 0,
        "ts": 0,
        "dur": 9,
    }
    host = "host cpu_op mm 0 10"
    trace = draw(host, spans)
    assert [tracks(trace).tracks[id].name for id in work_tracks(trace)] == ["thread 1"]
    trace = draw(
        f"""
    {host}
    gpu0  gpu_user_annotation  forward   0   50  stream=7
    gpu0  kernel               gemm     10   45  stream=7
    gpu0  cuda_sync            wait     20   10  stream=7
    """,
        spans,
    )
    assert [tracks(trace).tracks[id].name for id in work_tracks(trace)] == ["stream 7"]


def test_groups_are_processes_then_devices_then_the_profiler() -> None:
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "loader"}},
        *({"ph": "M", "name": "process_name", "pid": i, "tid": 0, "args": {"name": "python"}} for i in range(16)),
    ]
    trace = draw(
        """
    gpu3    kernel           gemm              5    5
    host    cpu_op           load              0    5
    host2   cpu_op           ProfilerStep#1    0   10
    """,
        *names,
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": 0,
            "dur": 9,
        },
    )
    table = tracks(trace)
    assert [(group.kind, group.name) for group in table.groups] == [
        ("process", "python"),
        ("device", "GPU 3"),
        ("profiler", "Profiler"),
    ]
    assert [(track.name, track.role) for track in table.tracks[:2]] == [("thread 2", "main"), ("loader", "")]


def test_instants_have_tracks_of_their_own() -> None:
    trace = draw(
        "host  cpu_op  mm  0  10",
        {"ph": "i", "s": "t", "name": "here", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "i", "s": "t", "name": "no time", "pid": 1, "tid": 1},
    )
    thread, instants = tracks(trace).tracks
    assert (thread.slices, thread.instants) == (1, 0)
    assert (instants.kind, instants.slices, instants.instants, instants.untimed) == ("instants", 0, 2, 1)
    assert len(lanes(trace, False).rows) == 2


def test_what_is_on_no_track_is_counted() -> None:
    trace = draw(
        "host  cpu_op  mm  0  10",
        {"ph": "b", "cat": "request", "id": 1, "name": "async", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "name": "pair", "pid": 1, "tid": 1, "ts": 20},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 30},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 40},
    )
    assert [track.slices for track in tracks(trace).tracks] == [2]
    assert count_other(trace) == 2


def test_slices_without_a_time_are_counted_and_not_drawn() -> None:
    trace = read(
        [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
            {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "dur": 1},
        ]
    )
    (track,) = tracks(trace).tracks
    assert (track.slices, track.untimed, len(lanes(trace, False).rows)) == (2, 1, 1)


slices = st.lists(
    st.tuples(
        st.sampled_from(["host", "host2", "gpu0"]),
        st.integers(0, 40),
        st.integers(-2, 20),
        st.sampled_from(["cpu_op", "python_function", "kernel", "odd", "gpu_user_annotation"]),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(slices)
def test_each_slice_is_drawn_once_and_nothing_overlaps(drawing: list[tuple[str, int, int, str]]) -> None:
    lines = [
        f"{thread} {category} s{i} {start} {length}" for i, (thread, start, length, category) in enumerate(drawing)
    ]
    trace = draw("\n".join(["host cpu_op first 0 1", *lines]))
    layout = lanes(trace, True)
    assert sorted(layout.rows.tolist()) == np.flatnonzero(drawable_mask(trace)).tolist()
    for low, high in zip(layout.bounds[:-1], layout.bounds[1:], strict=True):
        assert (layout.end[low : high - 1] <= layout.start[low + 1 : high]).all()
    per_track = [track.slices for track in tracks(trace).tracks]
    lane_sizes = np.diff(layout.bounds)
    assert np.bincount(layout.track, lane_sizes, minlength=len(per_track)).tolist() == per_track
    assert sum(per_track) == int(all_slices(trace).sum())
    assert not (event_roles(trace) == Role.INSTANT).any()
