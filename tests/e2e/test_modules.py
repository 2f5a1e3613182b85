from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.page.places import choose
from tests.support.page import SCRIPT, Open, Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = "m_modules"


def row(frame: Tab, name: str) -> Locator:
    return frame.get_by_role("row").filter(has=frame.get_by_text(name, exact=True))


def test_the_tree_shows_the_times_that_were_drawn(open_page: Open) -> None:
    _, frame = open_page(view="modules", run=RUN)
    expect(frame.locator("h1")).to_contain_text("Linear is the top module: 94% of module GPU time")
    expect(frame.locator("[data-part=why]")).to_contain_text("Forward takes 57.0 µs, backward 60.0 µs")
    expect(row(frame, "Net_0")).to_contain_text("117 µs")
    expect(row(frame, "Linear_0")).to_contain_text("60.0 µs")
    expect(row(frame, SCRIPT)).to_be_visible()
    expect(frame.get_by_text("not linked 2.00 µs in 1 device event")).to_be_visible()


@pytest.mark.prefix
def test_a_module_opens_with_its_calls_and_leads_to_the_timeline(open_page: Open) -> None:
    page, frame = open_page(view="modules", run=RUN)
    row(frame, "Linear_0").click()
    expect(frame.get_by_role("heading", name="1 call")).to_be_visible()
    expect(page).to_have_url(re.compile(r"place=\d"))
    expect(frame.get_by_text("at 20.0 µs")).to_be_visible()
    frame.get_by_role("button", name="Show on timeline").first.click()
    expect(frame.get_by_role("heading", name="1 call")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"p\.pytorch_profiler\.view=trace"))
    expect(page).to_have_url(re.compile(r"p\.pytorch_profiler\.event=\d+"))
    page.go_back()
    expect(frame.get_by_role("heading", name="1 call")).to_be_visible()


def test_a_module_leads_to_its_operators(open_page: Open) -> None:
    page, frame = open_page(view="modules", run=RUN)
    row(frame, "Linear_0").click()
    frame.get_by_role("button", name="1 operator").click()
    expect(frame.get_by_text("Net_0 > Linear_0").first).to_be_visible()
    expect(frame.get_by_text("aten::linear").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"p\.pytorch_profiler\.view=operators"))
    expect(page).to_have_url(re.compile(r"group_by=module"))


def test_folding_searching_and_sums_by_class(open_page: Open) -> None:
    _, frame = open_page(view="modules", run=RUN)
    net = row(frame, "Net_0")
    net.get_by_role("button", name="Fold", exact=True).click()
    expect(row(frame, "Linear_0")).to_have_count(0)
    frame.get_by_placeholder("Filter modules").fill("linear")
    expect(row(frame, "Linear_0")).to_be_visible()
    frame.get_by_placeholder("Filter modules").fill("")
    frame.get_by_role("radio", name="By class").check()
    expect(row(frame, "Linear")).to_contain_text("110 µs")
    expect(frame.get_by_text("3 classes")).to_be_visible()


def test_the_flame_graph_zooms_and_finds(open_page: Open) -> None:
    page, frame = open_page(view="modules", run=RUN, show="flame")
    graph = frame.get_by_role("tree")
    graph.focus()
    item = frame.get_by_role("treeitem", selected=True)
    expect(item).to_have_text("all modules 117 µs")
    for name in ("Net_0 117 µs", "Linear_0 110 µs"):
        page.keyboard.press("ArrowDown")
        expect(item).to_have_text(name)
    page.keyboard.press("Enter")
    expect(frame.locator("[data-part=flame] [data-part=breadcrumbs]")).to_contain_text("Linear_0")
    page.keyboard.press("Escape")
    expect(frame.locator("[data-part=flame] [data-part=breadcrumbs]")).not_to_contain_text("Linear_0")
    frame.get_by_role("radio", name="Host time").check()
    expect(frame.locator("[data-part=flame] [data-part=flame-hover]")).to_contain_text("all modules 180 µs")
    expect(page).to_have_url(re.compile(r"time=host"))
    frame.get_by_placeholder("Find a module or operator").fill("(")
    frame.get_by_role("button", name="Regular expression").click()
    expect(frame.get_by_role("alert")).to_contain_text("Not a regular expression")


def test_the_flame_graph_is_arranged(open_page: Open) -> None:
    page, frame = open_page(view="modules", run=RUN, show="flame", time="host")
    graph = frame.get_by_role("tree")
    graph.focus()
    item = frame.get_by_role("treeitem", selected=True)
    for key, name in (("ArrowDown", "Net_0"), ("ArrowDown", "Linear_0"), ("ArrowDown", "backward 80.0 µs")):
        page.keyboard.press(key)
        expect(item).to_contain_text(name)
    choose(frame, "Order", "call order")
    graph.focus()
    for name in ("Net_0", "aten::view", "Linear_0", "aten::linear"):
        page.keyboard.press("ArrowRight" if name == "Linear_0" else "ArrowDown")
        expect(item).to_contain_text(name)


def test_the_hottest_path_of_the_call_tree_opens_down_to_its_end(open_page: Open) -> None:
    _, frame = open_page(view="modules", run=RUN, show="calls")
    frame.get_by_role("button", name="Hottest path").click()
    expect(row(frame, "aten::addmm")).to_have_attribute("aria-expanded", "true")
    expect(row(frame, "cudaLaunchKernel").and_(frame.locator(":focus"))).to_be_visible()


@pytest.mark.prefix
def test_the_call_tree_reads_a_level_when_it_is_opened(open_page: Open) -> None:
    page, frame = open_page(view="modules", run=RUN, show="calls")
    requests: list[str] = []
    page.on("request", lambda r: requests.append(r.url) if "modules/calls" in r.url else None)
    step = row(frame, "[pl][profile][Strategy]SingleDeviceStrategy.training_step")
    expect(step).to_be_visible()
    expect(row(frame, "nn.Module: Net_0")).to_have_count(0)
    requests.clear()
    step.get_by_role("button", name="Unfold").click()
    # Net_0 is all that the step called, so it opens by itself.
    mark = row(frame, "[pl][module]torch.nn.modules.linear.Linear: layer")
    expect(mark).to_be_visible()
    assert len(requests) == 2 and all("parent=" in url for url in requests)
    mark.focus()
    page.keyboard.press("ArrowRight")
    expect(row(frame, "aten::linear")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(mark).to_have_attribute("aria-expanded", "false")
    frame.get_by_role("button", name=re.compile("^Thread")).click()
    frame.get_by_role("option").nth(1).click()
    expect(row(frame, "autograd::engine::evaluate_function: Addmm")).to_be_visible()


def test_hooks_and_modules_of_lightning(open_page: Open) -> None:
    page, frame = open_page(view="lightning", run=RUN)
    expect(frame.locator("h1")).to_contain_text("of the time in hooks")
    hook = row(frame, "SingleDeviceStrategy.training_step")
    expect(hook).to_contain_text("110 µs")
    expect(hook).to_contain_text("Strategy")
    frame.get_by_role("radio", name="Modules").check()
    expect(row(frame, "layer")).to_contain_text("42.0 µs")
    frame.get_by_role("radio", name="Hooks").check()
    hook.dblclick()
    expect(hook).to_have_count(0)
    expect(page).to_have_url(re.compile(r"p\.pytorch_profiler\.event=\d+"))


@pytest.mark.parametrize(
    ("view", "flag"), [("modules", "with_stack=True"), ("lightning", "record_module_names=True")]
)
def test_the_flag_to_set_is_named(open_page: Open, view: str, flag: str) -> None:
    _, frame = open_page(view=view, run="a_training")
    expect(frame.get_by_text(flag).first).to_be_visible()
