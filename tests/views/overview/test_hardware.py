"""How much of their peak the devices use: what the overview says is what the roofline says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.work.operator_events import BF16, kernel, launch, operator
from tests.support.traces import draw, read, read_bytes
from tests.support.views import ask, words
from tests.views.test_truncated import WHOLE
from torch_tb_profiler.model.trace import Trace

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
MM: dict[str, Any] = {"dims": [[1000, 1000], [1000, 1000]], "types": [BF16, BF16]}  # 2 GFLOP


def product(*more: Any, device: dict[str, Any] = H100, **inputs: Any) -> Trace:
    """Draw a product that takes 100 us from its operator to the end of its kernel."""
    events = [operator("aten::mm", 0, 50, **inputs), launch(10, 1), kernel("gemm", 20, 80, 1), *more]
    return read(events, deviceProperties=[device])


def test_the_share_of_the_peak_with_its_source() -> None:
    payload = ask(product(**MM), "overview")
    hardware = payload["hardware"]
    assert hardware["mfu"] == pytest.approx(2e9 / 989.4e12 / 100e-6)
    assert (hardware["hfu"], hardware["coverage"], hardware["complete"]) == (hardware["mfu"], 1.0, True)
    assert hardware["peaks"] == "H100 SXM"
    assert hardware["sources"] == ["NVIDIA H100 Tensor Core GPU Architecture whitepaper"]
    assert "hardware" not in payload["reasons"]
    roofline = ask(product(**MM), "roofline")
    assert [hardware[key] for key in ("mfu", "hfu", "coverage")] == [
        roofline[key] for key in ("mfu", "hfu", "coverage")
    ]


def test_work_that_is_not_known_makes_it_a_lower_bound() -> None:
    hardware = ask(product(kernel("riddle", 100, 20, 99), **MM), "overview")["hardware"]
    assert (hardware["coverage"], hardware["complete"]) == (0.8, False)


def test_a_device_that_nobody_knows_has_a_reason_instead() -> None:
    hardware = ask(product(device={**H100, "name": "Abacus 3000"}, **MM), "overview")["hardware"]
    assert (hardware["mfu"], hardware["hfu"], hardware["peaks"]) == (None, None, None)
    assert "Abacus 3000" in words(hardware["reasons"]["mfu"])


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (product(), "record_shapes=True"),
        (draw("host cpu_op aten::mm 0 10"), "no device work is recorded"),
    ],
)
def test_nothing_is_said_without_shapes_or_devices(trace: Trace, reason: str) -> None:
    payload = ask(trace, "overview")
    assert payload["hardware"] is None
    assert reason in words(payload["reasons"]["hardware"])


def test_a_file_that_is_cut_off_gets_no_figure() -> None:
    payload = ask(read_bytes(WHOLE[:-25]), "overview")
    assert payload["hardware"] is None
    assert "truncated" in words(payload["reasons"]["hardware"])
