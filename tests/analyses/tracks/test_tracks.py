"""What tracks are called."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.tracks import roles
from torch_tb_profiler.analyses.tracks.tracks import tracks


@pytest.mark.parametrize(
    ("stream", "name"),
    [(7, "stream 7, waits"), (2**32 - 1, "all streams, waits"), (0, "stream 0, waits")],
)
def test_a_wait_for_no_single_stream_is_one_for_all(stream: int, name: str) -> None:
    trace = draw(f"gpu0 kernel k 0 10 stream=7\ngpu0 cuda_sync Stream~Sync 20 10 stream={stream}")
    assert name in [track.name for track in tracks(trace).tracks]


def test_events_are_counted_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "_COUNTED_AT_ONCE", 1)
    trace = draw("\n".join(f"host cpu_op aten::mm {10 * number} 5" for number in range(1000)))
    assert [(track.slices, track.untimed) for track in tracks(trace).tracks] == [(1000, 0)]
