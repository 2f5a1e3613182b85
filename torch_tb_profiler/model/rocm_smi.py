"""The output of `rocm-smi`, which AORTA stores with an iteration: readings of every GPU of the machine.

GPU[0]     : Temperature (Sensor junction) (C): 41.0
GPU[0]     : Current Socket Graphics Package Power (W): 140.0
GPU[0]     : sclk clock level: 1: (1400Mhz)
GPU[0]     : GPU Memory Allocated (VRAM%): 12
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from torch_tb_profiler.base.patterns import lazy_regex

GpuQuantity = Literal["clock", "power", "temperature", "memory"]

UNITS: dict[GpuQuantity, str] = {"clock": "MHz", "power": "W", "temperature": "°C", "memory": "%"}

MAX_READINGS = 1024
"""Most readings of one output that are used: 64 GPUs with 16 each."""

_LINE = lazy_regex(r"^GPU\[(\d{1,3})\]\s*:\s*(.*\S)\s*$")
_CARD = lazy_regex(r"^card(\d{1,3})$")
_NUMBER = lazy_regex(r"^\(?\s*([+-]?\d{1,15}(?:\.\d{1,9})?)\s*(?:Mhz)?\s*\)?$", re.IGNORECASE)
_CLOCK = lazy_regex(r"^(\w{1,12}) clock (?:level|speed)\b", re.IGNORECASE)
_POWER = lazy_regex(r"^(?:Average|Current)\b.*\bPower \(W\)$")
"""Power that is drawn; others are limits."""
_MEMORY = lazy_regex(r"^GPU memory (?:use|allocated)\b", re.IGNORECASE)
_SENSOR = lazy_regex(r"^Temperature \(Sensor ([^()]{1,40})\) \(C\)$")
_SENSORS = ("junction", "hotspot", "edge")
"""Temperature sensors, the one that throttles first."""


class SmiReading(NamedTuple):
    """A value of one GPU; `name` is that of the tool, with its unit; a clock is in MHz."""

    gpu: int
    name: str
    value: float


def parse_rocm_smi(text: str) -> list[SmiReading]:
    """Return the readings in an output of `rocm-smi`, also of `--json`, without values that are no numbers."""
    readings = _parse_json_cells(text) if text.lstrip().startswith("{") else _parse_text_cells(text)
    return [
        SmiReading(gpu, _reading_name(name), float(match[1]))
        for (gpu, name, value), _ in zip(readings, range(MAX_READINGS), strict=False)
        if (match := _NUMBER.match(value.strip()))
    ]


def _parse_text_cells(text: str) -> Iterator[tuple[int, str, str]]:
    for line in text.splitlines():
        if match := _LINE.match(line):
            name, _, value = match[2].rpartition(":")
            yield int(match[1]), name.strip(), value


def _parse_json_cells(text: str) -> Iterator[tuple[int, str, str]]:
    try:
        cards = json.loads(text)
    except (ValueError, RecursionError):
        return
    for card, values in cards.items():
        match = _CARD.match(card)
        if match is not None and isinstance(values, dict):
            for name, value in values.items():
                yield int(match[1]), name.rstrip(": "), str(value)


def _reading_name(name: str) -> str:
    clock = _CLOCK.match(name)
    return f"{clock[1]} clock (MHz)" if clock else name


def short_sensor_name(name: str) -> str:
    """Return a short name with the unit for the best known readings: "junction, °C"; other names as they are."""
    match = _SENSOR.match(name)
    if match:
        return f"{match[1]}, °C"
    if name.endswith(" clock (MHz)"):
        return f"{name.removesuffix(' clock (MHz)')}, MHz"
    if _POWER.match(name):
        return "power, W"
    return "memory in use, %" if _MEMORY.match(name) else name


def own_gpu(gpus: Iterable[int], rank: int | None, world_size: int | None) -> int | None:
    """Return the GPU of a rank among those of its machine; None if the recording doesn't say which it is.

    A process sets its device to its rank on the machine, which is `rank` if the job has as many ranks as the
    machine has GPUs. A single GPU needs no choice.
    """
    listed = sorted(set(gpus))
    if len(listed) == 1:
        return listed[0]
    return rank if rank in listed and len(listed) == world_size else None


def read_quantities(readings: Sequence[SmiReading], gpu: int) -> dict[GpuQuantity, float]:
    """Return clock (MHz), power (W), temperature (°C) and share of memory in use (%) of a GPU, as far as read.

    Of several temperatures it is the one of the sensor that throttles first.
    """
    found: dict[GpuQuantity, float] = {}
    temperatures: dict[str, float] = {}
    for reading in readings:
        if reading.gpu != gpu:
            continue
        if reading.name == "sclk clock (MHz)":
            found.setdefault("clock", reading.value)
        elif _POWER.match(reading.name):
            found.setdefault("power", reading.value)
        elif _SENSOR.match(reading.name):
            temperatures[reading.name.lower()] = reading.value
        elif _MEMORY.match(reading.name):
            found.setdefault("memory", reading.value)
    for sensor in _SENSORS:
        named = [value for name, value in temperatures.items() if sensor in name]
        if named:
            found["temperature"] = named[0]
            break
    return found
