"""Two memory snapshots on a terminal: their categories and the sites that differ."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.memory_snapshot import site_rows
from torch_tb_profiler.cli.screens.screen import Column, Screen, Table, reasons_of, sentences_of


def lay_out(payload: dict[str, Any]) -> Screen:
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
    sites = [row for row in site_rows(payload["sites"]) if row["bytes"]]
    return Screen(
        sentences_of(payload, "headline"),
        tables=[
            Table(_columns("Category"), categories, "category", "By category"),
            Table([*_columns("Site"), *_BLOCKS], sites, "site", "By site"),
        ],
        reasons=reasons_of(payload),
    )


def _columns(title: str) -> list[Column]:
    return [
        Column("name", title, "text", full="stack" if title == "Site" else ""),
        Column("bytes", "Difference", "bytes", signed=True),
        Column("base_bytes", "Base", "bytes"),
        Column("candidate_bytes", "Candidate", "bytes"),
    ]


_BLOCKS = [
    Column("more_bytes", "By number", "bytes", signed=True),
    Column("larger_bytes", "By size", "bytes", signed=True),
    Column("base_blocks", "Base blocks", "count"),
    Column("candidate_blocks", "Candidate blocks", "count"),
]
