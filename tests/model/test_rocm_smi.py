"""Readings of `rocm-smi`: its lines, its JSON, and the GPU of a rank."""

from __future__ import annotations

import pytest

from tests.support.producers.aorta import smi_output
from torch_tb_profiler.model.rocm_smi import (
    MAX_READINGS,
    SmiReading,
    own_gpu,
    parse_rocm_smi,
    read_quantities,
    short_sensor_name,
)

JUNCTION, EDGE = "Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"


def test_each_line_with_a_number_is_a_reading() -> None:
    text = smi_output(
        {EDGE: "36.0", JUNCTION: "N/A", "sclk clock level: 1": "(1400Mhz)", "GPU Memory Allocated (VRAM%)": 12},
        {"Average Graphics Package Power (W)": 140.5},
    )
    assert parse_rocm_smi(text) == [
        SmiReading(0, EDGE, 36.0),
        SmiReading(0, "sclk clock (MHz)", 1400.0),
        SmiReading(0, "GPU Memory Allocated (VRAM%)", 12.0),
        SmiReading(1, "Average Graphics Package Power (W)", 140.5),
    ]


def test_json_has_the_same_readings() -> None:
    text = '{"card0": {"Temperature (Sensor edge) (C)": "36.0", "Card": "MI300X"}, "system": {"x": 1}, "card1": 3}'
    assert parse_rocm_smi(text) == [SmiReading(0, EDGE, 36.0)]


@pytest.mark.parametrize(
    "text", ["", "ERROR: no driver", "{", "[" * 100_000, '{"card0": null}', "GPU[0]", "GPU[0] : x"]
)
def test_other_text_has_no_readings(text: str) -> None:
    assert parse_rocm_smi(text) == []


def test_endless_readings_are_cut() -> None:
    assert len(parse_rocm_smi(smi_output({f"x{number}": 1 for number in range(2 * MAX_READINGS)}))) == MAX_READINGS


def test_the_gpu_of_a_rank_is_known_only_if_the_machine_holds_the_job() -> None:
    assert own_gpu([0], 5, 8) == 0
    assert own_gpu(range(8), 5, 8) == 5
    assert own_gpu(range(8), 5, 16) is None
    assert own_gpu(range(8), None, 8) is None
    assert own_gpu([], 0, 1) is None


def test_of_several_temperatures_the_one_that_throttles_first_counts() -> None:
    readings = parse_rocm_smi(smi_output({EDGE: 50, JUNCTION: 90, "Temperature (Sensor memory) (C)": 99}))
    assert read_quantities(readings, 0) == {"temperature": 90.0}
    assert read_quantities(readings, 1) == {}
    more: dict[str, object] = {
        "Max Graphics Package Power (W)": 750,
        "Current Socket Graphics Package Power (W)": 300,
        "GPU memory use (%)": 97,
        "sclk clock level: 1": "(900Mhz)",
    }
    assert read_quantities(parse_rocm_smi(smi_output(more)), 0) == {"power": 300.0, "memory": 97.0, "clock": 900.0}


def test_the_best_known_readings_have_short_names_on_the_timeline() -> None:
    text: dict[str, object] = {
        JUNCTION: 1,
        "sclk clock level: 1": "(900Mhz)",
        "Average Graphics Package Power (W)": 1,
        "Max Graphics Package Power (W)": 750,
    }
    names = [short_sensor_name(each.name) for each in parse_rocm_smi(smi_output(text))]
    assert names == ["junction, °C", "sclk, MHz", "power, W", "Max Graphics Package Power (W)"]
