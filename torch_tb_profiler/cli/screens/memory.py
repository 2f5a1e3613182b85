"""Memory on a terminal: devices and growth of a trace; a memory snapshot, two compared, and those of all ranks."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    flat_rows,
    payload_text,
    reasons_of,
    sentences_of,
)
from torch_tb_profiler.views.memory.snapshot.words import site_name


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `MemoryPayload`; the other memory views have its blocks and operators."""
    devices = [
        Column("name", "Device", "text"),
        Column("hardware", "Name", "text"),
        Column("capacity_bytes", "Capacity", "bytes"),
        Column("peak_allocated.bytes", "Peak allocated", "bytes"),
        Column("peak_reserved.bytes", "Peak reserved", "bytes"),
        Column("end_bytes", "At the end", "bytes"),
        Column("allocations", "Allocations", "count"),
        Column("unreleased", "Still live", "count"),
        Column("fragmentation.bytes", "Reserved unused", "bytes"),
    ]
    holders = [
        {**holder, "device": growth["device"]} for growth in payload["growth"] for holder in growth["holders"]
    ]
    grown = [
        Column("name", "Allocated by", "text"),
        Column("module", "Module", "text"),
        Column("growth_bytes", "Growth", "bytes", total=sum(row["growth_bytes"] for row in holders)),
        Column("blocks", "Blocks", "count"),
        Column("device", "Device", "text"),
    ]
    failures = [
        Column("operator", "Out of memory in", "text"),
        Column("device", "Device", "text"),
        Column("bytes", "Size", "bytes"),
        Column("allocated_bytes", "Allocated", "bytes"),
        Column("reserved_bytes", "Reserved", "bytes"),
    ]
    sentences = [*sentences_of(payload, "headline")]
    if not payload["devices"] and payload["reasons"].get("devices"):
        sentences = [f"{capitalize(payload_text(payload['reasons']['devices']))}."]
    sentences += [payload_text(device["details"]) for device in payload["devices"]]
    several = len(payload["growth"]) > 1
    sentences += [
        f"{growth['device']}: {verdict}" if several else verdict
        for growth in payload["growth"]
        if (verdict := payload_text(growth["verdict"]))
    ]
    return Screen(
        list(dict.fromkeys(sentences)),
        facts_of(),
        [
            Table(devices, flat_rows(payload["devices"]), "device"),
            Table(failures, flat_rows(payload["out_of_memory"]), "failure"),
            Table(grown, holders, "row", "Growth"),
        ],
        reasons={name: text for name, text in reasons_of(payload).items() if name == "capacity_bytes"},
    )


def lay_out_snapshot(payload: dict[str, Any]) -> Screen:
    """Return the screen of `MemorySnapshot`; its history is drawn by the page."""
    peak: dict[str, Any] = payload["peak"] or {"bytes": 0, "older_bytes": 0, "categories": {}, "sites": []}
    in_use = peak["bytes"] + peak["older_bytes"]
    remedies = [payload_text(remedy) for oom in payload["oom"][-1:] for remedy in oom["remedies"]]
    categories = [{"name": name, "bytes": size} for name, size in peak["categories"].items()]
    if peak["older_bytes"]:
        categories.append({"name": "allocated before the history", "bytes": peak["older_bytes"]})
        categories.sort(key=lambda row: -row["bytes"])
    leaks = (payload["growth"] or {}).get("leaks", [])
    return Screen(
        [*sentences_of(payload, "headline", "details"), *remedies],
        tables=[
            Table(_FAILURE, flat_rows(payload["oom"]), "failure", "Out of memory"),
            Table(_amounts("Category", in_use), categories, "category", "In use at the peak"),
            Table([*_amounts("Site", in_use), _BLOCKS, _CATEGORY], _site_rows(peak["sites"]), "site", "Sites"),
            Table([*_amounts("Never freed", None), _BLOCKS], _site_rows(leaks), "site", "Likely leaks"),
            Table(_DEVICE, flat_rows(payload["devices"]), "device", "Devices"),
        ],
        reasons={
            name: text for name, text in reasons_of(payload).items() if name in ("entry", "growth", "incomplete")
        },
    )


def lay_out_compare(payload: dict[str, Any]) -> Screen:
    """Return the screen of `SnapshotComparison`; the differences of both tables add up to that of the peaks."""
    base, candidate = payload["base_categories"], payload["candidate_categories"]
    categories = [
        {
            "name": name,
            "base_bytes": base.get(name, 0),
            "candidate_bytes": candidate.get(name, 0),
            "bytes": candidate.get(name, 0) - base.get(name, 0),
        }
        for name in {**base, **candidate}
    ]
    categories.sort(key=lambda row: -abs(row["bytes"]))
    sites = [row for row in _site_rows(payload["sites"]) if row["bytes"]]
    return Screen(
        sentences_of(payload, "headline"),
        tables=[
            Table(_difference_columns("Category"), categories, "category", "By category"),
            Table([*_difference_columns("Site"), *_DIFFERENCE_BLOCKS], sites, "site", "By site"),
        ],
        reasons=reasons_of(payload),
    )


def lay_out_ranks(payload: dict[str, Any]) -> Screen:
    """Return the screen of `SnapshotRanks`."""
    columns = [
        Column("worker", "Rank", "text"),
        Column("device", "GPU", "count"),
        Column("peak_bytes", "Peak", "bytes"),
        Column("difference_bytes", "Difference", "bytes", signed=True),
        Column("live_bytes", "In use at the end", "bytes"),
        Column("reserved_bytes", "Reserved", "bytes"),
        Column("out_of_memory", "Out of memory", "count"),
        Column("leaked_bytes", "Likely leaked", "bytes"),
        *(Column(f"categories.{name}", capitalize(name), "bytes") for name in payload["categories"]),
    ]
    return Screen(
        sentences_of(payload, "headline"),
        tables=[Table(columns, flat_rows(payload["rows"]), "rank")],
        reasons=reasons_of(payload),
    )


def _site_rows(sites: list[dict[str, Any]]) -> list[Row]:
    """Return sites with the frame of the program as their name, all frames as `stack`."""
    rows = []
    for site in sites:
        frames = [frame["text"] for frame in site["frames"]]
        name = site_name(frames) or site.get("kind", "no stack recorded")
        rows.append({**site, "name": name, "stack": " < ".join(frames) or name})
    return rows


def _amounts(title: str, total: float | None) -> list[Column]:
    return [
        Column("name", title, "text", full="stack" if title != "Category" else ""),
        Column("bytes", "Size", "bytes", total=total),
    ]


def _difference_columns(title: str) -> list[Column]:
    return [
        Column("name", title, "text", full="stack" if title == "Site" else ""),
        Column("bytes", "Difference", "bytes", signed=True),
        Column("base_bytes", "Base", "bytes"),
        Column("candidate_bytes", "Candidate", "bytes"),
    ]


_BLOCKS = Column("blocks", "Blocks", "count")
_CATEGORY = Column("category", "Category", "text")
_FAILURE = [
    Column("requested", "Requested", "bytes"),
    Column("device_free", "Free on the device", "bytes"),
    Column("in_use", "In use", "bytes"),
    Column("unused", "Reserved but unused", "bytes"),
    Column("largest_free", "Largest free block", "bytes"),
    Column("other_bytes", "Other processes", "bytes"),
    Column("cause", "Cause", "text"),
]
_DEVICE = [
    Column("id", "GPU", "count"),
    Column("reserved_bytes", "Reserved", "bytes"),
    Column("allocated_bytes", "In use at the end", "bytes"),
    Column("free_bytes", "Cached", "bytes"),
    Column("largest_free_bytes", "Largest free block", "bytes"),
    Column("entries", "History entries", "count"),
    Column("out_of_memory", "Out of memory", "count"),
]
_DIFFERENCE_BLOCKS = [
    Column("more_bytes", "By number", "bytes", signed=True),
    Column("larger_bytes", "By size", "bytes", signed=True),
    Column("base_blocks", "Base blocks", "count"),
    Column("candidate_blocks", "Candidate blocks", "count"),
]
