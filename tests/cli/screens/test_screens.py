"""Every view on a terminal: within its width, with the page's words, and nothing that moves the cursor."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.screens import screen_of
from torch_tb_profiler.cli.screens.draw import ScreenLayout, draw_screen
from torch_tb_profiler.cli.screens.overview import CATEGORIES
from torch_tb_profiler.cli.screens.screen import Column, format_value
from torch_tb_profiler.session import open_session
from torch_tb_profiler.views._shared.wording import CAUSE_TITLES
from torch_tb_profiler.views.critical_path.titles import CATEGORY_TITLES

PAGE = Path(__file__).resolve().parents[3] / "fe" / "src"

RUNS = {
    "transformer": ("overview", "operators", "trace", "critical_path", "modules", "memory", "diff"),
    "lightning": ("lightning",),
    "simulated_8_h100_late_rank": (
        "overview",
        "kernels",
        "roofline",
        "trace",
        "idle",
        "critical_path",
        "distributed",
    ),
    "hang_gloo": ("hangs",),
    "serving": ("serving",),
    "simulated_graph_replay": ("origins", "operators", "kernels"),
}
"""Samples, and the views that they have data for."""


@pytest.fixture(scope="module")
def payloads(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the payload of each (run, slug)."""
    samples = Path(__file__).resolve().parents[3] / "samples"
    settings = Settings(cache_dir=str(tmp_path_factory.mktemp("cache")))
    found = {}
    with open_session(str(samples), settings, own_process=True) as session:
        for run, slugs in RUNS.items():
            for slug in slugs:
                params = {"base_run": run} if slug == "diff" else {}
                answer = session.view(slug, run, None, None, params, wait=True)
                assert answer.payload is not None
                found[run, slug] = json.loads(answer.payload)
    return found


def draw_payload(slug: str, payload: dict[str, Any], width: int | None, **options: Any) -> str:
    stream = io.StringIO()
    draw_screen(screen_of(slug, payload), ScreenLayout(width, width is not None, **options), stream)
    return stream.getvalue()


def test_a_hang_is_told_without_libraries_and_with_the_calls_of_the_program(
    payloads: dict[tuple[str, str], dict[str, Any]],
) -> None:
    shown = draw_payload("hangs", payloads["hang_gloo", "hangs"], 120)
    assert shown.startswith("Rank 2 never called all_reduce 16;")
    assert "load_batch (hang.py:83) < train (hang.py:104)" in shown
    assert "queue.py" not in shown and "{" not in shown


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int, payloads: dict[tuple[str, str], dict[str, Any]]) -> None:
    for (run, slug), payload in payloads.items():
        lines = draw_payload(slug, payload, width).splitlines()
        assert max(map(cell_len, lines)) <= width, (run, slug)
        assert not any(line.endswith(" ") for line in lines), (run, slug)


def test_titles_are_those_of_the_page(payloads: dict[tuple[str, str], dict[str, Any]]) -> None:
    """One word for one thing: whoever knows the page finds its columns here."""
    words = "\n".join(path.read_text() for path in PAGE.rglob("*.ts*") if ".test." not in path.name)
    own = {
        "",
        "What to change first",
        "Event",
        "Place",
        "Id",
        "Target (--param)",
        "Complete",
        *("Its number", "Lost", "Problem", "Evidence", "Innermost calls of the program", "Calls"),
        *("Why unknown", "Kernels", "Capture", "Batch size", "Captures", "Launches", "Replays explained"),
        *("Compiled region", "Input shapes"),
        *("What to set", "Saves up to", "Cost", "From", "To", "Unknown because"),
    }  # for `--param` of further views
    for (_, slug), payload in payloads.items():
        if slug in ("trace", "memory", "diff", "distributed"):
            continue  # the page draws these as charts or fetches their tables by page
        for table in screen_of(slug, payload).tables:
            titles = {column.title for column in table.columns} - own
            fixed = {re.sub("^[0-9]+| per step$", "", title) for title in titles}
            fixed = {re.sub("^(A.*|The) step$", r"\1 ${noun}", title) for title in fixed}
            missing = {title for title in fixed if not re.search(f"['>`}}]{re.escape(title)}['<`$]", words)}
            assert not missing, slug


def test_causes_and_categories_are_called_as_on_the_page() -> None:
    causes = (PAGE / "base" / "causes.ts").read_text()
    titles = dict(re.findall(r"  (\w+): \{ title: '([^']+)', color: 'var\(--[xc]-", causes))
    assert {cause: titles.get(cause) for cause in CAUSE_TITLES} == CAUSE_TITLES
    categories = (PAGE / "base" / "category.ts").read_text()
    assert dict(re.findall(r"  (\w+): '([^']+)',", categories)) == CATEGORIES


def test_a_cause_has_one_title_in_every_view_and_its_page_of_the_documentation() -> None:
    assert {cause: CATEGORY_TITLES[cause] for cause in CAUSE_TITLES} == CAUSE_TITLES
    page = (PAGE.parents[1] / "docs" / "views" / "idle.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page.partition("## Causes")[2].partition("## More")[0], re.M)
    shown_titles = [title for row in rows for title in re.split(r"; ", row)]
    assert {*CAUSE_TITLES.values()} <= {*shown_titles}


def test_a_pipe_gets_all_rows_without_bars(payloads: dict[tuple[str, str], dict[str, Any]]) -> None:
    payload = payloads["transformer", "operators"]
    terminal, pipe = draw_payload("operators", payload, 100), draw_payload("operators", payload, None)
    count = len(payload["rows"])
    assert count > 20 and f"20 of {count} operators; --limit 0 shows all." in terminal
    assert pipe.count("aten::") >= sum(row["name"].startswith("aten::") for row in payload["rows"])
    assert "█" in terminal and not re.search("[▏▎▍▌▋▊▉█]", pipe)
    assert "doesn't fit" not in pipe and "--limit" not in pipe
    assert draw_payload("operators", payload, 100, limit=3).count("aten::") <= 5


def test_columns_without_data_are_left_out_and_their_reason_is_given(
    payloads: dict[tuple[str, str], dict[str, Any]],
) -> None:
    text = draw_payload("operators", payloads["transformer", "operators"], 200)
    header = next(line for line in text.splitlines() if line.startswith("Operator "))
    assert "Device self" not in header and "Host self" in header
    assert "Unknown: Device self, Device total" in text and "No device work is recorded" in text


def test_the_finding_comes_first_then_facts_then_numbered_advice(
    payloads: dict[tuple[str, str], dict[str, Any]],
) -> None:
    payload = payloads["simulated_8_h100_late_rank", "overview"]
    lines = draw_payload("overview", payload, 100).splitlines()
    headline = "".join(phrase["text"] for phrase in payload["headline"])
    assert headline.startswith(lines[0])
    assert next(line for line in lines if " · " in line).startswith("An average step 100 ms · Steps 8")
    advice = [line for line in lines if re.match(r"\d  \w", line)]
    assert [line[0] for line in advice] == [str(i + 1) for i in range(len(payload["recommendations"]))] != []
    assert lines[-1].startswith("replay") or any(line.startswith("How we know: ") for line in lines)


def test_operators_of_graphs_alone_are_listed_without_calls_that_nobody_made(
    payloads: dict[tuple[str, str], dict[str, Any]],
) -> None:
    text = draw_payload("operators", payloads["simulated_graph_replay", "operators"], 120, limit=0)
    assert "Replayed operator" in text and text.count("aten::linear") > 30
    assert "Calls 0" not in text and "Host self" not in text
    kernels = draw_payload("kernels", payloads["simulated_graph_replay", "kernels"], 200)
    assert "_C::silu_and_mul · model.py:53" in kernels
    other = draw_payload("kernels", payloads["simulated_8_h100_late_rank", "kernels"], 200)
    assert "Origin" not in other  # launches say it


def test_names_of_a_trace_cannot_move_the_cursor(payloads: dict[tuple[str, str], dict[str, Any]]) -> None:
    text = json.dumps(payloads["transformer", "operators"]).replace("aten::", "a\\u001b[2J\\r\\u0007:")
    assert "\\u001b" in text
    for width in (80, None):
        shown = draw_payload("operators", json.loads(text), width, limit=0)
        assert not {"\x1b", "\r", "\a"} & {*shown}
    generic = draw_payload("unknown/part", json.loads(text), 80)
    assert not {"\x1b", "\r", "\a"} & {*generic}


@pytest.mark.parametrize(
    "reasons",
    [{"a_ns": "the file lacks it"}, {"a_ns": [{"text": "the file lacks it", "link": None}]}, [], [{"n": 1}]],
)
def test_reasons_are_read_in_every_form_that_payloads_have(reasons: Any) -> None:
    payload = {"reasons": reasons, "rows": [{"name": "f", "a_ns": None}]}
    shown = draw_payload("new_view", payload, 80)
    assert ("Unknown: A. The file lacks it." in shown) == isinstance(reasons, dict)


def test_a_view_without_a_layout_is_arranged_from_its_fields() -> None:
    payload = {
        "headline": [{"text": "One call.", "link": None}],
        "total_ns": 1_500_000,
        "rows": [{"event": 7, "name": "f", "device_self_ns": 20, "live_bytes": 2048}],
    }
    assert draw_payload("operators/some_part", payload, 80).splitlines() == [
        "One call.",
        "Total 1.50 ms",
        "",
        "Name  Device self      Live",
        "f         20.0 ns  2.00 KiB",
    ]


@pytest.mark.parametrize(("value", "shown"), [(4e-32, "<0.001"), (0.001, "0.001"), (0.2678, "0.268")])
def test_a_tiny_probability_is_said_to_be_below_a_thousandth(value: float, shown: str) -> None:
    assert format_value(Column("q", "FDR", "probability"), value) == shown
