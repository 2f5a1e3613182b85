"""Numbers, durations, sizes, and names as people read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.format import (
    format_bytes,
    format_duration,
    format_durations,
    format_number,
    format_rate,
    format_ratio,
    natural_sort_key,
    parse_duration,
    replace_unprintable,
    shorten_middle,
)

# The table that the page follows too: fe/src/base/format.test.ts.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "numbers.json").read_text(encoding="utf-8"))
FORMATS: dict[str, Callable[[Any], str]] = {
    "number": format_number,
    "duration": format_duration,
    "bytes": format_bytes,
    "ratio": format_ratio,
    "rate": format_rate,
    "count": "{:,}".format,
}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['kind']} {row['value']}")
def test_numbers_are_written_as_the_page_writes_them(row: dict[str, Any]) -> None:
    assert FORMATS[row["kind"]](row["value"]) == row["text"]


@pytest.mark.parametrize(
    ("ns", "down", "up"),
    [
        (11_050_000, "11.0 ms", "11.1 ms"),
        (11_049_000, "11.0 ms", "11.1 ms"),
        (11_100_000, "11.1 ms", "11.1 ms"),
        (9_991_000, "9.99 ms", "10.0 ms"),
        (999_900, "0.999 ms", "1.00 ms"),
        (999_400, "999 µs", "1.00 ms"),
        (999_000, "999 µs", "999 µs"),
        (0, "0 ns", "0 ns"),
    ],
)
def test_a_bound_is_rounded_to_the_side_on_which_it_holds(ns: int, down: str, up: str) -> None:
    assert (format_duration(ns, "down"), format_duration(ns, "up")) == (down, up)


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (100_000_000, 105_000_000, ("100 ms", "105 ms")),
        (1_000_000_000, 1_002_000_000, ("1.000 s", "1.002 s")),
        (1_000_000_000, 1_006_000_000, ("1.000 s", "1.006 s")),  # 1.01 s would say 10 ms more
        (10_000_000, 9_999_600, ("10.0000 ms", "9.9996 ms")),
        (5_000_000, 5_000_000, ("5.00 ms", "5.00 ms")),
        (5_000_000, 5_000_000.4, ("5.000000 ms", "5.000000 ms")),  # nothing is finer than 1 ns
        (0, 5, ("0 ns", "5.00 ns")),
    ],
)
def test_two_durations_show_how_they_differ(first: float, second: float, texts: tuple[str, str]) -> None:
    assert format_durations(first, second) == texts


@pytest.mark.parametrize(
    ("ratio", "down", "up"),
    [
        (0.03344, "3.3%", "3.4%"),
        (0.07, "7%", "7%"),  # 7.000000000000001 in floats
        (0.9996, "99.9%", "100%"),
        (1.0, "100%", "100%"),
        (0.00027, "0.027%", "0.1%"),
        (0.0, "0%", "0%"),
    ],
)
def test_a_ratio_that_bounds_is_rounded_to_the_side_on_which_it_holds(ratio: float, down: str, up: str) -> None:
    assert (format_ratio(ratio, "down"), format_ratio(ratio, "up")) == (down, up)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_shown_as_unknown(value: float) -> None:
    assert (format_number(value), format_ratio(value)) == ("–", "–")


@pytest.mark.parametrize(
    ("text", "ns"), [("1.5ms", 1_500_000), (" 20 us", 20_000), ("-3ns", -3), ("2s", 2 * 10**9), ("7µs", 7000)]
)
def test_durations_are_parsed_with_their_unit(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "5", "ms", "1.2.3s", "1h", "1e3s", "-s"])
def test_invalid_durations_raise_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a valid duration"):
        parse_duration(text)


def test_a_long_name_loses_its_middle() -> None:
    assert shorten_middle("abcdefghij", 10) == "abcdefghij"
    assert shorten_middle("abcdefghijk", 10) == "abcde…hijk"
    assert shorten_middle("abcdef", 1) == "…"


def test_unprintable_characters_become_spaces() -> None:
    assert replace_unprintable("a\x1b[2J\nb\u202ec é") == "a [2J b c é"


def test_numbers_in_names_sort_by_value() -> None:
    names = ["rank", "rank2", "rank9", "rank10", "rank10_b", "rank010_c", "worker"]
    assert sorted(set(names), key=natural_sort_key) == names


def test_long_numbers_sort_and_superscripts_are_text() -> None:
    assert natural_sort_key("a" + "1" * 40) < natural_sort_key("a" + "1" * 39 + "2")
    assert natural_sort_key("m²") == [(-1, "m²")]


@given(st.lists(st.text(max_size=20), unique=True))
def test_distinct_names_have_distinct_keys(names: list[str]) -> None:
    keys = [natural_sort_key(name) for name in sorted(names, key=natural_sort_key)]
    assert all(first < second for first, second in pairwise(keys))
