"""Tests of the catalog of devices, and of the entry that a recorded device is matched with."""

from __future__ import annotations

import re

import msgspec
import pytest

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.devices import DeviceInfo
from torch_tb_profiler.model.hardware.catalog import parse_catalog, parse_user_catalog
from torch_tb_profiler.model.hardware.devices import DEVICES
from torch_tb_profiler.model.hardware.peaks import find_peaks
from torch_tb_profiler.model.hardware_catalog import DeviceEntry


def device(name: str | None, units: int | None = None, gb: float | None = None, kind: str = "CUDA") -> DeviceInfo:
    return DeviceInfo(0, kind, name, None if gb is None else int(gb * 1e9), None, units)


def test_a_peak_is_units_times_operations_times_clock() -> None:
    checked = 0
    for entry in DEVICES:
        for rates, per_clock, mhz in (
            (entry.matrix, entry.per_clock, entry.matrix_mhz),
            (entry.vector, entry.vector_per_clock, entry.vector_mhz),
        ):
            for kind, operations in per_clock.items():
                computed = (entry.units or 0) * operations * (mhz or 0) / 1e6
                # The L40S's own sheet rounds down by 1.2 % in half precision only.
                assert rates[kind] == pytest.approx(computed, rel=0.013), (entry.name, kind)
                checked += 1
    assert checked > 90


def test_every_entry_has_a_source() -> None:
    assert len(DEVICES) >= 25
    assert all(len(entry.source) > 10 for entry in DEVICES)
    assert len({entry.name.lower() for entry in DEVICES}) == len(DEVICES)


def test_every_entry_could_be_one_of_a_users_file() -> None:
    for entry in DEVICES:
        fields = msgspec.to_builtins(entry)
        assert msgspec.json.encode(msgspec.convert(fields, DeviceEntry)) == msgspec.json.encode(entry), entry.name
        assert re.compile(entry.match, re.IGNORECASE)


def test_checked_rates_are_rates_of_the_entry() -> None:
    for entry in DEVICES:
        figures = {*entry.matrix, *entry.vector, "hbm", *(["link"] if entry.link_gbs else [])}
        assert set(entry.checked) <= figures, entry.name
    assert 10 < sum(bool(entry.checked) for entry in DEVICES) < len(DEVICES)
    (h100,) = (each for each in DEVICES if each.name == "H100 SXM")
    named = find_peaks(device("NVIDIA H100 80GB HBM3", 132, 85.0))
    assert named.checked == h100.checked
    assert find_peaks(device("NVIDIA H100 80GB HBM3", 132, 85.0), "bf16=1").checked == ()


@pytest.mark.parametrize(
    ("name", "units", "gb", "entry"),
    [
        ("NVIDIA H100 80GB HBM3", 132, 85.0, "H100 SXM"),
        ("NVIDIA H100 PCIe", 114, 85.0, "H100 PCIe"),
        ("NVIDIA H100 NVL", 132, 100.0, "H100 NVL"),
        ("NVIDIA H100", 114, 85.0, "H100 PCIe"),
        ("NVIDIA H100", 132, 102.1, "H100 SXM"),
        ("NVIDIA H200", 132, 150.0, "H200 SXM"),
        ("NVIDIA A100-SXM4-40GB", 108, 42.3, "A100 SXM 40 GB"),
        ("NVIDIA A100-SXM4-80GB", 108, 85.0, "A100 SXM 80 GB"),
        ("NVIDIA A100-PCIE-40GB", 108, 42.3, "A100 PCIe 40 GB"),
        ("NVIDIA A100 80GB PCIe", 108, 85.0, "A100 PCIe 80 GB"),
        ("Tesla V100-SXM2-16GB", 80, 16.9, "V100 SXM2"),
        ("NVIDIA L4", 58, 24.0, "L4"),
        ("NVIDIA L40S", 142, 48.0, "L40S"),
        ("NVIDIA A10", 72, 24.0, "A10"),
        ("NVIDIA GeForce RTX 4090", 128, 25.4, "RTX 4090"),
        ("NVIDIA B200", 148, 192.0, "B200"),
        ("NVIDIA GB200", 148, 192.0, "GB200"),
        ("AMD Instinct MI300X VF", 304, 205.6, "MI300X"),
        ("AMD Instinct MI325X", 304, 274.9, "MI325X"),
    ],
)
def test_names_that_drivers_report_match_their_entry(name: str, units: int, gb: float, entry: str) -> None:
    assert find_peaks(device(name, units, gb)).name == entry


@pytest.mark.parametrize(
    "name",
    ["NVIDIA L40", "NVIDIA A10G", "NVIDIA A1000", "NVIDIA GeForce RTX 4090 D", "Tesla V100-PCIE-16GB", "ARTEMIS"],
)
def test_a_device_with_only_a_similar_name_is_unknown(name: str) -> None:
    found = find_peaks(device(name, 80))
    assert found.name is None
    assert found.memory is None
    assert name in (found.reason or "")


def test_a_nameless_rocm_device_is_found_by_its_units_and_memory() -> None:
    assert find_peaks(device(None, 304, 206.1, "ROCm")).name == "MI300X"
    assert find_peaks(device("AMD Radeon Graphics", 304, 274.9, "ROCm")).name == "MI325X"
    assert find_peaks(device(None, 304, 100.0, "ROCm")).name is None
    assert find_peaks(device(None, 132, 85.0)).name is None  # NVIDIA's drivers always report a name


def test_a_slice_has_its_share_of_the_full_device() -> None:
    full = find_peaks(device("NVIDIA H100 80GB HBM3", 132, 85.0))
    part = find_peaks(device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, 10.2))
    assert part.name == "H100 SXM"
    assert part.matrix["bf16"] == pytest.approx(full.matrix["bf16"] * 16 / 132)
    assert part.memory == pytest.approx((full.memory or 0) * 16 / 132)
    assert "slice of 16 of its 132 units" in (part.matched or "")


def test_a_slice_of_an_ambiguous_device_is_unknown() -> None:
    found = find_peaks(device("NVIDIA H100", 60, 40.0))
    assert found.name is None
    assert "H100 PCIe or H100 SXM" in (found.reason or "")
    assert find_peaks(device("NVIDIA A100-SXM4", 108)).name is None  # 40 or 80 GB: the bandwidths differ


def test_full_single_precision_runs_on_the_vector_units() -> None:
    h100 = find_peaks(device("NVIDIA H100 80GB HBM3", 132))
    assert h100.rate(True, "fp32") == h100.rate(False, "fp32") == pytest.approx(66.9e12)
    assert h100.rate(True, "bf16") == pytest.approx(989.4e12)
    assert h100.rate(True, "fp4") is None


def test_requested_rates_win_and_are_named_as_the_source() -> None:
    found = find_peaks(device("NVIDIA H100 80GB HBM3", 132), "bf16=800, hbm=3000")
    assert (found.matrix["bf16"], found.memory, found.matrix["fp8"]) == (800e12, 3000e9, 1978.9e12)
    assert "figures given: bf16, hbm" in (found.source or "")
    alone = find_peaks(device("ARTEMIS"), "bf16=100,hbm=200")
    assert (alone.name, alone.reason, alone.rate(True, "bf16")) == (None, None, 100e12)
    assert find_peaks(device("ARTEMIS"), "h200 sxm").memory == 4800e9


@pytest.mark.parametrize("given", ["bf16=-1", "bf16=fast", "speed=1", "H900", "bf16=nan"])
def test_an_invalid_request_is_refused(given: str) -> None:
    with pytest.raises(UsageError):
        find_peaks(device("NVIDIA H100 80GB HBM3", 132), given)


def toml(**changes: str) -> str:
    fields = {"name": '"H100 SXM"', "match": "'H100'", "hbm_gbs": "3000", "source": '"lab"'}
    return "\n".join(["[[device]]", *(f"{key} = {value}" for key, value in {**fields, **changes}.items())]) + "\n"


H100 = device("NVIDIA H100 80GB HBM3", 132, 85.0)


def test_a_user_entry_of_a_known_name_replaces_ours() -> None:
    own = parse_user_catalog(toml(units="132", matrix="{ bf16 = 800 }"), "mine.toml")
    found = find_peaks(H100, user_catalog=own)
    assert (found.name, found.memory, found.matrix) == ("H100 SXM", 3000e9, {"bf16": 800e12})
    assert found.source == "mine.toml: lab"
    assert find_peaks(device("NVIDIA H100 PCIe", 114, 85.0), user_catalog=own) == find_peaks(
        device("NVIDIA H100 PCIe", 114, 85.0)
    )
    assert find_peaks(H100, "h100 sxm", own).memory == 3000e9
    assert find_peaks(H100).memory == 3352e9


def test_a_new_user_entry_is_tried_before_ours_and_may_be_chosen() -> None:
    own = parse_user_catalog(toml(name='"Lab H100"') + toml(name='"Abacus"', match="'Abacus 3000'"), "mine.toml")
    assert find_peaks(H100, user_catalog=own).name == "Lab H100"
    assert find_peaks(device("Abacus 3000"), user_catalog=own).source == "mine.toml: lab"
    assert find_peaks(device("NVIDIA H200", 132, 150.0), user_catalog=own).name == "H200 SXM"
    assert find_peaks(H100, "H200 SXM", own).name == "H200 SXM"
    assert find_peaks(device("NVIDIA L4", 58, 24.0), "lab h100", own).name == "Lab H100"
    with pytest.raises(UsageError) as raised:
        find_peaks(H100, "H900", own)
    assert "Lab H100, Abacus, V100 SXM2" in (raised.value.hint or "")


def test_a_new_user_entry_that_does_not_match_leaves_it_to_ours() -> None:
    own = parse_user_catalog(toml(name='"Small H100"', units="66"), "mine.toml")
    assert find_peaks(H100, user_catalog=own).name == "H100 SXM"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[[device]]\nname = \n", r"^mine.toml: .*line 2"),
        (toml() + toml(name='"B"', match="'('"), r"^mine.toml, entry 2 \('B'\): missing ."),
        (toml() + toml(hbm_gbs='"fast"'), r"^mine.toml, entry 2 \('H100 SXM'\): .*hbm_gbs"),
        (toml(hbm_gbs="-1"), r"entry 1 .*hbm_gbs"),
        (toml(hbm_gbs="inf"), r"entry 1 .*hbm_gbs"),
        (toml(hbm_gbs="nan"), r"entry 1 .*hbm_gbs"),
        (toml(units="0"), r"entry 1 .*units"),
        (toml(speed="1"), r"entry 1 .*speed"),
        (toml() + toml(name='"h100 sxm"'), r"entry 2 \('h100 sxm'\): an earlier entry has the same name"),
        ("[[device]]\n", r"entry 1 \('no name'\)"),
        ("devices = 1\n", r"^mine.toml: .*devices"),
        ("device = 1\n", r"^mine.toml: .*device"),
    ],
)
def test_an_error_in_a_file_names_its_place(text: str, place: str) -> None:
    with pytest.raises(UsageError, match=place):
        parse_user_catalog(text, "mine.toml")


@pytest.mark.parametrize(
    "text", ["not toml", '[[device]]\nname = "a"\n', '[[device]]\nname="a"\nmatch="("\nhbm_gbs=1.0\nsource="b"\n']
)
def test_a_file_that_describes_no_devices_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="mine.toml"):
        parse_catalog(text, "mine.toml")
