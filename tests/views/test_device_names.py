"""A device is called the same in all that the views say: "GPU 0", never "GPU0", "device 0" or "Device 0"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.views.sentences import read_table
from torch_tb_profiler.model.devices import device_name

OTHERWISE = re.compile(r"\b(?:(?:Device|device)[ :#_-]?|(?:GPU|XPU|HPU|NPU|MTIA|cuda)(?:[:#_-]| #)?)\d+\b")
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "payloads").glob("*.json"))
RECORDED = {"raw", "args", "process", "label", "thread"}
"""Fields with the texts of the recording itself, which nobody renames."""


def own_texts(payload: object, field: str = "") -> Iterator[str]:
    """Yield all strings of a payload but those of the recording."""
    if isinstance(payload, str):
        yield payload
    elif isinstance(payload, list):
        for each in payload:
            yield from own_texts(each, field)
    elif isinstance(payload, dict):
        for name, value in payload.items():
            if name not in RECORDED and name != "link":
                yield from own_texts(value, name)


def test_every_sentence_of_the_real_runs_spells_devices_alike() -> None:
    assert [row for row in read_table() if OTHERWISE.search(row[3])] == []


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_payload_spells_devices_alike(path: Path) -> None:
    texts = list(own_texts(json.loads(path.read_text())))
    assert texts
    assert [text for text in texts if OTHERWISE.search(text)] == []


@pytest.mark.parametrize("text", ["GPU0", "Device 0", "on device 3,", "device:1", "cuda:0", "HPU2", "GPU #1"])
def test_another_spelling_is_noticed(text: str) -> None:
    assert OTHERWISE.search(text)


def test_names_of_devices() -> None:
    assert {device_name(kind, 3) for kind in ("CUDA", "ROCm", "other")} == {"GPU 3"}
    assert device_name("HPU", 3) == "HPU 3"
    assert not OTHERWISE.search(device_name("CUDA", 0))
