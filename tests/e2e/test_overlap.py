"""Overlap in a browser: maps lead to the timeline, another folder is compared, empty tabs say why they are."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose, expect_fits, go, start
from tests.support.page import NewPage, Open
from tests.support.producers.aorta import write
from tests.support.producers.aorta_traces import (
    iterations,
    timed_iterations,
    write_capture,
    write_trace,
)
from tests.support.servers.tensorboard import tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_the_answer_the_maps_and_what_was_recorded(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, view="overlap", run="s_rocm")
    expect(frame.locator("h1")).to_contain_text("Exposed communication takes")
    expect(frame.get_by_role("figure", name="Exposed communication by rank and iteration")).to_be_visible()
    table = frame.get_by_role("table", name="Recorded and recomputed totals")
    expect(table).to_contain_text("Idle before the last range")
    expect_fits(frame)


@pytest.mark.prefix
def test_a_cell_leads_to_its_iteration_on_the_timeline(open_page: Open) -> None:
    page, frame = open_page(view="overlap", run="s_rocm")
    figure = frame.get_by_role("figure", name="Exposed communication by rank and iteration")
    figure.get_by_title(re.compile("^rank1, step 2")).click()
    expect(page).to_have_url(re.compile("view=trace.*worker=rank1.*at=1000000-1500000"))
    expect(frame.get_by_text("reducescatter", exact=True).first).to_be_visible()


def test_another_folder_is_compared(open_page: Open) -> None:
    page, frame = open_page(view="overlap", run="s_rocm")
    choose(frame, "Run", "t_cuda")
    expect(page).to_have_url(re.compile("with=t_cuda"))
    compared = frame.get_by_role("table", name="Compared")
    expect(compared).to_contain_text("Overlap / computation")
    expect(compared.get_by_role("columnheader", name="t_cuda")).to_be_visible()


def test_a_tab_without_an_answer_leads_to_those_that_have_one(open_page: Open) -> None:
    _, frame = open_page(view="overview", run="s_rocm")
    expect(frame.locator("h1")).to_contain_text("AORTA recorded only busy times of streams per iteration")
    frame.get_by_role("button", name="Open Overlap").click()
    expect(frame.locator("h1")).to_contain_text("Exposed communication takes")


def test_an_iteration_opens_in_the_trace_of_its_process_in_another_run(new_page: NewPage, tmp_path: Path) -> None:
    """PyTorch's trace below the metrics, rocprofv3's beside them; rank 1 has no trace and opens its own lanes."""
    log = tmp_path / "log"
    write(log / "a/artifacts", 0, iterations(3, 4))
    write(log / "a/artifacts", 1, iterations(3, 4, rank=1))
    write_trace(log / "a/artifacts/torch_profiler/rank0")
    write(log / "b/artifacts", 0, timed_iterations())
    write_capture(log / "b/rocprof_traces/run_20260101")
    opened = [
        ("a/artifacts", "rank0, step 4", "run=a%2Fartifacts%2Ftorch_profiler.*at=1000000-1500000", "iterations"),
        ("a/artifacts", "rank1, step 4", "run=a%2Fartifacts&.*worker=rank1.*at=500000-1000000", "allreduce"),
        ("b/artifacts", "rank0, step 2", "run=b%2Frocprof_traces%2Frun_.*at=2135000-2935000", "iterations"),
    ]
    with tensorboard("--logdir", str(log), cache=tmp_path / "cache") as server:
        page = new_page()
        start(page, server)
        for run, cell, place, track in opened:
            go(page, {"view": "overlap", "run": run})
            answer = f"{server}/data/plugin/pytorch_profiler/view/overlap?{urlencode({'run': run, 'span': '1'})}"
            page.wait_for_function(f"async () => (await (await fetch('{answer}')).json()).loading === 0")
            page.reload()  # the traces beside the metrics have been read, so the first answer knows them
            figure = page.get_by_role("figure", name="Exposed communication by rank and iteration")
            figure.get_by_title(re.compile(f"^{cell}")).click()
            expect(page).to_have_url(re.compile(place))
            expect(page.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
            expect(page.get_by_text(track, exact=True).first).to_be_visible()
