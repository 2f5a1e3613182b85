"""Traces to show in the page: a training run with names that are markup, memory that leaks, a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from playwright.sync_api import FrameLocator, Page

from tests.support.recordings import TRAINING
from tests.support.traces import document, event
from tests.support.waiting import until

T = TypeVar("T")

NewPage = Callable[..., Page]
"""Opens an empty page of a width and a height."""

Tab = FrameLocator | Page
"""The tab in TensorBoard's frame, or opened by itself."""

Open = Callable[..., tuple[Page, Tab]]
"""Opens the tab of some parameters."""


def address(page: Page) -> str:
    """Return the page's address from the page itself: `page.url` is stale until a test talks to it."""
    url: str = page.evaluate("location.href")
    return url


def until_heard(page: Page, ask: Callable[[], T]) -> T:
    """Ask until the answer is true, as `until`; in between, the page's events reach the test."""

    def hear_and_ask() -> T:
        page.evaluate("0")
        return ask()

    return until(hear_and_ask)


def lane_height(frame: Tab, depth: int) -> float:
    """Return the height on the page at which the lane of a depth of the first thread is drawn."""
    label = frame.locator("[data-part=track-label][data-kind=slices]").first
    box, lane = label.bounding_box(), float(label.get_attribute("data-lane") or 0)
    assert box is not None and lane > 0
    return box["y"] + 3 + (depth + 0.5) * lane


SCRIPT = "<img src=x onerror=alert(1)>"

HOOKS = """
    host   user_annotation  [pl][profile]run_training_batch                            0  200
    host   user_annotation  [pl][profile][Strategy]SingleDeviceStrategy.training_step  0  110
    host   user_annotation  [pl][module]torch.nn.modules.linear.Linear:~layer         19   42
"""


# Time in ns, action, bytes, category: 400 of parameters, then 300 of activations and 250 of gradients.
MEMORY_TIMELINE = [[-1, 1, 400, 0], [2_000, 2, 300, 4], [3_000, 2, 250, 5], [4_000, 4, -300, 4]]


def draw_training(
    steps: int = 6, name: str = "ProfilerStep#", kernel_us: float = 500, kernel: str = "sgemm"
) -> bytes:
    """Return a drawn training run on a GPU whose data loading takes a third of each step."""
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
            ("kernel", kernel, at + 400, kernel_us, 7, work),
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


def two_streams(kernel: str, rounds: int = 4) -> bytes:
    """Return a stream that repeatedly waits for a kernel on another one; before and after it runs `kernel`."""
    lines = []
    for i in range(rounds):
        at, first = 200 * i, 3 * i + 1
        lines += [
            f"host cuda_runtime cudaLaunchKernel    {at}      2 correlation={first}",
            f"host cuda_runtime cudaLaunchKernel    {at + 3}  2 correlation={first + 1}",
            f"host cuda_runtime cudaStreamWaitEvent {at + 6}  1",
            f"host cuda_runtime cudaLaunchKernel    {at + 8}  2 correlation={first + 2}",
            f"gpu0 kernel sum                       {at + 10} 10 correlation={first} stream=7",
            f"gpu0 kernel {kernel.replace(' ', '~')} {at + 12} 88 correlation={first + 1} stream=8",
            f"gpu0 kernel {kernel.replace(' ', '~')} {at + 102} 10 correlation={first + 2} stream=7",
        ]
    return document([event(line) for line in lines])


def products(product: str = "mm_kernel") -> bytes:
    """Draw operators of recorded shapes on a known GPU: product, addition, a cast, a short one, unknown ones.

    `product`: the kernel of the first.
    """
    bf16, big = "c10::BFloat16", [4096, 4096]
    calls = (
        ("aten::mm", [big, big], [bf16, bf16], 250),
        (f"aten::add {SCRIPT}", [big, big, []], [bf16, bf16, "Scalar"], 60),
        ("aten::add", [big, big, []], [bf16, bf16, "Scalar"], 60),
        ("aten::copy_", [big, big, []], ["float", bf16, "Scalar"], 40),
        ("aten::mul", [[64], [64]], [bf16, bf16], 2),
        ("custom::gather", [big], [bf16], 50),
    )
    events: list[dict[str, object]] = []
    at = 0.0
    for number, (name, dims, types, duration) in enumerate(calls, 1):
        inputs = {"Input Dims": dims, "Input type": types}
        call, work = {"correlation": number}, {"correlation": number, "device": 0, "stream": 7}
        kernel = product if number == 1 else f"{name.partition('::')[2]}_kernel"
        for cat, title, start, length, thread, args in (
            ("cpu_op", name, at, 10, 1, inputs),
            ("cuda_runtime", "cudaLaunchKernel", at + 1, 5, 1, call),
            ("kernel", kernel, 100 + at, duration, 7, work),
        ):
            row = {"ph": "X", "cat": cat, "name": title, "pid": 1, "tid": thread, "ts": start, "dur": length}
            events.append({**row, "args": args})
        at += duration
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
    return document(events, deviceProperties=[device])


def draw_leak(steps: int = 5, blocks: int = 40) -> bytes:
    """Return steps that allocate and free, and of which each keeps one block of 1 MiB more."""
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
    """Return a drawn step of a model under Lightning's profiler: modules, hooks, backward on another thread."""
    hostile = f"host python_function nn.Module:~{SCRIPT.replace(' ', '~')} 65 10 Python module id=0"
    return document([event(line) for line in (TRAINING + hostile + HOOKS).strip().splitlines()])


def draw_lag() -> bytes:
    """Return three steps of a host that launches a short and a long kernel in each, both from aten::mm.

    Its device is 600 us behind from the first step on.
    """
    lines, kernel = [], "stream=7 device=0 grid=[8,4,1] block=[128,1,1] shared memory=3328"
    for i in range(3):
        at, work = 1000 * i, f"correlation={{}} {kernel}"
        lines += [
            f"host user_annotation ProfilerStep#{i + 5} {at}       1000",
            f"host cpu_op          aten::mm             {at + 10}  50   External id={1_234_567 + i}",
            f"host cuda_runtime    cudaLaunchKernel     {at + 20}  10   correlation={2 * i + 1}",
            f"host cpu_op          aten::mm             {at + 500} 50",
            f"host cuda_runtime    cudaLaunchKernel     {at + 510} 10   correlation={2 * i + 2}",
            f"gpu0 kernel          short_gemm           {at + 700} 50   {work.format(2 * i + 1)}",
            f"gpu0 kernel          long_gemm            {at + 800} 800  {work.format(2 * i + 2)}",
        ]
    return document([event(line) for line in lines])


def draw_late_launch() -> bytes:
    """Return a step in most of which the host does nothing that is recorded."""
    picture = """
    host user_annotation ProfilerStep#1           0 1000
    host cpu_op          aten::mm               720   40
    host cuda_runtime    cudaLaunchKernel       730   10 correlation=1
    gpu0 kernel          gemm                   760  200 correlation=1 stream=7
    """
    return document([event(line) for line in picture.strip().splitlines()])


def draw_frame() -> bytes:
    """Return a step most of which passes in a Python frame, with no operator or call in it."""
    picture = """
    host user_annotation ProfilerStep#1           0 1000
    host python_function train.py(9):~preprocess 10  700 Python id=1
    host cpu_op          aten::mm               720   40
    host cuda_runtime    cudaLaunchKernel       730   10 correlation=1
    gpu0 kernel          gemm                   760  200 correlation=1 stream=7
    host python_function train.py(3):~decode     40   20 Python id=2 Python parent id=1
    """
    return document([event(line) for line in picture.strip().splitlines()])
