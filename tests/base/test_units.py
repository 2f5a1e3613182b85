from __future__ import annotations

import pytest

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.units import parse_duration


@pytest.mark.parametrize(
    ("text", "ns"), [("1.5ms", 1_500_000), (" 20 us", 20_000), ("-3ns", -3), ("2s", 2 * 10**9), ("7µs", 7000)]
)
def test_durations_are_a_number_and_a_unit(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "5", "ms", "1.2.3s", "1h", "1e3s", "-s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no duration"):
        parse_duration(text)
