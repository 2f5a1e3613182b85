"""What notebooks show: whole HTML of any object, without a request, and with names that stay text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler as ttp
from tests.support.page import draw_training
from torch_tb_profiler.base import html
from torch_tb_profiler.base.format import format_bytes, replace_unprintable

HOSTILE = "<script>alert(1)</script> ' \" & $x$ \x1b[2J"


class Read(HTMLParser):
    """The text of a page, its elements, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def check_html(shown: Any) -> Read:
    """Check what a notebook gets of an object: nothing in it runs, loads anything or sets a color of its own."""
    page = Read(shown._repr_html_())
    assert {tag for tag, _ in page.elements} <= {"div", "p", "b", "table", "tr", "th", "td"}
    for _, given in page.elements:
        assert given.keys() <= {"class", "style", "title"}
        assert "url(" not in (given.get("style") or "")
        assert not (given.get("style") or "").startswith(("color", "background:#"))
    assert "mathjax_ignore" in str(page.elements[0][1]["class"])
    return page


@pytest.fixture
def run(tmp_path: Path) -> ttp.Run:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "w.pt.trace.json").write_bytes(draw_training(kernel=HOSTILE))
    return ttp.open(str(tmp_path))["a"]


def test_a_log_shows_its_runs_and_a_run_its_workers(run: ttp.Run, tmp_path: Path) -> None:
    with ttp.open(str(tmp_path)) as log:
        text = check_html(log).text
        size = format_bytes((tmp_path / "a" / "w.pt.trace.json").stat().st_size)
        assert f"Log {tmp_path}\n" in text and f"a\n1\n1\n{size}\n" in text
    assert (
        "Run a\n" in check_html(run).text
        and "operators" in check_html(run).text
        and "\nw\n" in check_html(run).text
    )


def test_an_answer_shows_its_sentences_and_its_table(run: ttp.Run) -> None:
    result = run.kernels()
    page = check_html(result)
    row = result.data.rows[0]
    assert "Kernels\n" in page.text
    assert replace_unprintable(result.text.split("\n")[0]) in page.text.split("\n")
    assert f"{row.total_ns / 1e6:.2f} ms\n" in page.text
    bars = [given["style"] for tag, given in page.elements if tag == "td" and "gradient" in str(given["style"])]
    assert any("100.0%" in str(style) for style in bars)


def test_names_of_the_trace_stay_text(run: ttp.Run) -> None:
    page = run.kernels()._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page and "\x1b" not in page
    assert HOSTILE.replace("\x1b", " ") in Read(page).text


def test_columns_and_summary(run: ttp.Run) -> None:
    columns = check_html(run.columns())
    for name in ("events", "operators", "kernels", "gaps"):
        assert f"\n{name}\n" in columns.text
    found = run.summary()
    page = check_html(found)
    assert found.step is not None
    assert f"a step of {found.step.mean_ns / 1e6:.2f} ms" in page.text
    assert found.headline[0] in page.text and found.advice[0].title in page.text


def test_a_long_table_says_how_many_rows_there_are() -> None:
    rows = [{"name": f"row {at}", "duration_ns": at} for at in range(30)]
    page = Read(html.render_table("rows", rows))
    assert f"rows ({html.MAX_ROWS} of 30 rows)" in page.text
    assert "row 19" in page.text and "row 20" not in page.text
    assert html.render_table("rows", []) == ""


def test_a_long_name_is_cut_in_the_middle_and_whole_in_its_tooltip() -> None:
    name = f"<{'a' * 200}>"
    cell = next(given for tag, given in Read(html.render_table("t", [{"name": name}])).elements if tag == "td")
    assert cell["title"] == name
