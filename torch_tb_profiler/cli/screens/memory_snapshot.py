"""A memory snapshot on a terminal: why it ran out, what grew, and what is in use at the peak."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    flat_rows,
    plain,
    reasons_of,
    sentences_of,
)
from torch_tb_profiler.views.memory.snapshot.words import site_name


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `MemorySnapshot`; its history is drawn by the page."""
    peak: dict[str, Any] = payload["peak"] or {"bytes": None, "categories": {}, "sites": []}
    remedies = [plain(remedy) for oom in payload["oom"][-1:] for remedy in oom["remedies"]]
    categories = [{"name": name, "bytes": size} for name, size in peak["categories"].items()]
    leaks = (payload["growth"] or {}).get("leaks", [])
    return Screen(
        [*sentences_of(payload, "headline", "details"), *remedies],
        tables=[
            Table(_FAILURE, flat_rows(payload["oom"]), "failure", "Out of memory"),
            Table(_amounts("Category", peak["bytes"]), categories, "category", "In use at the peak"),
            Table(
                [*_amounts("Site", peak["bytes"]), _BLOCKS, _CATEGORY], site_rows(peak["sites"]), "site", "Sites"
            ),
            Table([*_amounts("Never freed", None), _BLOCKS], site_rows(leaks), "site", "Likely leaks"),
            Table(_DEVICE, flat_rows(payload["devices"]), "device", "Devices"),
        ],
        reasons={
            name: text for name, text in reasons_of(payload).items() if name in ("entry", "growth", "incomplete")
        },
    )


def site_rows(sites: list[dict[str, Any]]) -> list[Row]:
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
