from __future__ import annotations

from torch_tb_profiler.base.text import middle_cut, printable


def test_a_long_name_loses_its_middle() -> None:
    assert middle_cut("abcdefghij", 10) == "abcdefghij"
    assert middle_cut("abcdefghijk", 10) == "abcde…hijk"
    assert middle_cut("abcdef", 1) == "…"


def test_what_moves_a_cursor_becomes_a_space() -> None:
    assert printable("a\x1b[2J\nb\u202ec é") == "a [2J b c é"
