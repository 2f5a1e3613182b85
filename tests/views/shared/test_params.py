"""Parameters that hold several values."""

from __future__ import annotations

import pytest

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.views._shared.params import parse_numbers, parse_texts


def test_parts_between_commas() -> None:
    assert parse_texts("a,b c,,d") == ["a", "b c", "d"]
    assert parse_texts("") == []
    assert parse_numbers("tracks", "3,-4,7") == [3, -4, 7]
    assert parse_numbers("tracks", "") == []


@pytest.mark.parametrize("text", ["x", "1,x", "1.5", "1;2"])
def test_an_error_names_the_parameter_that_is_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="tracks cannot be"):
        parse_numbers("tracks", text)
