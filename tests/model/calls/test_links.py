from __future__ import annotations

from tests.support.traces import draw, read
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.trace import Trace


def find_launches(trace: Trace) -> dict[str, tuple[str | None, str | None]]:
    names = [trace.strings[code] for code in trace.events.name]
    links = device_links(trace)
    return {
        names[row]: (names[launch] if launch >= 0 else None, names[op] if op >= 0 else None)
        for row, launch, op in zip(links.rows, links.launch, links.operator, strict=True)
    }


def test_links_follow_correlation_and_nesting_whatever_the_external_id_means() -> None:
    for ids in ("External id=1", "External id=7", ""):  # the operator's id; the correlation; none
        trace = draw(
            f"""
            host  cpu_op        outer   0 100  External id=1
            host  cpu_op        aten::mm 10 40  External id=2
            host  cuda_runtime  launch  20  10  correlation=7
            gpu0  kernel        gemm    60  30  correlation=7 stream=7 {ids}
            """
        )
        assert find_launches(trace) == {"gemm": ("launch", "aten::mm")}


def test_driver_launches_are_linked() -> None:
    trace = draw(
        """
        host  cpu_op       triton_op  0 50
        host  cuda_driver  cuLaunchKernel 10 10  correlation=3
        gpu0  kernel       triton_  30 10  correlation=3 stream=7
        """
    )
    assert find_launches(trace) == {"triton_": ("cuLaunchKernel", "triton_op")}


def test_a_graph_launch_owns_all_its_kernels() -> None:
    trace = draw(
        """
        host  cpu_op        graph  0 50
        host  cuda_runtime  cudaGraphLaunch 10 10  correlation=3
        gpu0  kernel        a  30 10  correlation=3 stream=7
        gpu0  kernel        b  40 10  correlation=3 stream=7
        gpu0  gpu_memset    c  50 10  correlation=3 stream=7
        """
    )
    assert set(find_launches(trace).values()) == {("cudaGraphLaunch", "graph")}


def test_work_without_a_launch_stays_unlinked() -> None:
    trace = draw(
        """
        host  cpu_op  op      0 50  External id=4
        gpu0  kernel  before  10 10  correlation=99 stream=7
        gpu0  kernel  by_id   20 10  correlation=98 stream=7 External id=4
        """
    )
    assert find_launches(trace) == {"before": (None, None), "by_id": (None, "op")}


def test_an_external_id_of_zero_is_ignored() -> None:
    """Profilers write 0 where they know none: the operator that has it by chance launched nothing."""
    trace = draw(
        """
        host  cpu_op  first   0 50  External id=0
        gpu0  kernel  lost   20 10  correlation=98 stream=7 External id=0
        """
    )
    assert find_launches(trace) == {"lost": (None, None)}


def test_an_external_id_equal_to_the_correlation_is_ignored() -> None:
    """In the files of one generation it is the correlation once more, so that it hits some operator by chance."""
    trace = draw(
        """
        host  cpu_op  chance  0 50  External id=7
        gpu0  kernel  lost   20 10  correlation=7 stream=7 External id=7
        """
    )
    assert find_launches(trace) == {"lost": (None, None)}


def test_the_old_spelling_of_the_external_id_is_a_fallback() -> None:
    trace = draw(
        """
        host  cpu_op  old    0 50  external id=4
        host  cpu_op  new   60 50  External id=5
        gpu0  kernel  a     20 10  correlation=98 stream=7 External id=4
        gpu0  kernel  b     70 10  correlation=99 stream=7 external id=5
        """
    )
    assert find_launches(trace) == {"a": (None, "old"), "b": (None, "new")}


def test_of_several_calls_with_one_correlation_the_first_is_the_launch() -> None:
    trace = draw(
        """
        host  cpu_op        early   0 20
        host  cuda_runtime  launch  5  5  correlation=3
        host  cpu_op        late   30 20
        host  cuda_runtime  again  35  5  correlation=3
        gpu0  kernel        k      60 10  correlation=3 stream=7
        """
    )
    assert find_launches(trace) == {"k": ("launch", "early")}


def test_a_launch_on_the_bare_thread_has_no_operator() -> None:
    trace = draw(
        """
        host  cuda_runtime  launch 10 10  correlation=1
        gpu0  kernel        k      30 10  correlation=1 stream=0
        """
    )
    assert find_launches(trace) == {"k": ("launch", None)}


def test_a_process_beyond_64_bits_is_no_device() -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 2**64, "tid": 2**64, "ts": 1, "dur": 1}
    trace = read([kernel, {**kernel, "pid": 3, "ts": 5}])
    assert [device.id for device in devices(trace)] == [3]
