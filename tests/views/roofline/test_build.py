"""What the roofline says, and when it says that it does not know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.model.work.operator_events import BF16, kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.views._shared.availability import roofline_reason as unavailable
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.roofline.build import build
from torch_tb_profiler.views.roofline.payload import RooflineParams

MM = {"dims": [[1000, 1000], [1000, 1000]], "types": [BF16, BF16]}  # 2 GFLOP, 6 MB
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}


def products(*more: dict[str, Any], device: dict[str, Any] | None = H100) -> Any:
    events = [operator("aten::mm", 0, 50, **MM), launch(10, 1), kernel("gemm", 20, 80, 1), *more]
    return read(events, deviceProperties=[device] if device else [])


def says(trace: Any, **params: Any) -> str:
    return plain(build(trace, RooflineParams(**params)).headline)


def test_all_is_modeled() -> None:
    payload = build(products(), RooflineParams())
    assert plain(payload.headline) == (
        "MFU is 2% on H100 SXM. At its roofline, mm would take 2.02 µs instead of 80.0 µs."
    )
    (row,) = payload.rows
    assert (row.name, row.calls, row.flops, row.bytes, row.busy_ns) == ("aten::mm", 1, 2e9, 6e6, 80_000)
    assert row.roof_ns == pytest.approx(2e9 / 989.4e3)
    assert row.efficiency == pytest.approx(2e9 / 989.4e3 / 80_000)
    assert row.flops_per_s == pytest.approx(2e9 / 80e-6)
    assert (row.bound, row.unit, row.type, payload.coverage) == ("compute", "matrix", "bf16", 1.0)
    assert payload.mfu == pytest.approx(2e9 / 989.4e12 / 100e-6)


def test_what_is_not_modeled_makes_it_a_lower_bound() -> None:
    assert says(products(kernel("alone", 200, 20, 9))).startswith(
        "MFU is at least 0.9% on H100 SXM (work known for 80% of kernel time)."
    )
    assert "at least 0.9% on H100 SXM (work known for nearly all kernel time)" in says(
        products(kernel("alone", 219.99, 0.01, 9))
    )


def test_figures_of_ones_own_are_not_said_to_be_those_of_the_device() -> None:
    assert says(products(), peaks="bf16=500").startswith("MFU is 4% on H100 SXM with edited peaks.")


def test_no_kernel_is_said_to_take_less_than_a_microsecond() -> None:
    dims, types = [[64, 64], [64, 64]], [BF16, BF16]
    events = [operator("aten::mm", 0, 50, dims=dims, types=types), launch(10, 1), kernel("gemm", 20, 10, 1)]
    small = read(events, deviceProperties=[H100])
    assert says(small).endswith("At its roofline, mm would take less than 1 µs instead of 10.0 µs.")


def test_a_device_without_a_name_is_said_to_be() -> None:
    assert "the name of the device isn't recorded, so its peak rates aren't known." in says(
        products(device={"id": 0})
    )
    assert "an unnamed device with 7 units" in says(products(device={"id": 0, "numSms": 7}))


def test_a_device_that_is_not_known_is_said_to_be() -> None:
    trace = products(device={"id": 0, "name": "Nobody 9000", "numSms": 7})
    payload = build(trace, RooflineParams())
    assert plain(payload.headline) == (
        "No roofline: the peak rates of 'Nobody 9000' aren't known. Enter the rates under Device."
    )
    assert payload.mfu is None
    assert "Nobody 9000" in plain(payload.reasons["mfu"])
    assert payload.rows[0].flops == 2e9
    assert payload.rows[0].efficiency is None
    assert "MFU is 50% on an unnamed device with edited peaks" in says(trace, peaks="bf16=40,hbm=1000")


def test_no_matrix_operator() -> None:
    assert says(
        read([operator("lib::x", 0, 9), launch(1, 1), kernel("k", 20, 30, 1)], deviceProperties=[H100])
    ) == ("No matmul or convolution with known FLOPs was recorded (work known for 0% of kernel time).")


def test_the_row_to_gain_most_is_linked() -> None:
    (phrase,) = [each for each in build(products(), RooflineParams("shape")).headline if each.link]
    assert phrase.link is not None
    assert phrase.link.startswith("roofline?group_by=shape&select=aten%3A%3Amm")


def test_families_of_kernels_are_rows_that_sum_to_all() -> None:
    trace = products(launch(30, 2), kernel("sgemm", 100, 30, 2), launch(31, 3), kernel("softmax", 130, 5, 3))
    payload, kernels = build(trace, RooflineParams("family")), build(trace, RooflineParams("kernel"))
    assert [row.name for row in payload.rows] == ["matrix product", "softmax"]
    for field in ("device_ns", "busy_ns", "calls"):
        assert sum(getattr(row, field) for row in payload.rows) == sum(getattr(row, field) for row in kernels.rows)
    assert payload.rows[0].flops == pytest.approx(2e9 * 110 / 115)  # a call shares its work by time


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="no device"):
        build(products(), RooflineParams(peaks="H900"))
    with pytest.raises(NotFoundError, match="no step"):
        build(products(), RooflineParams(step="99"))


def test_what_does_not_fit_is_summed_up() -> None:
    events = []
    for i in range(1000):
        events += [operator(f"lib::{'long' * 50}{i}", 10 * i, 5), launch(10 * i + 1, i + 1)]
        events.append(kernel("k", 10 * i + 3, 1 + i % 7, i + 1))
    payload = build(read(events), RooflineParams())
    assert payload.others is not None
    assert len(payload.rows) + payload.others.rows == 1000
    assert sum(row.device_ns for row in payload.rows) + payload.others.device_ns == payload.device_ns
    assert len(msgspec.json.encode(payload)) < 300_000
    assert min(row.device_ns for row in payload.rows) >= payload.others.device_ns / payload.others.rows


def test_without_device_work_or_shapes_there_is_nothing_to_show() -> None:
    assert "no device work" in (unavailable(read([operator("aten::mm", 0, 50, **MM)])) or "")
    bare = read([operator("aten::mm", 0, 50), launch(10, 1), kernel("gemm", 20, 80, 1)])
    assert "record_shapes=True" in (unavailable(bare) or "")
    assert unavailable(products()) is None


CLOCK = {"ph": "C", "name": "SM Clock [MHz]", "pid": "GPU 0 Counters", "tid": 0, "ts": 0, "args": {"value": 1464}}


def test_the_peak_says_at_which_clock_it_holds_where_the_trace_records_the_clock() -> None:
    """80% of the 1,830 MHz of the data base: 791.5 of 989.4 TFLOP/s. Roofs and MFU stay with the rated peak."""
    events = [operator("aten::mm", 0, 9, dims=[[64, 64], [64, 64]], types=[BF16, BF16]), launch(1, 1)]
    events.append(kernel("gemm", 20, 5, 1))
    without, with_clock = (
        build(read(found, deviceProperties=[H100]), RooflineParams()) for found in (events, [*events, CLOCK])
    )
    (device,) = with_clock.devices
    assert (device.clock_mhz, device.recorded_mhz) == (1830, 1464)
    assert plain(device.clock or ()) == (
        "SM Clock [MHz] averaged 1,464 MHz while the device was busy (1 sample). The peak rates assume 1,830 MHz. "
        "At 80% of that clock, bf16 reaches at most 792 TFLOP/s."
    )
    assert without.devices[0].clock is None
    assert without.rows == with_clock.rows
    assert without.mfu == with_clock.mfu
    for peaks in ("bf16=100", "GB200"):
        (device,) = build(read([*events, CLOCK], deviceProperties=[H100]), RooflineParams(peaks=peaks)).devices
        assert plain(device.clock or ()).endswith("The clock that its peak rates assume isn't known.")
