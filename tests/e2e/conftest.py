"""A real Chromium on a real TensorBoard."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect, sync_playwright

from tests.analyses.modules.test_times import TRAINING
from tests.support.jobs import Job, ddp
from tests.support.snapshots import snapshot
from tests.support.tensorboard import tensorboard
from tests.support.traces import document, event
from tests.support.waiting import PATIENCE

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MILLISECONDS = 1000 * PATIENCE
SCRIPT = "<img src=x onerror=alert(1)>"

HOOKS = """
    host   user_annotation  [pl][profile]run_training_batch                            0  200
    host   user_annotation  [pl][profile][Strategy]SingleDeviceStrategy.training_step  0  110
    host   user_annotation  [pl][module]torch.nn.modules.linear.Linear:~layer         19   42
"""


# Time in ns, action, bytes, category: 400 of parameters, then 300 of activations and 250 of gradients.
MEMORY_TIMELINE = [[-1, 1, 400, 0], [2_000, 2, 300, 4], [3_000, 2, 250, 5], [4_000, 4, -300, 4]]


def training(steps: int = 6, name: str = "ProfilerStep#", kernel_us: float = 500) -> bytes:
    """A drawn training run on a GPU whose data loading takes a third of each step."""
    events: list[dict[str, object]] = []
    for i in range(steps):
        at = 1000.0 * i
        call = {"correlation": i + 1}
        work = {**call, "device": 0, "stream": 7, "blocks per SM": 2.0, "est. achieved occupancy %": 50}
        for cat, title, start, duration, tid, args in (
            ("user_annotation", f"{name}{i}", at, 1000, 1, {}),
            ("cpu_op", "enumerate(DataLoader)#_SingleProcess.__next__", at, 330, 1, {}),
            ("cpu_op", f"aten::mm {SCRIPT}", at + 340, 100, 1, {}),
            ("cuda_runtime", "cudaLaunchKernel", at + 350, 20, 1, call),
            ("kernel", "sgemm", at + 400, kernel_us, 7, work),
        ):
            pid = 0 if cat == "kernel" else 1
            row = {"ph": "X", "cat": cat, "name": title, "pid": pid, "tid": tid, "ts": start, "dur": duration}
            events.append({**row, "args": args})
    device = {
        "id": 0,
        "name": SCRIPT,
        "totalGlobalMem": 2**34,
        "computeMajor": 8,
        "computeMinor": 0,
        "numSms": 108,
    }
    return document(events, deviceProperties=[device])


def leaking(steps: int = 5, blocks: int = 40) -> bytes:
    """Steps that allocate and free, and of which each keeps one block of 1 MiB more."""
    events: list[dict[str, object]] = []
    total, mib = 64 << 20, 1 << 20

    def memory(at: float, address: int, size: int) -> None:
        nonlocal total
        total += size
        args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": total}
        args["Total Reserved"] = 128 << 20
        events.append({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": args})

    def slice_(cat: str, name: str, at: float, duration: float) -> None:
        row = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": duration}
        events.append(row)

    for i in range(steps):
        at = 10_000.0 * i
        slice_("user_annotation", f"ProfilerStep#{i}", at, 9_900)
        slice_("cpu_op", f"aten::kept {SCRIPT}", at + 10, 80)
        memory(at + 50, 0x100000 + i, mib)
        for j in range(blocks):
            begin = at + 200 * (j + 1)
            slice_("cpu_op", "aten::scratch", begin, 50)
            memory(begin + 10, 0x900000 + j, (j + 1) * 64 << 10)
            memory(begin + 150, 0x900000 + j, -(j + 1) * 64 << 10)
    device = {"id": 0, "name": "Drawn GPU", "totalGlobalMem": 1 << 30}
    return document(events, deviceProperties=[device])


def model() -> bytes:
    """A drawn step of a model under Lightning's profiler: modules, hooks, backward on another thread."""
    hostile = f"host python_function nn.Module:~{SCRIPT.replace(' ', '~')} 65 10 Python module id=0"
    return document([event(line) for line in (TRAINING + hostile + HOOKS).strip().splitlines()])


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")

    def put(path: str, content: bytes) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)

    put("a_training/w.1700000000000.pt.trace.json", training())
    put("a_training/w.1700000060000.pt.trace.json.gz", gzip.compress(training(3)))
    put("b_damaged/rank0.pt.trace.json", training())
    put("b_damaged/rank1.pt.trace.json", training()[:-300])
    put("b_damaged/rank2.pt.trace.json", b"")
    put("c <b>bold</b>/w.pt.trace.json", training(1))
    put("d_many/w.pt.trace.json", training(300))
    put("m_modules/w.pt.trace.json", model())
    put("n_memory/w.pt.trace.json", leaking())
    put("p_faster/w.pt.trace.json", training(kernel_us=300))
    put("n_memory/oom <b>.pickle", pickle.dumps(snapshot()))
    put("n_memory/w.raw.json", json.dumps(MEMORY_TIMELINE).encode())
    put("n_memory/evil.pickle", b"cos\nsystem\n(S'true'\ntR.")
    for rank, content in Job(6, ddp(6), straggler=4).documents().items():
        put(f"o_job/rank{rank}.pt.trace.json", content)
    put("o_job/rank6.pt.trace.json", b"")
    return folder


@pytest.fixture(scope="session", params=["", "/some/where"], ids=["plain", "prefix"])
def server(
    request: pytest.FixtureRequest, logdir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    arguments = ["--logdir", str(logdir)]
    if request.param:
        arguments += ["--path_prefix", request.param]
    with tensorboard(*arguments, cache=tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        pytest.skip("there is no Chromium (set CHROMIUM to its path)")
    # Playwright gives a page 5 s, which a busy machine may take for a single frame.
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


Open = Callable[..., tuple[Page, FrameLocator]]


@pytest.fixture
def open_page(browser: Browser, server: str) -> Iterator[Open]:
    """Opens the tab; at the end nothing may have left the server, broken the CSP or thrown."""
    contexts = []
    trouble: list[str] = []

    def open_page(
        width: int = 1440, height: int = 900, theme: str = "light", **state: str
    ) -> tuple[Page, FrameLocator]:
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        context.set_default_timeout(MILLISECONDS)
        page = context.new_page()
        page.on("request", lambda r: None if _is_ours(r.url, server) else trouble.append(f"request {r.url}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective));"
            f"try {{ localStorage.setItem('pytorch_profiler.theme', '{theme}') }} catch {{}}"
        )
        page.on("console", lambda m: trouble.append(m.text) if m.text.startswith("CSP ") else None)
        parts = [f"p.pytorch_profiler.{key}={value}" for key, value in state.items()]
        page.goto(f"{server}/#{'&'.join(['pytorch_profiler', *parts])}")
        return page, page.frame_locator("iframe")

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def _is_ours(url: str, server: str) -> bool:
    origin = "/".join(server.split("/")[:3])
    return url.startswith((origin, "data:", "blob:"))
