"""A real Chromium on a real TensorBoard."""

from __future__ import annotations

import gzip
import json
import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Frame,
    Page,
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

ASK_MS = 3000
"""How long a frame is asked for its text: one that hangs says nothing."""


class WatchedPage:
    """A page with its requests from the first one on."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._opened = time.monotonic()
        self._pending: dict[Request, float] = {}
        self._problems: list[str] = []
        page.on("request", lambda request: self._pending.update({request: time.monotonic()}))
        page.on("requestfinished", self._remove)
        page.on("requestfailed", self._record_failed_request)
        page.on("console", lambda message: self._problems.append(f"console {message.type}: {message.text[:TEXT]}"))
        page.on("pageerror", lambda error: self._problems.append(f"error: {error}"))
        page.on("crash", lambda _: self._problems.append("the page crashed"))

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what its pages said."""
    report = yield
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
    """Run tests that ask for addresses of all kinds (mark `prefix`) behind a path prefix, too."""
    if "server" in metafunc.fixturenames:
        places = {"plain": ""}
        if metafunc.definition.get_closest_marker("prefix"):
            places["prefix"] = PREFIX
        metafunc.parametrize("server", places.values(), ids=places.keys(), indirect=True, scope="session")


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
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium (set CHROMIUM to its path)")
    # Playwright gives a page 5 s, which a busy machine may take for a single frame.
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[NewPage]:
    """Opens an empty page in a context of its own, where every action is as patient as `expect`."""
    contexts: list[BrowserContext] = []
    watched = request.node.stash.setdefault(PAGES, [])

    def new_page(width: int = 1440, height: int = 900) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        context.set_default_timeout(MILLISECONDS)
        page = context.new_page()
        watched.append(WatchedPage(page))
        return page

    yield new_page
    for context in contexts:
        context.close()


@pytest.fixture
def trouble() -> Iterator[list[str]]:
    """Yield what went wrong in the pages of a test; at its end, that must be nothing."""
    trouble: list[str] = []
    yield trouble
    assert trouble == []


@pytest.fixture
def open_page(trouble: list[str], new_page: NewPage, server: str, request: pytest.FixtureRequest) -> Open:
    """Opens the tab; until the pages are closed, nothing may leave the server, break the CSP or throw.

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
        page = new_page(width, height if hosted else height - HEADER_PX)
        page.on("request", lambda r: None if _is_ours(r.url, server) else trouble.append(f"request {r.url}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective));"
            f"try {{ localStorage.setItem('pytorch_profiler.theme', '{theme}') }} catch {{}}"
        )
        page.on("console", lambda m: trouble.append(m.text) if m.text.startswith("CSP ") else None)
        parts = [f"p.pytorch_profiler.{key}={value}" for key, value in state.items()]
        tab = "" if hosted else "data/plugin_entry.html?name=pytorch_profiler"
        page.goto(f"{server}/{tab}#{'&'.join(['pytorch_profiler', *parts])}")
        return page, page.frame_locator("iframe") if hosted else page

    return open_page


@pytest.fixture
def open_report(new_page: NewPage, trouble: list[str]) -> Callable[..., Page]:
    """Opens a report at a view, from disk and offline; nothing may be requested, logged or thrown."""

    def open_report(report: Path, view: str, theme: str = "light", width: int = 1440, **state: str) -> Page:
        page = new_page(width)
        page.context.set_offline(True)
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        page.on("request", lambda r: trouble.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on("console", lambda message: trouble.append(message.text))
        page.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        parts = [f"p.pytorch_profiler.{key}={quote(value)}" for key, value in {"view": view, **state}.items()]
        page.goto(f"{report.as_uri()}#{'&'.join(['pytorch_profiler', *parts])}")
        return page

    return open_report


def _is_ours(url: str, server: str) -> bool:
    origin = "/".join(server.split("/")[:3])
    return url.startswith((origin, "data:", "blob:"))
