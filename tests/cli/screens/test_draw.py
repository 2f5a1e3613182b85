"""Names, bars, and which columns a line has space for."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len

from tests.support.terminal import Terminal
from torch_tb_profiler.cli.screens.draw import ScreenLayout, bar_text, draw_screen
from torch_tb_profiler.cli.screens.names import shorten_names
from torch_tb_profiler.cli.screens.screen import Column, Screen, Table


def draw_table(table: Table, width: int | None, **options: bool) -> list[str]:
    stream = io.StringIO()
    draw_screen(Screen([], tables=[table]), ScreenLayout(width, width is not None, **options), stream)
    return stream.getvalue().splitlines()[1:]


ROWS = [
    {"name": "aten::" + "x" * 60, "calls": 1234567, "module": "short", "total_ns": 1_234_000, "full": "f" * 90},
    {"name": "aten::mm", "calls": 1, "module": "y" * 40, "total_ns": None, "full": "g"},
]
COLUMNS = (
    Column("name", "Operator", "text", full="full"),
    Column("calls", "Calls", "count"),
    Column("module", "Module", "text"),
    Column("total_ns", "Total"),
)


def test_names_lose_their_middle_and_numbers_nothing() -> None:
    lines = draw_table(Table(COLUMNS, ROWS), 70)
    assert max(map(len, lines)) <= 70
    assert lines[1].startswith("aten::xx") and "…" in lines[1] and "1,234,567" in lines[1]
    assert lines[1].endswith("1.23 ms") and lines[2].startswith("aten::mm ") and lines[2].endswith("–")


def test_columns_that_do_not_fit_are_named_and_narrower_ones_to_their_right_stay() -> None:
    lines = draw_table(Table(COLUMNS, ROWS), 45)
    assert lines[0].split() == ["Operator", "Calls", "Total"] and max(map(len, lines[:3])) <= 45
    assert " ".join(lines[3:]) == "1 column doesn't fit (Module); --wide shows all."
    wide = draw_table(Table(COLUMNS, ROWS), 45, wide=True)
    assert "f" * 90 in wide[1] and "y" * 40 in wide[2] and len(wide) == 3


@pytest.mark.parametrize(
    ("names", "width", "short"),
    [
        (["abcdefghij"], 10, ["abcdefghij"]),
        (["abcdefghijk"], 7, ["abc…ijk"]),
        # Cut in the middle both would be `GEMM …16x16`.
        (["GEMM bf16 nt, align 16x16", "GEMM bf16 tn, align 16x16"], 12, ["GEMM…6 nt,…", "GEMM…6 tn,…"]),
        (["    a" + "b" * 20 + "z"], 12, ["    abbb…bbz"]),
        (["名前" * 10], 9, ["名前…名前"]),
    ],
)
def test_a_cut_keeps_apart_what_differs(names: list[str], width: int, short: list[str]) -> None:
    cut = shorten_names(names, width)
    assert cut == short and max(map(cell_len, cut)) <= width


@pytest.mark.parametrize("width", [24, 30, 44])
def test_a_family_of_names_stays_apart_wherever_its_names_differ(width: int) -> None:
    names = [
        f"fused attention of GEMM {dtype} 32x32x256 {layout}, Tensile {tile}, flags that all have"
        for dtype in ("bf16", "fp32")
        for layout in ("tn", "nt")
        for tile in ("MT64", "MT16")
    ]
    cut = shorten_names(names, width)
    assert len(set(cut)) == len(names) and max(map(cell_len, cut)) <= width


def test_a_bar_is_as_long_as_the_share() -> None:
    assert [bar_text(share, 4) for share in (0, 0.001, 0.25, 0.5, 0.53, 1, 7)] == [
        "",
        "",
        "█",
        "██",
        "██▏",
        "████",
        "████",
    ]


def test_bars_are_shares_of_the_total_and_not_of_the_largest_row() -> None:
    table = Table([Column("name", "N", "text"), Column("t", "T", total=100)], [{"name": "a", "t": 25}])
    assert draw_table(table, 60)[1] == "a  25.0 ns 25% ███"
    assert draw_table(table, None)[1] == "a  25.0 ns 25%"


def test_a_share_of_a_bound_is_rounded_as_the_bound_is() -> None:
    column = Column("gain_ns", "Saves up to", total=10_000, rounding="up")
    assert draw_table(Table((column,), [{"gain_ns": 4_982}]), None)[-1].split() == ["4.99", "µs", "49.9%"]


def test_the_most_and_the_least_in_one_column_are_told_apart() -> None:
    column = Column("gain_ns", "Saves", total=10_000, bound="most")
    rows: list[dict[str, Any]] = [
        {"gain_ns": 4_982, "most": True},
        {"gain_ns": 4_989, "most": False},
        {"gain_ns": None, "most": True},
    ]
    shown = [line.split() for line in draw_table(Table((column,), rows), None)[1:]]
    assert shown[:2] == [["up", "to", "4.99", "µs", "49.9%"], ["at", "least", "4.98", "µs", "49.8%"]]
    assert shown[2] == ["–"]


def test_styles_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_styled(stream: io.StringIO) -> bool:
        draw_screen(Screen(["Finding."]), ScreenLayout(80, True), stream)
        return "\x1b[1m" in stream.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert is_styled(Terminal()) and not is_styled(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not is_styled(Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_styled(Terminal())


def test_a_fact_that_takes_more_than_a_line_begins_on_a_line_of_its_own() -> None:
    stream = io.StringIO()
    facts = [("Modeled", "44%"), ("Peaks", "tf32 156 TFLOP/s, fp32 19.5 TFLOP/s, fp64 9.70 TFLOP/s")]
    draw_screen(Screen([], facts), ScreenLayout(40, True), stream)
    assert stream.getvalue().splitlines()[0] == "Modeled 44%"
    assert stream.getvalue().splitlines()[1].startswith("Peaks tf32")


@pytest.mark.parametrize("width", range(16, 90))
def test_a_number_stays_on_the_line_of_its_unit(width: int) -> None:
    sentence = (
        "At its roofline, addmm would take 14.4 µs instead of 174 µs, and move 1.5 GiB at 1,555 GB/s in 3 steps."
    )
    stream = io.StringIO()
    draw_screen(Screen([sentence]), ScreenLayout(width, True), stream)
    lines = stream.getvalue().splitlines()
    assert " ".join(lines) == sentence and max(map(len, lines)) <= width
    for together in ("14.4 µs", "174 µs", "1.5 GiB", "1,555 GB/s"):
        assert any(together in line for line in lines)
