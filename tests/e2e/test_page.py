from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import WatchedPage, describe_pages
from tests.e2e.page.places import expect_fits, start, wait_until_answered
from tests.support.page import SCRIPT, NewPage, Open, Tab
from tests.support.servers.proxy import proxy
from tests.support.servers.tensorboard import tensorboard
from tests.support.traces import document
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = "a_training"


def wait_until_drawn(frame: Tab) -> None:
    """Wait for the view and for what stands around it."""
    wait_until_answered(frame)
    expect(frame.locator("[data-part=nav-item]").first).to_have_text("Overview")
    expect(frame.get_by_role("button", name="Share link")).to_be_visible()


@pytest.mark.prefix
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_overview_shows_the_numbers_that_were_drawn(open_page: Open, theme: str) -> None:
    page, frame = open_page(theme=theme, run=RUN)
    expect(frame.locator("h1")).to_contain_text("GPU 0 is idle for 50% of an average step")
    expect(frame.locator("h1")).to_contain_text("while the host is loading data")
    row = frame.locator("tbody tr")
    expect(row.filter(has_text="Kernel")).to_contain_text("500 µs")
    expect(row.filter(has_text="DataLoader")).to_contain_text("33%")
    expect(frame.locator("html")).to_have_attribute("data-theme", theme)
    expect(frame.locator("h3").filter(has_text="Load data in worker processes")).to_be_visible()
    expect(frame.get_by_text("Trace complete")).to_be_visible()


def test_names_from_a_trace_stay_text(open_page: Open) -> None:
    _, frame = open_page(run=RUN)
    expect(frame.get_by_text(SCRIPT).first).to_be_visible()
    page, frame = open_page(run="c%20%3Cb%3Ebold%3C%2Fb%3E")
    expect(frame.locator("[data-part=crumb]")).to_contain_text("c <b>bold</b>")


def test_a_step_alone_and_back_and_the_address_follows(open_page: Open) -> None:
    page, frame = open_page(run=RUN)
    frame.get_by_role("button", name=re.compile("^Step 2,")).click()
    expect(frame.get_by_role("heading", name=re.compile("^Step 2"))).to_be_visible()
    expect(page).to_have_url(re.compile(r"p\.pytorch_profiler\.step=2"))
    page.go_back()
    expect(frame.get_by_role("heading", name=re.compile("^An average step"))).to_be_visible()


@pytest.mark.prefix(hosted=True)
def test_a_copied_link_reopens_the_same_view(open_page: Open) -> None:
    page, frame = open_page(run=RUN)
    frame.get_by_role("button", name="Next span").click()
    expect(frame.locator("[data-part=crumb]")).to_contain_text("span 2")
    expect(page).to_have_url(re.compile("pytorch_profiler.span=2"))
    state = dict(re.findall(r"p\.pytorch_profiler\.(\w+)=([^&]*)", page.url))
    _, again = open_page(**state)
    expect(again.locator("[data-part=crumb]")).to_contain_text("span 2")


def test_runs_are_found_with_the_keyboard(open_page: Open) -> None:
    page, frame = open_page(run=RUN)
    wait_until_drawn(frame)
    frame.locator("#page").press("r")
    search = frame.get_by_placeholder("Find a run")
    expect(search).to_be_focused()
    search.fill("damag")
    search.press("Enter")
    expect(frame.locator("[data-part=crumb]")).to_contain_text("b_damaged")
    expect(page).to_have_url(re.compile(r"run=b_damaged"))


@pytest.mark.prefix
def test_a_file_that_cannot_be_read_says_why_and_can_be_tried_again(open_page: Open) -> None:
    _, frame = open_page(run="b_damaged", worker="rank2")
    expect(frame.locator("h1")).to_contain_text("can't be read: the file is empty")
    expect(frame.get_by_text("b_damaged/rank2.pt.trace.json")).to_be_visible()
    expect(frame.get_by_role("heading", name="Files of this run")).to_be_visible()
    frame.get_by_role("button", name="Try again").click()
    expect(frame.locator("h1")).to_contain_text("can't be read: the file is empty")


@pytest.mark.prefix
def test_the_badge_opens_what_was_wrong(open_page: Open) -> None:
    _, frame = open_page(run="b_damaged", worker="rank1")
    badge = frame.get_by_role("button", name=re.compile("Damaged"))
    badge.click()
    expect(frame.get_by_text("the file is truncated inside an event")).to_be_visible()


def test_an_unknown_run_is_named_and_has_a_way_out(open_page: Open) -> None:
    _, frame = open_page(run="nothing")
    expect(frame.locator("h1")).to_have_text("Waiting for run 'nothing'.")
    frame.locator("#page").get_by_role("button", name=RUN).click()
    expect(frame.locator("[data-part=crumb]")).to_contain_text(RUN)


def test_a_link_to_what_is_not_written_yet_waits_and_opens_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, new_page: NewPage
) -> None:
    """A run, then another worker of it: each opens within a poll of its file's appearing."""

    def write(worker: str) -> None:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
        path = tmp_path / "later" / f"{worker}.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(document([event]))

    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "w.pt.trace.json").write_bytes(document([]))
    with tensorboard("--logdir", str(tmp_path), cache=tmp_path_factory.mktemp("cache")) as server:
        for worker, waited in (("w0", "run 'later'"), ("w1", "worker 'w1'")):
            page = new_page()
            state = f"p.pytorch_profiler.run=later&p.pytorch_profiler.worker={worker}"
            page.goto(f"{server}/#pytorch_profiler&{state}")
            frame = page.frame_locator("iframe")
            expect(frame.locator("h1")).to_have_text(f"Waiting for {waited}.")
            write(worker)
            expect(frame.locator("[data-part=crumb]")).to_contain_text(f"later · {worker}")


def test_a_tab_without_data_leads_to_those_with_data_and_nowhere_else(open_page: Open) -> None:
    _, frame = open_page(run=RUN, view="overlap")
    frame.get_by_role("button", name="Open Operators").wait_for()
    expect(frame.get_by_role("button", name="Go to the first run")).to_have_count(0)


def test_tips_explain_terms_on_focus(open_page: Open) -> None:
    _, frame = open_page(run=RUN)
    wait_until_drawn(frame)
    frame.get_by_role("button", name="What is GPU utilization?").focus()
    expect(frame.get_by_text("Share of time during which at least one kernel runs.")).to_be_visible()


@pytest.mark.parametrize("width", [900, 1440, 2500])
@pytest.mark.parametrize("run", [RUN, "d_many", "b_damaged"])
def test_no_width_overflows(open_page: Open, width: int, run: str) -> None:
    page, frame = open_page(width=width, run=run)
    wait_until_drawn(frame)
    expect_fits(frame)
    until(lambda: frame.locator("#page").evaluate("page => page.scrollWidth <= page.clientWidth"))


def test_the_shortcut_sheet(open_page: Open) -> None:
    page, frame = open_page(run=RUN)
    wait_until_drawn(frame)
    frame.locator("#page").press("?")
    expect(frame.get_by_text("Choose a run")).to_be_visible()
    page.keyboard.press("Escape")
    expect(frame.get_by_text("Choose a run")).to_be_hidden()


def test_everything_is_reached_with_tab(open_page: Open) -> None:
    page, frame = open_page(run=RUN)
    wait_until_drawn(frame)
    frame.locator("[data-part=nav-item]").first.focus()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            frame.locator("body").evaluate(
                "() => document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || ''"
            )
        )
    text = "\n".join(seen)
    for wanted in ("Trace health", "Run", "Share link", "Step 0", "Copy as CSV", "What is Kernel?"):
        assert wanted in text, wanted


def test_dark_follows_the_host(open_page: Open) -> None:
    page, frame = open_page(theme="host", hosted=True, run=RUN)
    wait_until_drawn(frame)
    expect(frame.locator("html")).to_have_attribute("data-theme", "light")
    page.evaluate("document.body.classList.add('dark-mode')")
    expect(frame.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_page_draws_its_own_fonts(open_page: Open) -> None:
    _, frame = open_page(run=RUN)
    wait_until_drawn(frame)
    loaded = "() => [...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)"
    until(lambda: frame.locator("body").evaluate(loaded), lambda fonts: len(fonts) == 2)
    used = "e => getComputedStyle(e).fontFamily"
    assert frame.locator("h1").evaluate(used).startswith('"Profiler Sans"')
    # A kernel's "128x64" stays as it is written: the font has a rule that draws some of its letters as a sign.
    signs = "all => [...new Set(all.map(e => getComputedStyle(e).fontVariantLigatures))]"
    assert frame.locator("body *").evaluate_all(signs) == ["no-contextual"]


def test_nothing_here_yet(new_page: NewPage, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("empty")
    with tensorboard("--logdir", str(folder), cache=tmp_path_factory.mktemp("cache")) as address:
        page = new_page()
        page.goto(f"{address}/data/plugin_entry.html?name=pytorch_profiler")
        expect(page.locator("h1")).to_contain_text("No traces in this folder yet")
        expect(page.get_by_text("tensorboard_trace_handler").first).to_be_visible()
        (folder / "w.pt.trace.json").write_bytes(
            b'{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}'
        )
        expect(page.locator("h1")).to_contain_text("Operators on the host")


def test_the_tab_works_below_a_path_that_only_a_proxy_knows(new_page: NewPage, server: str) -> None:
    """As in a notebook, whose server passes `%tensorboard` on."""
    with proxy(server, "/user/ada/proxy/6006") as (address, outside):
        page, errors = new_page(), list[str]()
        page.on("pageerror", lambda error: errors.append(str(error)))
        state = "p.pytorch_profiler.run=a_training"
        page.goto(f"{address}/#pytorch_profiler&{state}&p.pytorch_profiler.view=operators")
        frame = page.frame_locator("iframe")
        frame.locator("[data-part=table-body] [role=row]").filter(has_text="aten::mm").click()
        frame.get_by_role("button", name="Show on timeline").first.click()
        expect(frame.locator("[data-part=event-details] h2")).to_contain_text("aten::mm")
        page.close()
    # TensorBoard asks for its own icon and fonts at the root, and does without them.
    assert [path for path in outside if not path.startswith(("/favicon.ico", "/font-roboto/"))] == [] == errors


def test_texts_of_frames_requests_without_an_end_and_errors_are_told(new_page: NewPage) -> None:
    page = new_page()
    watched = WatchedPage(page)
    page.route("http://here.test/", lambda route: route.fulfill(content_type="text/html", body="<p>Reading</p>"))
    page.route("http://here.test/ended", lambda route: route.fulfill(body="done"))
    page.route("http://here.test/refused", lambda route: route.abort())
    page.route("http://here.test/hangs", lambda route: None)
    page.goto("http://here.test/")
    page.evaluate(
        """() => {
            const frame = document.createElement('iframe');
            frame.srcdoc = '<p>An inner frame</p>';
            document.body.append(frame);
            fetch('/hangs');
            console.warn('said to the console');
            setTimeout(() => { throw new Error('thrown in the page'); });
            return fetch('/ended').then(() => fetch('/refused').catch(() => {}));
        }"""
    )
    expect(page.frame_locator("iframe").locator("p")).to_be_visible()
    text = describe_pages([watched])
    assert "Reading" in text
    assert "An inner frame" in text
    assert "GET http://here.test/hangs" in text
    assert "/ended" not in text
    assert "failed: GET http://here.test/refused" in text
    assert "console warning: said to the console" in text
    assert "thrown in the page" in text
    page.close()
    assert describe_pages([watched]) == ""


def test_a_page_that_is_given_back_is_as_good_as_new(borrow_page: Callable[..., WatchedPage], server: str) -> None:
    watched = borrow_page()
    page, heard = watched.page, list[str]()
    watched.on("request", lambda request: heard.append(request.url))
    start(page, server, run=RUN)
    wait_until_answered(page)
    page.evaluate("for (const storage of [localStorage, sessionStorage]) storage.setItem('left', 'behind')")
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="no-preference")
    page.route(re.compile(r"/index\.js"), lambda route: route.abort())
    page.mouse.move(200, 200)
    assert heard
    watched.give_back()
    heard.clear()
    assert page.url == "about:blank"
    start(page, server, run=RUN)
    wait_until_answered(page)
    assert heard == []
    state = """() => [localStorage.left, sessionStorage.left,
        ...['print', '(prefers-color-scheme: dark)', '(prefers-reduced-motion: no-preference)']
            .map(query => matchMedia(query).matches)]"""
    assert page.evaluate(state) == [None, None, False, False, False]
    page.evaluate("addEventListener('wheel', event => { window.pointer = [event.clientX, event.clientY] })")
    page.mouse.wheel(0, 1)
    assert until(lambda: page.evaluate("window.pointer")) == [0, 0]
