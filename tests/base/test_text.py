from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from torch_tb_profiler.base.format import natural_sort_key, replace_unprintable, shorten_middle


def test_a_long_name_loses_its_middle() -> None:
    assert shorten_middle("abcdefghij", 10) == "abcdefghij"
    assert shorten_middle("abcdefghijk", 10) == "abcde…hijk"
    assert shorten_middle("abcdef", 1) == "…"


def test_what_moves_a_cursor_becomes_a_space() -> None:
    assert replace_unprintable("a\x1b[2J\nb\u202ec é") == "a [2J b c é"


def test_numbers_inside_names_count_as_numbers() -> None:
    names = ["rank", "rank2", "rank9", "rank10", "rank10_b", "rank010_c", "worker"]
    assert sorted(set(names), key=natural_sort_key) == names


def test_no_number_is_too_long_and_superscripts_are_text() -> None:
    assert natural_sort_key("a" + "1" * 40) < natural_sort_key("a" + "1" * 39 + "2")
    assert natural_sort_key("m²") == [(-1, "m²")]


@given(st.lists(st.text(max_size=20), unique=True))
def test_any_names_have_one_order(names: list[str]) -> None:
    keys = [natural_sort_key(name) for name in sorted(names, key=natural_sort_key)]
    assert all(first < second for first, second in pairwise(keys))
