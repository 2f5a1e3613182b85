from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.format import (
    format_bytes,
    format_duration,
    format_number,
    format_ratio,
    parse_duration,
)

# The table that the page follows too: fe/src/base/format.test.ts.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "numbers.json").read_text(encoding="utf-8"))
FORMATS: dict[str, Callable[[Any], str]] = {
    "number": format_number,
    "duration": format_duration,
    "bytes": format_bytes,
    "ratio": format_ratio,
    "count": "{:,}".format,
}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['kind']} {row['value']}")
def test_numbers_are_written_as_the_page_writes_them(row: dict[str, Any]) -> None:
    assert FORMATS[row["kind"]](row["value"]) == row["text"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_unknown(value: float) -> None:
    assert (format_number(value), format_ratio(value)) == ("–", "–")


@pytest.mark.parametrize(
    ("text", "ns"), [("1.5ms", 1_500_000), (" 20 us", 20_000), ("-3ns", -3), ("2s", 2 * 10**9), ("7µs", 7000)]
)
def test_durations_are_a_number_and_a_unit(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "5", "ms", "1.2.3s", "1h", "1e3s", "-s"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a valid duration"):
        parse_duration(text)
