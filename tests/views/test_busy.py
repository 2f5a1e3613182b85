"""Busy and utilization: a figure each, whoever says the word, and a reason wherever the two differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.support.diffs import compare
from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.summary.payload import Summary
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_tabs

ROOT = Path(__file__).parents[2]
BUSY, UTILIZATION = 0.955, 0.6
BUSY_WORDS = re.compile(r"\b(busy|utilization)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Return two steps of 1000 us: each has 400 of a kernel, 300 copy, 55 memset and 200 communication."""
    return draw(
        "\n".join(
            f"""
            host  user_annotation   ProfilerStep#{at}            {at}        1000
            host  cuda_runtime      cudaLaunchKernel             {at + 1}       2  correlation={at + 1}
            gpu0  kernel            gemm                         {at + 4}     400  correlation={at + 1} stream=7
            gpu0  gpu_memcpy        Memcpy~HtoD~(Pinned~->~Device)  {at + 404}  300  stream=8
            gpu0  gpu_memset        Memset~(Device)              {at + 704}    55  stream=8
            gpu0  kernel            ncclDevKernel_AllReduce_Sum  {at + 760}   200  stream=20
            """
            for at in (0, 1000)
        )
    )


def of_overview(trace: Trace) -> float:
    return float(ask(trace, "overview")["devices"][0]["utilization"])


def of_diff(name: str) -> Callable[[Trace], float]:
    def answer(trace: Trace) -> float:
        (device,) = compare(trace, trace).devices
        return (device.busy.base_ns or 0) / 1e6 if name == "busy" else (device.utilization.base or 0)

    return answer


def of_selection(rows: str) -> Callable[[Trace], float]:
    def answer(trace: Trace) -> float:
        found = ask(trace, "trace/selection", begin=0, end=2_000_000)[rows]
        return float(sum(row["busy_ns"] for row in found if row.get("device", 0) == 0) / 2e6)

    return answer


FIELDS: dict[tuple[str, str], tuple[float, Callable[[Trace], float]] | str] = {
    ("Device", "utilization"): (UTILIZATION, of_overview),
    ("DiffDevice", "utilization"): (UTILIZATION, of_diff("utilization")),
    ("DiffDevice", "busy"): (BUSY, of_diff("busy")),
    ("SelectionDevice", "busy_ns"): (BUSY, of_selection("devices")),
    ("SelectionTrack", "busy_ns"): "of the slices of a track",
    ("TraceTile", "busy"): "of the slices of a box",
    ("RooflineRow", "busy_ns"): "of the device events of a row",
    ("EngineRow", "busy_ns"): "of the engines of a class",
    ("RecipeRow", "busy_ns"): "of the nodes of a compiled graph",
    ("IterationColumns", "busy_ns"): "of the kernels that an iteration launched",
    ("IterationsPayload", "busy_ns"): "of the kernels that several iterations launched",
    ("PhaseRow", "busy_ns"): "of the kernels that the iterations of a phase launched",
    ("DeviceUse", "mean_utilization"): "the mean of Device.utilization over workers",
    ("DeviceUse", "least_utilization"): "the least Device.utilization of all workers",
}
"""Every field that has one of the words in its name: the figure it must have, or of what else it is said."""


def payload_fields() -> Iterator[tuple[str, str]]:
    """Yield (payload, field) of everything that views and summaries answer."""
    described = json.loads((ROOT / "fe" / "openapi.json").read_text(encoding="utf-8"))["components"]["schemas"]
    _, summary = msgspec.json.schema_components([Summary])
    for name, schema in {**described, **summary}.items():
        for field in schema.get("properties", {}):
            yield name, field


def test_each_field_with_one_of_the_words_is_known() -> None:
    fields = {each for each in payload_fields() if re.search(r"busy|utilization", each[1])}
    assert fields == set(FIELDS)


@pytest.mark.parametrize("field", [field for field, figure in FIELDS.items() if not isinstance(figure, str)])
def test_a_field_of_a_device_is_the_figure_of_its_word(field: tuple[str, str], trace: Trace) -> None:
    figure = FIELDS[field]
    assert not isinstance(figure, str)
    expected, answer = figure
    assert answer(trace) == pytest.approx(expected)


def test_the_counter_of_utilization_is_the_figure_too(trace: Trace) -> None:
    (series,) = [each for each in all_series(trace) if each.role == "utilization"]
    used = np.diff(np.append(series.times, 2_000_000)) @ series.values
    assert used / 2e6 == pytest.approx(UTILIZATION)


def test_a_headline_has_the_figure_of_its_word(trace: Trace) -> None:
    tabs = [tab for tab in all_tabs() if isinstance(tab.view, TraceView) and tab.reason(trace) is None]
    text = [
        (tab.slug, word, share)
        for tab in tabs
        for word, share in re.findall(
            r"\b(busy|utilization)\b(?: is| for)? ([\d.]+%)", words(ask(trace, tab.slug)["headline"])
        )
    ]
    assert set(text) == {(slug, "busy", "95.5%") for slug in ("overview", "trace", "idle")}


def test_where_the_two_differ_the_second_says_why(trace: Trace) -> None:
    (device,) = ask(trace, "overview")["devices"]
    assert words(device["reasons"]["utilization"]) == (
        "it counts kernels only: with copies and memsets the device is busy for 95.5% of the same time"
    )


def test_where_they_read_alike_there_is_nothing_to_say() -> None:
    alike = draw("""
    host  user_annotation  ProfilerStep#1    0  1000
    host  cuda_runtime     cudaLaunchKernel  1     2  correlation=1
    gpu0  kernel           gemm              4   400  correlation=1 stream=7
    gpu0  gpu_memcpy       Memcpy~HtoD      40   100  stream=8
    """)
    (device,) = ask(alike, "overview")["devices"]
    assert device["utilization"] == pytest.approx(0.4) and "utilization" not in device["reasons"]


SCREEN = {
    "utilization": "the key of the field",
    "GPU utilization": "utilization, defined by the glossary beside it",
    "utilization (kernels)": "utilization",
    "${device} busy${atLeast}": "busy; at least, where copies are missing",
    "busy": "busy",
    "Device busy": "PhaseRow.busy_ns",
    "${id} busy": "the key of the row",
    "${id} busy (any work)": "busy",
    "Model FLOPs utilization (MFU)": "of the peak",
    "Hardware FLOPs utilization (HFU)": "of the peak",
}
"""Every label on the page that has one of the words, and what it is."""


def test_each_label_of_the_page_with_one_of_the_words_is_known() -> None:
    labels = set()
    for path in (ROOT / "fe" / "src").rglob("*.ts*"):
        if ".test." in path.name or "api" in path.parts:
            continue
        for quoted in re.findall(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`", path.read_text(encoding="utf-8")):
            if BUSY_WORDS.search(quoted) and len(quoted) < 50:
                labels.add(quoted[1:-1])
    assert labels == set(SCREEN)


def test_the_glossary_distinguishes_utilization_from_busy() -> None:
    glossary = (ROOT / "fe" / "src" / "base" / "glossary.ts").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^  utilization: \{(.*?)^  \},", glossary, re.MULTILINE | re.DOTALL)
    assert "at least one kernel runs" in entry and "Busy time" in entry and "any device work" in entry


def test_the_documentation_says_of_each_utilization_what_it_counts() -> None:
    """In the line itself."""
    lines = [
        line
        for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
        if path.name not in ("predecessor.md", "mutation.md")  # names of columns and of modules
        for line in re.sub(r"FLOPs utilization", "", path.read_text(encoding="utf-8")).splitlines()
        if re.search(r"\butilization\b", line, re.IGNORECASE)
    ]
    assert len(lines) >= 5
    assert [line for line in lines if "kernel" not in line] == []
