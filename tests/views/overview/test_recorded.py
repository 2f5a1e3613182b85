"""What the file itself records, as the overview lists it."""

from __future__ import annotations

from unittest.mock import PropertyMock, patch

import pytest

from tests.support.traces import document, draw, event, read_bytes
from tests.support.views import ask
from torch_tb_profiler.analyses.shared.breakdown import MAX_STEPS, Breakdown, breakdown
from torch_tb_profiler.views.overview.recorded import (
    build_configuration,
    build_steps,
    recorded_device_type,
)

COUNT = 50
STEPS = "\n".join(f"host user_annotation ProfilerStep#{n} {100 * n} {60 + n % 30}" for n in range(COUNT))


def test_steps_are_listed_with_their_times_which_are_computed_once() -> None:
    """Not once for each step: hundreds of thousands of short steps took a quarter of an hour."""
    times = breakdown(draw(STEPS))
    durations = times.durations
    with patch.object(Breakdown, "durations", new_callable=PropertyMock, return_value=durations) as asked:
        steps = build_steps(times)
    assert asked.call_count == 1
    assert [(each.name, each.start_ns, each.duration_ns) for each in steps] == [
        (str(n), 100_000 * n, 1000 * (60 + n % 30)) for n in range(COUNT)
    ]
    assert all(each.categories.other == each.duration_ns for each in steps)


OPERATOR = "host cpu_op aten::mm 0 5"
LAUNCHES = f"{OPERATOR}\nhost cuda_runtime cudaLaunchKernel 10 5 correlation=1"


@pytest.mark.parametrize(
    ("lines", "shown", "busy"),
    [
        (OPERATOR, "CPU", None),
        (f"{LAUNCHES}\ngpu0 kernel gemm 20 30 correlation=1 stream=7", "CUDA", "CUDA"),
        (LAUNCHES, "CUDA", None),  # the device worked, and was not recorded
        (LAUNCHES.replace("cudaLaunch", "hipLaunch"), "ROCm", None),
        (LAUNCHES.replace("cudaLaunch", "launch"), None, None),  # what kind of device that was is not told
    ],
)
def test_the_type_of_the_device(lines: str, shown: str | None, busy: str | None) -> None:
    configured = build_configuration(draw(lines))
    assert (configured.device_type, recorded_device_type(configured)) == (shown, busy)


def test_a_file_that_is_cut_off_before_any_device_work_is_not_of_a_cpu() -> None:
    lines = [event(line) for line in (OPERATOR, "host cpu_op aten::add 10 5")]
    cut = build_configuration(read_bytes(document(lines)[:-25]))
    assert (cut.device_type, recorded_device_type(cut)) == (None, None)
    assert build_configuration(read_bytes(document(lines))).device_type == "CPU"


def test_of_many_steps_a_selection_is_listed_that_has_the_extremes_of_all() -> None:
    lines, at = [], 0
    for number in range(4500):
        length = {17: 6, 3211: 14}.get(number, 10)
        lines.append(f"host  user_annotation  ProfilerStep#{number}  {at}  {length}")
        lines.append(f"host  cpu_op  aten::mm  {at + 1}  {1 if number == 2000 else 4}")
        at += length
    payload = ask(draw("\n".join(lines)), "overview")
    listed = [step["name"] for step in payload["steps"]]
    assert payload["step_count"] == 4500 and len(listed) <= MAX_STEPS + 20
    assert {"0", "17", "2000", "3211", "4499"} <= set(listed)
    assert listed == sorted(listed, key=int)
    assert payload["average"]["steps"] == 4500 - len(payload["average"]["outliers"])
    few = ask(draw("\n".join(lines[:4000])), "overview")
    assert len(few["steps"]) == few["step_count"] == 2000
