"""What a search finds by name, and where its hits are drawn."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.traces import draw
from tests.support.waiting import PATIENCE
from torch_tb_profiler.analyses.timeline import search as search_module
from torch_tb_profiler.analyses.timeline.search import SearchHits, adjacent_hits, find_hits, hit_places
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace

PICTURE = """
host   cpu_op  aten::mm      30  5
host   cpu_op  aten::addmm    0  5
host2  cpu_op  aten::MM_out  10  5
host2  cpu_op  aten::relu    20  5
"""


def names(trace: Trace, hits: SearchHits) -> list[str]:
    return [trace.strings[code] for code in trace.events.name[hits.rows]]


def test_part_of_a_name_in_any_case_in_order_of_time() -> None:
    trace = draw(PICTURE)
    hits = find_hits(trace, "mm", regex=False)
    assert names(trace, hits) == ["aten::addmm", "aten::MM_out", "aten::mm"]
    assert hits.by_track.tolist() == [2, 1]
    assert len(find_hits(trace, "m.m", regex=False).rows) == 0


@pytest.mark.parametrize("query", ["mm", "module:Linear"])
def test_a_search_does_not_wait_for_the_import_of_pandas(query: str) -> None:
    code = f"""
import sys
from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline.search import find_hits
find_hits(draw({PICTURE!r}), {query!r}, regex=False)
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_a_kernel_is_found_by_either_of_its_names_and_an_operator_by_its_own() -> None:
    trace = draw("""
    host  cpu_op  ncclDevKernel_AllReduce   0  5
    gpu0  kernel  ncclDevKernel_AllReduce  10  5  stream=7
    """)
    assert find_hits(trace, "ncclDev", regex=False).rows.tolist() == [0, 1]
    assert find_hits(trace, "nccl allreduce", regex=False).rows.tolist() == [1]
    assert find_hits(trace, "^NCCL .*Reduce$", regex=True).rows.tolist() == [1]


def test_device_work_is_found_by_its_family() -> None:
    trace = draw("""
    host  cpu_op      softmax                      0  5
    gpu0  kernel      softmax_warp_forward<float>  30  5  stream=7
    gpu0  kernel      ampere_sgemm_128x64_nn       20  5  stream=7
    gpu0  kernel      sgemm_32x32                  10  5  stream=7
    gpu0  gpu_memcpy  copy                         40  5  stream=7
    """)
    assert names(trace, find_hits(trace, "family:softmax", regex=False)) == ["softmax_warp_forward<float>"]
    products = find_hits(trace, "family: matrix product", regex=True)
    assert names(trace, products) == ["sgemm_32x32", "ampere_sgemm_128x64_nn"]
    assert names(trace, find_hits(trace, "family:memory", regex=False)) == ["copy"]
    assert len(find_hits(trace, "family:norm", regex=False).rows) == 0
    with pytest.raises(UsageError, match="no kernel family 'gemm'"):
        find_hits(trace, "family:gemm", regex=False)


def test_what_matches_nothing_matches_no_empty_name() -> None:
    """An event that is no kernel has no short name, not an empty one."""
    assert find_hits(draw("host cpu_op aten::mm 0 5"), "^$", regex=True).rows.tolist() == []


def test_regular_expressions() -> None:
    trace = draw(PICTURE)
    assert names(trace, find_hits(trace, "::(mm|relu)$", regex=True)) == ["aten::relu", "aten::mm"]
    with pytest.raises(UsageError, match="is not valid"):
        find_hits(trace, "(", regex=True)


def test_an_expression_that_explodes_elsewhere_is_answered_at_once() -> None:
    trace = draw(f"host cpu_op {'a' * 5000} 0 1")
    assert len(find_hits(trace, "(a+)+$", regex=True).rows) == 1
    assert len(find_hits(trace, "(a+)+b", regex=True).rows) == 0


def test_next_and_previous_from_a_time_and_from_a_hit() -> None:
    trace = draw(PICTURE)
    hits = find_hits(trace, "mm", regex=False)
    assert adjacent_hits(trace, hits, 5_000, -1) == (0, 1)
    assert adjacent_hits(trace, hits, 10_000, -1) == (0, 1)
    assert adjacent_hits(trace, hits, 10_000, 2) == (0, 2)
    assert adjacent_hits(trace, hits, 0, 1) == (None, 1)
    assert adjacent_hits(trace, hits, 30_000, 0) == (1, None)
    assert adjacent_hits(trace, hits, 99_000, -1) == (2, None)


NESTED_PICTURE = """
host   cpu_op  aten::linear   0  100
host   cpu_op  aten::mm      10   20
host   cpu_op  aten::t       32    3
host   cpu_op  aten::mm      40   20
host2  cpu_op  aten::mm      50   10
"""


def find_places(query: str, begin: int = 0, end: int = 100, resolution: int = 1) -> list[tuple[int, ...]]:
    """Return (track, depth, begin, end) of each place, in us."""
    trace = draw(NESTED_PICTURE)
    rows = find_hits(trace, query, regex=False).rows
    places = hit_places(trace, rows, 1000 * begin, 1000 * end, 1000 * resolution, python=False)
    return [
        (track, depth, start // 1000, stop // 1000)
        for track, depth, start, stop in zip(
            places.track.tolist(), places.depth.tolist(), places.begin.tolist(), places.end.tolist(), strict=True
        )
    ]


def test_hits_have_their_own_lane_not_that_of_what_is_around_them() -> None:
    assert find_places("mm") == [(0, 1, 10, 30), (0, 1, 40, 60), (1, 0, 50, 60)]
    assert find_places("linear") == [(0, 0, 0, 100)]


def test_hits_whose_gap_cannot_be_seen_are_one_place_of_their_lane() -> None:
    assert find_places("mm", resolution=10)[:2] == [(0, 1, 10, 30), (0, 1, 40, 60)]
    assert find_places("mm", resolution=11) == [(0, 1, 10, 60), (1, 0, 50, 60)]


def test_only_hits_that_touch_the_window_count() -> None:
    assert find_places("mm", 31, 45) == [(0, 1, 40, 60)]
    assert find_places("mm", 61, 99) == []
    assert find_places("nothing") == []


def test_more_hits_than_can_travel_are_shown_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MAX_PLACES", 2)
    assert find_places("mm") == [(0, 1, 10, 60), (1, 0, 50, 60)]
    monkeypatch.setattr(search_module, "MAX_PLACES", 1)  # as many lanes there are, at least
    assert find_places("mm") == [(0, 1, 10, 60), (1, 0, 50, 60)]
