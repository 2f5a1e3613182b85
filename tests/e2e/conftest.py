"""A real Chromium on a real TensorBoard."""

from __future__ import annotations

import gzip
import itertools
import json
import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import (
    Browser,
    Error,
    Frame,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from tests.support.browser.chromium import ARGUMENTS, chromium
from tests.support.jobs import Job, ddp
from tests.support.page import (
    MEMORY_TIMELINE,
    NewPage,
    Open,
    Tab,
    draw_frame,
    draw_lag,
    draw_late_launch,
    draw_leak,
    draw_training,
    model,
    products,
)
from tests.support.producers import composer, counters, gaudi
from tests.support.producers.aorta import iteration, line, write
from tests.support.servers.tensorboard import UNCHANGED_POLL_S, tensorboard
from tests.support.serving import Workload, serving_document
from tests.support.snapshots import snapshot
from tests.support.waiting import PATIENCE

MILLISECONDS = 1000 * PATIENCE

PREFIX = "/some/where"
"""The path prefix behind which tests marked `prefix` also run."""

HEADER_PX = 64
"""Height of TensorBoard's header, by which the tab in its frame is lower."""

TEXT = 2000
"""Characters of a frame's text that are told."""

COLD_CODE = "--js-flags=--no-opt --no-maglev"
"""No page is open for long enough that optimized code saves the work of its compilation."""

ASK_MS = 3000
"""How long a frame is asked for its text: one that hangs says nothing."""


class WatchedPage:
    """A page with its requests from the first one on."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._opened = time.monotonic()
        self._pending: dict[Request, float] = {}
        self._problems: list[str] = []
        self._listeners: list[tuple[Any, Callable[[Any], None]]] = []
        self.on("request", lambda request: self._pending.update({request: time.monotonic()}))
        self.on("requestfinished", self._remove)
        self.on("requestfailed", self._record_failed_request)
        self.on("console", lambda message: self._problems.append(f"console {message.type}: {message.text[:TEXT]}"))
        self.on("pageerror", lambda error: self._problems.append(f"error: {error}"))
        self.on("crash", lambda _: self._problems.append("the page crashed"))

    def on(self, event: Any, listen: Callable[[Any], None]) -> None:
        """Hear of an event of the page until it is given back."""
        self._listeners.append((event, listen))
        self.page.on(event, listen)

    def give_back(self) -> None:
        """Leave the page as good as new for the next test: nothing shown, heard, stored, changed or pointed at."""
        self.page.evaluate("if (origin !== 'null') { localStorage.clear(); sessionStorage.clear(); }")
        self.page.goto("about:blank")
        while self._listeners:
            self.page.remove_listener(*self._listeners.pop())
        self.page.unroute_all()
        self.page.emulate_media(media="null", color_scheme="light", reduced_motion="reduce")
        self.page.mouse.move(0, 0)

    def _remove(self, request: Request) -> None:
        self._pending.pop(request, None)

    def _record_failed_request(self, request: Request) -> None:
        self._pending.pop(request, None)
        self._problems.append(f"failed: {request.method} {request.url} ({request.failure})")

    def describe(self) -> str:
        """Return the text of each frame, the requests that have not ended, and what went wrong, a line each."""
        now = time.monotonic()
        lines = [f"page opened {now - self._opened:.0f} s ago"]
        lines += [f"frame {frame.url}\n  {_text(frame)}" for frame in self.page.frames]
        lines += [
            f"not ended for {now - since:.0f} s: {request.method} {request.url}"
            for request, since in self._pending.items()
        ]
        return "\n".join([*lines, *self._problems[-20:]])


def _text(frame: Frame) -> str:
    try:
        text = frame.locator("body").inner_text(timeout=ASK_MS).strip()
    except Error as error:
        return f"(not asked: {error.message.splitlines()[0]})"
    return " | ".join(text.split("\n"))[:TEXT] or "(no text)"


def describe_pages(pages: Iterable[WatchedPage]) -> str:
    """Return what all pages that are still open said."""
    return "\n\n".join(watched.describe() for watched in pages if not watched.page.is_closed())


PAGES = pytest.StashKey[list[WatchedPage]]()
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what its pages said."""
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    pages = item.stash.get(PAGES, [])
    if report.failed and report.when == "call" and pages:
        report.sections.append(("pages of the browser", describe_pages(pages)))
    return report


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")

    def put(path: str, content: bytes) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)

    put("a_training/w.1700000000000.pt.trace.json", draw_training())
    put("a_training/w.1700000060000.pt.trace.json.gz", gzip.compress(draw_training(3)))
    put("b_damaged/rank0.pt.trace.json", draw_training())
    put("b_damaged/rank1.pt.trace.json", draw_training()[:-300])
    put("b_damaged/rank2.pt.trace.json", b"")
    put("c <b>bold</b>/w.pt.trace.json", draw_training(1))
    put("d_many/w.pt.trace.json", draw_training(300))
    put("m_modules/w.pt.trace.json", model())
    put("r_roofline/w.pt.trace.json", products())
    put("v_serving/w.pt.trace.json", serving_document(Workload(faults={9: ("scheduler", 40000)})))
    put("n_memory/w.pt.trace.json", draw_leak())
    put("p_faster/w.pt.trace.json", draw_training(kernel_us=300))
    put("w_busy/w.pt.trace.json", draw_training(kernel_us=970))
    put("n_memory/oom <b>.pickle", pickle.dumps(snapshot()))
    put("n_memory/w.raw.json", json.dumps(MEMORY_TIMELINE).encode())
    put("n_memory/evil.pickle", b"cos\nsystem\n(S'true'\ntR.")
    for rank, content in Job(6, ddp(6), straggler=4).documents().items():
        put(f"o_job/rank{rank}.pt.trace.json", content)
    put("o_job/rank6.pt.trace.json", b"")
    for rank, content in Job(160, ddp(160), steps=2, straggler=101).documents().items():
        put(f"u_ranks/rank{rank}.pt.trace.json", content)
    for rank in (0, 1):
        write(folder / "s_rocm", rank, [line(step, iteration(step + rank), 500, rank=rank) for step in range(4)])
        write(folder / "t_cuda", rank, [line(step, iteration(2 * step), 480, rank=rank) for step in range(4)])
    put("w_lagging/w.pt.trace.json", draw_lag())
    put("x_framed/w.pt.trace.json", draw_frame())
    put("x_late/w.pt.trace.json", draw_late_launch())
    put("u_gaudi/w.pt.trace.json", gaudi.content())
    put("w_counters/w.pt.trace.json", counters.cupti())
    put("x_rocprof/w.pt.trace.json", counters.rocm())
    put("x_rocprof/pass_1/7_counter_collection.csv", counters.table().encode())
    for rank in (0, 1):
        put(f"v_composer/ep0-ba3-rank{rank}.json", composer.content(composer.apart(rank)))
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that ask for addresses of all kinds (mark `prefix`) behind a path prefix, too: in one process."""
    if "server" in metafunc.fixturenames:
        places = [pytest.param("", id="plain")]
        if metafunc.definition.get_closest_marker("prefix"):
            places.append(pytest.param(PREFIX, id="prefix", marks=pytest.mark.xdist_group("prefix")))
        metafunc.parametrize("server", places, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, logdir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    arguments = ["--logdir", str(logdir)]
    if request.param:
        arguments += ["--path_prefix", request.param]
    with tensorboard(*arguments, cache=tmp_path_factory.mktemp("cache"), poll=UNCHANGED_POLL_S) as address:
        yield address


@pytest.fixture(scope="session")
def sample_server(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a TensorBoard over the samples."""
    cache = tmp_path_factory.mktemp("cache")
    with tensorboard("--logdir", str(samples), cache=cache, poll=UNCHANGED_POLL_S) as address:
        yield address


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium (set CHROMIUM to its path)")
    return path


@pytest.fixture(scope="session")
def playwright(chromium_path: str) -> Iterator[Playwright]:
    # Playwright gives a page 5 s, which a busy machine may take for a single frame.
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium_path: str) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium_path, args=[*ARGUMENTS, COLD_CODE])
    yield browser
    browser.close()


@pytest.fixture
def measured_page(playwright: Playwright, chromium_path: str) -> Iterator[Page]:
    """Yield the page of a browser that optimizes code as its user's does."""
    browser = playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(MILLISECONDS)
    yield page
    browser.close()


Kind = tuple[str, bool]
"""The theme that is set in a page, empty for none, and whether it is offline."""


@pytest.fixture(scope="session")
def idle_pages(browser: Browser) -> Iterator[dict[Kind, list[Page]]]:
    """Yield the pages that tests have given back."""
    idle: dict[Kind, list[Page]] = {}
    yield idle
    for page in itertools.chain(*idle.values()):
        page.context.close()


@pytest.fixture
def borrow_page(
    browser: Browser, idle_pages: dict[Kind, list[Page]], request: pytest.FixtureRequest
) -> Iterator[Callable[..., WatchedPage]]:
    """Lends an empty page, one that an earlier test has given back if there is one.

    The process that draws it is there then and has compiled the tab's code: to open the tab in it is half of the
    work. All that a test could have left is gone; after a test that failed, so is the page.
    """
    borrowed: list[tuple[Kind, WatchedPage]] = []

    def borrow_page(theme: str = "", offline: bool = False) -> WatchedPage:
        kind = (theme, offline)
        idle = idle_pages.setdefault(kind, [])
        watched = WatchedPage(idle.pop() if idle else _make_page(browser, *kind))
        borrowed.append((kind, watched))
        request.node.stash.setdefault(PAGES, []).append(watched)
        return watched

    yield borrow_page
    for kind, watched in borrowed:
        if request.node.stash.get(FAILED, False) or watched.page.is_closed():
            watched.page.context.close()
        else:
            watched.give_back()
            idle_pages[kind].append(watched.page)


def _make_page(browser: Browser, theme: str, offline: bool) -> Page:
    """Return an empty page in a context of its own, in which every action is as patient as `expect`.

    Nothing fades in: that is half of the work of the process that puts the picture on the screen. With a theme,
    the tab finds it set, and tells what its CSP forbids.
    """
    context = browser.new_context(reduced_motion="reduce", offline=offline)
    context.set_default_timeout(MILLISECONDS)
    if theme:
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective));"
            f"try {{ localStorage.setItem('pytorch_profiler.theme', '{theme}') }} catch {{}}"
        )
    return context.new_page()


@pytest.fixture
def new_page(borrow_page: Callable[..., WatchedPage]) -> NewPage:
    """Opens an empty page."""

    def new_page(width: int = 1440, height: int = 900) -> Page:
        page = borrow_page().page
        page.set_viewport_size({"width": width, "height": height})
        return page

    return new_page


@pytest.fixture
def unused_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Yield an empty page that no other test has, for scripts of a test that run before those of the page."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    request.node.stash.setdefault(PAGES, []).append(WatchedPage(page))
    yield page
    context.close()


@pytest.fixture
def trouble() -> Iterator[list[str]]:
    """Yield what went wrong in the pages of a test; at its end, that must be nothing."""
    trouble: list[str] = []
    yield trouble
    assert trouble == []


@pytest.fixture
def open_page(
    trouble: list[str],
    borrow_page: Callable[..., WatchedPage],
    server: str,
    request: pytest.FixtureRequest,
) -> Open:
    """Opens the tab; until the pages are given back, nothing may leave the server, break the CSP or throw.

    TensorBoard's own page takes longer to open than the tab in it. Only tests that are about it (`hosted`) open
    the tab in its frame, and behind a path prefix those of what goes through the frame (`prefix(hosted=True)`):
    links to copy, the way back, files that are saved. What the tab asks of its server is the same without.
    """
    mark = request.node.get_closest_marker("prefix")
    hosted_by_mark = server.endswith(PREFIX) and mark is not None and bool(mark.kwargs.get("hosted"))

    def open_page(
        width: int = 1440, height: int = 900, theme: str = "light", hosted: bool = False, **state: str
    ) -> tuple[Page, Tab]:
        hosted = hosted or hosted_by_mark
        watched = borrow_page(theme)
        page = watched.page
        page.set_viewport_size({"width": width, "height": height if hosted else height - HEADER_PX})
        watched.on("request", lambda r: None if _is_ours(r.url, server) else trouble.append(f"request {r.url}"))
        watched.on("pageerror", lambda error: trouble.append(f"error {error}"))
        watched.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        watched.on("console", lambda m: trouble.append(m.text) if m.text.startswith("CSP ") else None)
        parts = [f"p.pytorch_profiler.{key}={value}" for key, value in state.items()]
        tab = "" if hosted else "data/plugin_entry.html?name=pytorch_profiler"
        page.goto(f"{server}/{tab}#{'&'.join(['pytorch_profiler', *parts])}")
        return page, page.frame_locator("iframe") if hosted else page

    return open_page


@pytest.fixture
def open_report(trouble: list[str], borrow_page: Callable[..., WatchedPage]) -> Callable[..., Page]:
    """Opens a report at a view, from disk and offline; nothing may be requested, logged or thrown."""

    def open_report(report: Path, view: str, theme: str = "light", width: int = 1440, **state: str) -> Page:
        watched = borrow_page(offline=True)
        page = watched.page
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        watched.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else trouble.append(r.url))
        watched.on("pageerror", lambda error: trouble.append(f"error {error}"))
        watched.on("console", lambda message: trouble.append(message.text))
        watched.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        parts = [f"p.pytorch_profiler.{key}={quote(value)}" for key, value in {"view": view, **state}.items()]
        page.goto(f"{report.as_uri()}#{'&'.join(['pytorch_profiler', *parts])}")
        return page

    return open_report


def _is_ours(url: str, server: str) -> bool:
    origin = "/".join(server.split("/")[:3])
    return url.startswith((origin, "data:", "blob:"))
