"""What following an advice gains: what a replay without it says, where the schedule explains the trace."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.analyses.overview.advice_traces import BACKWARD, get_advice, measure_share, steps, work
from tests.analyses.overview.rule_traces import RULES
from tests.support.claims import repeat
from tests.support.simulation.simulator import (
    Action,
    Collective,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    Wait,
)
from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.overview.advice import advice, measured_advice
from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.gains import estimate_gains
from torch_tb_profiler.analyses.schedule.what_if import odd_steps_target, replay_unavailable_reason, what_if_curves
from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.intervals import intersect, total
from torch_tb_profiler.model.kinds import Kind, event_intervals, rows_of_kind

STEP = steps(1)
LOADER = "host user_annotation enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ {at} {wait}"


def test_what_would_be_waited_for_then_is_no_gain() -> None:
    """Of 4 ms of loading 3 are hidden; without all of it the step waits for the kernel, which takes as long."""
    trace = draw(
        f"{STEP}\n{work(15, 8_000, 5, 1)}\n{LOADER.format(at=5_000, wait=4_000)}\n{work(9_105, 800, 9_100, 2)}"
    )
    found = get_advice(trace, "data_loading")
    assert found is not None and found.gain is not None
    assert measure_share(found) == pytest.approx((9_000 - 8_015) / 10_000)
    # The second launch comes at 5,105; its kernel follows the first, and the host is done at 6,000.
    assert found.gain.basis == "what_if"
    assert found.gain.ns == pytest.approx(10_000_000 - (8_015 + 800) * 1_000, abs=20_000)


def test_a_host_that_never_waits_gains_what_the_device_outlasts_it_by() -> None:
    """A conversion of 9 of 11 ms, the last of which the host no longer runs in."""
    device = f"{work(500, 1_500, 100, 1, 'conv')}\n{work(2_000, 9_000, 110, 2, 'nchwToNhwcKernel')}"
    (found,) = measured_advice(draw(f"{STEP}\n{device}"))
    assert (found.finding.id, found.gain and found.gain.measured_ns) == ("layout_conversion", 1_000_000)


def test_a_host_that_is_ahead_gains_nothing_from_faster_kernels() -> None:
    """One rank's all-reduce takes 3 of 10 ms, while the host takes 9.9 whatever the device does."""
    line = "gpu0 kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL 6020 3000 correlation=2 stream=20"
    wrapped = "host cpu_op DistributedDataParallel.forward 5 10"
    launch = "host cuda_runtime cudaLaunchKernel 6000 5 correlation=2"
    trace = draw(f"{STEP}\n{BACKWARD}\n{wrapped}\n{work(20, 5_000, 10, 1)}\n{launch}\n{line}")
    assert get_advice(trace, "communication") is None


def test_code_on_the_host_saves_at_most_what_it_takes_also_while_others_are_awaited() -> None:
    """For 2 of its 4 ms the device is in a collective, which would begin and end sooner without it."""
    collective = "gpu0 kernel ncclDevKernel_AllReduce 510 2490 correlation=1 stream=20"
    launch = "host cuda_runtime cudaLaunchKernel 500 5 correlation=1"
    code = "host cpu_op tokenize 1000 4000"
    trace = draw(f"{STEP}\n{launch}\n{collective}\n{code}\n{work(6_000, 2_000, 5_990, 2)}")
    found = next(each for each in measured_advice(trace) if each.finding.id == "host_code")
    assert found.gain is not None
    assert (found.finding.subject, found.gain.measured_ns, found.gain.ns) == ("tokenize", 2_000_000, 4_000_000)


def test_short_code_saves_what_it_takes_after_syncs_too() -> None:
    """Three hooks of 600 us follow each of four syncs; without them twelve kernels of 200 us are left."""
    lines = [steps(1, 8_200)]
    for i in range(12):
        at = 2_035 * (i // 3) + 610 * (i % 3)
        lines += [f"host cpu_op my_hook {at + 1} 598", work(at + 606, 200, at + 600, i + 1)]
    lines += [f"host cuda_runtime cudaDeviceSynchronize {2_035 * i + 1_826} 204" for i in range(4)]
    found = get_advice(draw("\n".join(lines)), "short_code")
    assert found is not None and found.gain is not None
    assert found.gain.measured_ns < found.gain.ns - 500_000
    assert found.gain.basis == "what_if" and found.gain.ns == pytest.approx(4 * 600_000 + 8 * 410_000, abs=40_000)


def test_code_that_outlasts_what_a_sync_costs_saves_all_that_it_takes() -> None:
    """Each sync waits for 3 ms, so it costs as much: the last 600 us of the code are its own."""
    program: list[Action] = [Host("tokenize", 3_600), SimulatedKernel("gemm", 3_000), Sync()]
    trace = Simulation([program], steps=4, syncs=True).run().trace(0)
    found = get_advice(trace, "host_code")
    assert found is not None and found.gain is not None and found.gain.basis == "what_if"
    assert found.gain.ns == pytest.approx(3_600_000, rel=0.01)


def test_code_after_a_copy_that_the_host_waits_for_saves_all_that_it_takes() -> None:
    """The copy waits for 7 ms, nearly as long as the update on the CPU takes: both are true of that time."""
    trace = repeat(
        "host cuda_runtime cudaLaunchKernel 5 5 correlation=1",
        "gpu0 kernel gemm 12 6000 correlation=1 stream=7",
        "host cpu_op aten::copy_ 20 7000",
        "host cuda_runtime cudaMemcpyAsync 25 6992 correlation=2",
        "gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~Pageable) 6013 1000 correlation=2 stream=7",
        "host cpu_op aten::_fused_adam_ 7030 7960",
        length=15_000,
    )
    found = get_advice(trace, "host_code")
    assert found is not None and found.gain is not None and found.finding.subject == "aten::_fused_adam_"
    assert found.gain.measured_ns == pytest.approx(7_960_000, rel=0.01)
    assert found.gain.ns == pytest.approx(7_960_000, rel=0.01)


def test_a_removed_wait_gains_what_the_critical_path_says_of_its_operator() -> None:
    wait = "host cpu_op aten::item 1000 4010\nhost cuda_runtime cudaStreamSynchronize 1005 4000"
    trace = draw(f"{STEP}\n{work(10, 4_990, 5, 1)}\n{wait}\n{work(6_000, 4_000, 5_990, 2)}")
    found = get_advice(trace, "synchronization")
    assert found is not None and found.gain is not None
    (times,) = what_if_curves(trace, ("sync:aten::item",)).tolist()
    assert found.gain.ns == times[0] - times[-1] > 0
    assert found.gain.ns == pytest.approx(1_000_000, abs=20_000)


def test_data_loading_gains_what_the_critical_path_says_of_it() -> None:
    trace = draw(f"{STEP}\n{LOADER.format(at=0, wait=4_000)}\n{work(4_110, 5_000, 4_100, 1)}")
    found = get_advice(trace, "data_loading")
    assert found is not None and found.gain is not None
    (times,) = what_if_curves(trace, ("data_loading",)).tolist()
    assert found.gain.ns == times[0] - times[-1]
    assert found.gain_share == pytest.approx(0.4)


@pytest.mark.parametrize(("late", "gain"), [(0, 600_000), (5_500, None)])
def test_a_conversion_gains_what_the_host_would_wait_less(late: int, gain: int | None) -> None:
    """600 us of conversion end what the host waits for; a host that comes 10 us before their end gains nothing."""
    device = f"{work(110, 5_000, 100, 1)}\n{work(5_110, 600, 120, 2, 'nchwToNhwcKernel')}"
    wait = f"host cuda_runtime cudaDeviceSynchronize {200 + late} {5_510 - late}"
    found = get_advice(draw(f"{STEP}\n{device}\n{wait}"), "layout_conversion")
    if gain is None:
        assert found is None
    else:
        assert found is not None and found.gain is not None
        assert (found.gain.basis, found.gain.measured_ns) == ("what_if", gain)
        assert found.gain.ns == pytest.approx(gain, abs=20_000)


@pytest.mark.parametrize(("us", "gives"), [(19, False), (20, True)])
def test_a_call_of_twenty_microseconds_waits_for_a_device_that_works(us: int, gives: bool) -> None:
    """Forty of them, while kernels run: only calls that wait let faster kernels shorten the step."""
    device = f"{work(110, 5_000, 100, 1)}\n{work(5_110, 600, 120, 2, 'nchwToNhwcKernel')}"
    polls = "\n".join(f"host cuda_runtime cudaEventQuery {200 + 100 * i} {us}" for i in range(40))
    found = measured_advice(draw(f"{STEP}\n{device}\n{polls}"))
    assert ("layout_conversion" in [each.finding.id for each in found]) == gives


def test_where_nothing_explains_the_starts_the_share_stays_and_says_so() -> None:
    """Kernels 200 us after their launch for no recorded reason, but for one."""
    late = "\n".join(work(4_000 + 500 * i, 100, 3_800 + 500 * i - 37 * i, i + 2) for i in range(10))
    trace = draw(f"{STEP}\n{LOADER.format(at=0, wait=3_000)}\n{work(3_010, 100, 3_000, 1)}\n{late}")
    reason = replay_unavailable_reason(trace)
    assert reason is not None and reason.endswith("of the device work in complete steps (at least 95% is needed)")
    found = get_advice(trace, "data_loading")
    assert found is not None and found.gain is not None
    assert found.gain.basis == "share"
    assert found.gain.ns == found.gain.measured_ns == 3_000_000


def test_without_a_device_the_share_stays() -> None:
    trace = draw(f"{STEP}\n{LOADER.format(at=0, wait=3_000)}")
    assert replay_unavailable_reason(trace) == "no device work is recorded"
    found = get_advice(trace, "data_loading")
    assert found is not None and found.gain is not None and found.gain.basis == "share"


def test_what_is_not_in_the_schedule_has_no_what_if() -> None:
    kernels = f"{work(10, 9_000, 5, 1)}\n{work(20, 3_000, 15, 2).replace('gpu0', 'gpu1')}"
    trace = draw(f"{STEP}\nhost cpu_op DataParallel.forward 0 100\n{kernels}")
    assert replay_unavailable_reason(trace) is None
    found = get_advice(trace, "data_parallel")
    assert found is not None and found.gain is not None and found.gain.basis == "share"


def test_what_passes_between_steps_saves_as_much_as_in_all_but_one_of_them() -> None:
    """Four steps have three waits between them, but a run of many steps has one per step."""
    program: list[Action] = [Host("tokenize", 4000), SimulatedKernel("gemm", 5000), Sync()]
    found = advice(Simulation([program], steps=4, syncs=True).run().trace(0))
    gains = {each.finding.id: each.gain for each in found}
    longer, without = (
        Simulation([[each for each in program if keep or not isinstance(each, Sync)]], steps=100).run().end
        for keep in (True, False)
    )
    gain = gains["synchronization"]
    assert gain is not None and gain.basis == "what_if"
    assert (longer - without) / 100 <= gain.ns / 1000 + 10
    assert gain.ns / 1000 <= 4010


def test_a_host_that_never_waits_saves_no_more_than_the_busiest_stream_leaves() -> None:
    """Without its wait, the long collective of each fourth step would overlap with the steps after it."""
    lines, at = [], 0
    for step in range(12):
        end = 9_700 + (8_000 if step % 4 == 3 else 0)
        lines += [
            f"host user_annotation ProfilerStep#{step} {at} {end + 20}",
            work(at + 100, 9_600, at + 90, 10 * step + 1),
            f"host cuda_runtime cudaDeviceSynchronize {at + 120} {end - 110}",
        ]
        if step % 4 == 3:
            collective = work(at + 9_702, 8_000, at + 96, 10 * step + 2, "ncclDevKernel_AllReduce_Sum_f32")
            lines.append(collective.replace("stream=7", "stream=20"))
        at += end + 20
    found = get_advice(draw("\n".join(lines)), "synchronization")
    assert found is None or (found.gain is not None and found.gain.ns <= 120_000)


@pytest.mark.parametrize("break_", [{"odd": (2, 60_000.0)}, {"between": (3, 40_000.0)}], ids=["odd", "evaluation"])
def test_a_wait_saves_what_steps_in_a_row_save_beside_an_odd_one_or_an_evaluation(break_: Any) -> None:
    """Each of 6 steps prepares a batch for 2 ms after it has waited; nothing overlaps with what breaks the row."""
    program: list[Action] = [Host("aten::sort", 2_000), SimulatedKernel("gemm", 5_000), Sync()]
    trace = Simulation([program], steps=6, syncs=True, **break_).run().trace(0)
    found = get_advice(trace, "synchronization")
    assert found is not None and found.gain is not None
    assert found.gain.ns == pytest.approx(2_000_000, rel=0.05)


@pytest.mark.parametrize("stall", [18_000, 35_000])
def test_a_wait_saves_a_stall_that_is_hidden_only_where_no_odd_step_is_before_it(stall: int) -> None:
    """After a checkpoint one step of 10 ms is queued, in a row three are: they hide 18 ms, and most of 35 ms."""
    program: list[Action] = [Host("tokenize", 1_200), SimulatedKernel("gemm", 10_000), Sync()]
    stalls = Delay("loading", 0, us=stall, steps=(0, 4))
    trace = Simulation([program], steps=7, syncs=True, delays=[stalls], odd=(3, 100_000)).run().trace(0)
    found = get_advice(trace, "synchronization")
    in_a_row, without = (
        Simulation([actions], steps=6, delays=[replace(stalls, steps=(0, 3))]).run()
        for actions in (program, program[:-1])
    )
    saved = (in_a_row.end - max(span.end for span in without.spans[0])) / 5  # the first step has none before it
    assert found is not None and found.gain is not None and found.gain.basis == "what_if"
    assert found.gain.ns / 1000 == pytest.approx(saved, rel=0.02)
    (times,) = what_if_curves(trace, ("sync:cudaStreamSynchronize",)).tolist()
    assert times[0] - times[-1] == pytest.approx(found.gain.ns, abs=2)


def test_removed_waits_cut_the_step_by_no_more_than_devices_idle() -> None:
    """One step of six stalls: that its neighbors save nothing is no edge of a row, but how they are."""
    reduce = Collective("allreduce", (0,), "0", 5_000)
    work: list[Action] = [SimulatedKernel("gemm", 10_000), reduce, Wait(), SimulatedKernel("adam", 500)]
    program: list[Action] = [Host("tokenize", 10), *work, Sync()]
    stall = Delay("loading", 0, us=8_000, steps=(2,))
    trace = Simulation([program], steps=6, syncs=True, delays=[stall], odd=(4, 100_000)).run().trace(0)
    (times,) = what_if_curves(trace, ("sync:cudaStreamSynchronize",)).tolist()
    assert 1_500_000 < times[0] - times[-1] < 1_650_000


@pytest.mark.parametrize(("step", "breaks_a_row"), [(0, False), (1, True), (4, True), (5, False)])
def test_an_odd_step_breaks_a_row_only_between_typical_ones(step: int, breaks_a_row: bool) -> None:
    program: list[Action] = [SimulatedKernel("gemm", 5_000), Sync()]
    trace = Simulation([program], steps=6, syncs=True, odd=(step, 60_000)).run().trace(0)
    assert (odd_steps_target(trace) is not None) == breaks_a_row


@pytest.mark.parametrize("explained", [True, False])
def test_a_host_that_is_ahead_takes_as_long_as_in_its_fastest_step(explained: bool) -> None:
    """It launches for 6, 4 and 5 of 10 ms, then waits; without 9 ms of conversion, 4 may be what it takes."""
    lines = [steps(3)]
    for i, launching in enumerate((6_000, 4_000, 5_000)):
        at = 10_000 * i
        lines += [
            work(at + 20, 9_000, at + 10, 10 * i + 1, "nchwToNhwcKernel"),
            work(at + 9_020, 500, at + launching - 20, 10 * i + 2),
            f"host cuda_runtime cudaDeviceSynchronize {at + launching} {9_530 - launching}",
        ]
    trace = draw("\n".join(lines))
    assert replay_unavailable_reason(trace) is None
    found = next(
        each
        for each in (advice(trace) if explained else measured_advice(trace))
        if each.finding.id == "layout_conversion"
    )
    assert found.gain is not None and found.gain.basis == ("what_if" if explained else "share")
    assert found.gain.measured_ns == pytest.approx(4_520_000, abs=20_000)
    assert 5_000_000 < found.gain.ns < 5_540_000


def test_faster_kernels_save_no_more_than_they_take_less() -> None:
    """The host would be free 9 ms sooner, but of the step's work on the device only 2 ms go."""
    device = f"{work(20, 7_000, 10, 1)}\n{work(7_020, 2_000, 20, 2, 'nchwToNhwcKernel')}"
    found = get_advice(
        draw(f"{STEP}\n{device}\nhost cuda_runtime cudaDeviceSynchronize 30 9_000".replace("_", "")),
        "layout_conversion",
    )
    assert found is not None and found.gain is not None and found.gain.ns == pytest.approx(2_000_000, abs=1_000)


def test_what_saves_too_little_in_any_case_is_not_replayed() -> None:
    trace = read_bytes(json.dumps(RULES["synchronization", ""].applies).encode())
    kernels = rows_of_kind(trace, Kind.KERNEL)
    finding = Finding("contention", event_intervals(trace, kernels), rows=kernels, on_device=True)
    (replayed,) = estimate_gains(trace, [finding])
    windows = typical_windows(trace)
    most = total(intersect(finding.during, windows)) / len(windows.starts)
    assert replayed.basis == "what_if" and 0 < replayed.ns <= most
    assert estimate_gains(trace, [finding], least=most) == [replayed]
    (gain,) = estimate_gains(trace, [finding], least=most + 1)
    assert gain.basis == "share" and gain.ns <= most
