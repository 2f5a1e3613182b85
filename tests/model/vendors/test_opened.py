"""Tests of the main numbers of the views, from a log folder, against a count of the drawn events µs by µs.

The count is independent of the package: it goes through the events of the file with a rule per producer.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.support.producers import composer
from tests.support.traces import document, event
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

Event = dict[str, Any]
Rule = Callable[[Event], str | None]


def memory(kind: int, *totals: tuple[int, int]) -> list[Event]:
    """Draw allocations of a device of this type: time, µs, and bytes in use after it."""
    return [
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
         "args": {"Bytes": 64, "Addr": 4096 + ts, "Device Type": kind, "Device Id": 0, "Total Allocated": total,
                  "Total Reserved": 1 << 20}}
        for ts, total in totals
    ]  # fmt: skip


def counter(name: str, *samples: tuple[int, float]) -> list[Event]:
    return [
        {
            "ph": "C",
            "cat": "xpu_scope_profiler",
            "name": name,
            "pid": 0,
            "tid": 0,
            "ts": ts,
            "args": {"value": value},
        }
        for ts, value in samples
    ]


XPU = [
    *map(
        event,
        (
            "host  user_annotation  ProfilerStep#1              0 200",
            "host  cpu_op           aten::mm                    2  20  External id=1",
            "host  xpu_runtime      urEnqueueKernelLaunch       5   6  correlation=5",
            "gpu0  kernel           gemm                       30  50  correlation=5 kernel_id=77 stream=1",
            "gpu0  kernel           metrics:~gemm              29  52  kernel_id=77 stream=1 EuActive=61",
            "host  cpu_op           aten::add                  40  10  External id=2",
            "host  xpu_runtime      urEnqueueKernelLaunch      42   3  correlation=6",
            "gpu0  kernel           add                        70  20  correlation=6 kernel_id=78 stream=2",
            "gpu0  kernel           metrics:~add               69  22  kernel_id=78 stream=2 EuActive=12",
            "host  cpu_op           aten::copy_                60   9  External id=3",
            "host  xpu_runtime      urEnqueueUSMMemcpy         62   4  correlation=7",
            "gpu0  gpu_memcpy       M2D                        95  15  correlation=7 stream=1 bytes=4096",
            "host  collective_comm  xccl::allreduce           120  30  Communicator_id=3",
        ),
    ),
    *memory(12, (3, 1 << 20), (41, 3 << 20), (65, 2 << 20)),
    *counter("GpuTime", (10, 1.5), (90, 2.5)),
]


def of_xpu(each: Event) -> str | None:
    if each["cat"] == "collective_comm":
        return "communication"
    if each["cat"] == "gpu_memcpy":
        return "memcpy"
    return "kernel" if each["cat"] == "kernel" and not each["name"].startswith("metrics:") else None


MTIA = [
    *map(
        event,
        (
            "host  user_annotation  ProfilerStep#1     0 200",
            "host  cpu_op           aten::mm           1  20  External id=1",
            "host  mtia_runtime     runFunction        2   5  correlation=5 device=17",
            "gpu17 mtia_ccp_events  event_wait        10  20  stream=101 wait_on_stream=104",
            "gpu17 mtia_ccp_events  merge             30  30  stream=101 correlation=5",
            "host  cpu_op           aten::cat         33   9  External id=2",
            "host  mtia_runtime     runFunction       34   5  correlation=6 device=17",
            "gpu17 mtia_ccp_events  concat            50  25  stream=102 correlation=6",
            "gpu17 mtia_ccp_events  dma_request       65  15  stream=105 size=1024 direction=DEVICE_TO_HOST",
            "gpu17 mtia_ccp_events  dma_request       85   3  stream=105 size=2048 direction=HOST_TO_DEVICE",
            "gpu17 mtia_ccp_events  hccl::allreduce   90  40  stream=103",
            "gpu17 mtia_ccp_events  event_record     135   5  stream=101",
        ),
    ),
    *memory(19, (3, 1 << 20), (35, 5 << 20)),
]


def of_mtia(each: Event) -> str | None:
    if each["cat"] != "mtia_ccp_events" or each["name"].startswith("event_"):
        return None
    if each["name"].startswith("dma_"):
        return "memcpy"
    return "communication" if each["name"].startswith("hccl::") else "kernel"


def rank_of_sglang(number: int) -> list[Event]:
    """Return one rank as it lies in the file that sglang merges."""
    lines = (
        "host  user_annotation  ProfilerStep#1      0 200",
        "host  cpu_op           aten::mm            1  20  External id=1",
        "host  cuda_runtime     cudaLaunchKernel    2   5  correlation=1",
        f"gpu0  kernel           gemm               30  {40 + 5 * number}  correlation=1 stream=7",
        f"gpu0  kernel           ncclDevKernel_AllReduce_Sum_f32 100 {60 - number}  stream=9",
    )
    return [event(line) for line in lines]


def sglang() -> list[Event]:
    return [
        {**each, "pid": f"[TP0{number}] {4242 + number if each['pid'] == 1 else number}"}
        for number in (0, 1)
        for each in rank_of_sglang(number)
    ]


def of_cuda(each: Event) -> str | None:
    if each["cat"] != "kernel":
        return None
    return "communication" if each["name"].startswith("nccl") else "kernel"


class Producer(NamedTuple):
    """A file of a log folder, and what a worker of it holds.

    events  drawn, of this worker; role: what each counts as, None if as no device work
    memory  the device's name and its peak, None if none is drawn
    counters  their values, by name
    device  kind of its accelerator
    """

    file: str
    content: bytes
    worker: str
    events: list[Event]
    role: Rule
    device: str
    memory: tuple[str, int] | None = None
    counters: dict[str, list[float]] = {}


def composer_rank(number: int) -> list[Event]:
    batches = [composer.Batch(60, 20, 15, 40)] * 2
    own = composer.cycle(batches, rank=number, sync=composer.EPOCH)
    copied = composer.copy_events(composer.pytorch_events(kernel=12 + number), number)
    sampled = [
        composer.counter("cpu", composer.EPOCH + at, {"cpu_percent": 25 + at}, rank=number) for at in (5, 50)
    ]
    return [*own, *copied, *sampled]


def producers() -> list[Producer]:
    ranks = [composer_rank(number) for number in (0, 1)]
    all_ranks = composer.content(composer.merge_ranks(*ranks))
    cpu = {"CPU": [0.3, 0.75]}

    def of_sglang(number: int) -> Producer:
        merged = document(sglang())
        worker = f"merged-17/rank{number}"
        return Producer("merged-17.trace.json", merged, worker, rank_of_sglang(number), of_cuda, "CUDA")

    def of_composer(file: str, content: bytes, worker: str, number: int) -> Producer:
        return Producer(file, content, worker, ranks[number], of_cuda, "CUDA", None, cpu)

    xpu, mtia = document(XPU), gzip.compress(document(MTIA))
    return [
        Producer(
            "w.1.pt.trace.json", xpu, "w", XPU, of_xpu, "XPU", ("XPU 0", 3 << 20), {"GpuTime, 0": [1.5, 2.5]}
        ),
        Producer("w.1.pt.trace.json.gz", mtia, "w", MTIA, of_mtia, "MTIA", ("MTIA 0", 5 << 20)),
        *(of_sglang(number) for number in (0, 1)),
        *(
            of_composer(f"traces/ep0-ba2-rank{number}.json", composer.content(rank), f"rank{number}", number)
            for number, rank in enumerate(ranks)
        ),
        *(of_composer("node0.json", all_ranks, f"node0/rank{number}", number) for number in (0, 1)),
    ]


NAMES = [
    "XPU", "MTIA", "sglang 0", "sglang 1", "Composer 0", "Composer 1", "Composer merged 0", "Composer merged 1",
]  # fmt: skip


class OpenedProducer(NamedTuple):
    producer: Producer
    session: Session

    def view(self, slug: str, **params: str) -> Any:
        answer = self.session.view(slug, worker=self.producer.worker, params=params, wait=True, timeout=PATIENCE)
        assert answer.payload is not None
        return json.loads(answer.payload)

    def unavailable(self) -> Mapping[str, str]:
        """Return view -> why it has nothing to show, once the file is read."""
        self.view("trace")
        reasons = self.session.unavailable(self.session.find(None, self.producer.worker, None))
        assert reasons is not None
        return reasons

    @property
    def slices(self) -> list[Event]:
        return [each for each in self.producer.events if each["ph"] == "X"]

    def busy(self, *roles: str) -> set[int]:
        """Return the quarters of a microsecond in which work of these roles runs."""
        return {
            at
            for each in self.slices
            if self.producer.role(each) in roles
            for at in range(int(4 * _us(each)), int(4 * (_us(each) + each["dur"])))
        }


def _us(each: Event) -> float:
    """Return the microseconds on one axis, whatever a time counts from."""
    return float(each["ts"] % composer.QUARTER_US)


@pytest.fixture(scope="module", params=range(len(NAMES)), ids=NAMES)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    producer = producers()[request.param]
    path = tmp_path_factory.mktemp("log") / "run" / producer.file
    path.parent.mkdir(parents=True)
    path.write_bytes(producer.content)
    with Session([Root(str(path.parent.parent))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield OpenedProducer(producer, session)


def test_overview(opened: OpenedProducer) -> None:
    overview = opened.view("overview")
    assert {device["kind"] for device in overview["devices"]} == {opened.producer.device}
    categories = Counter[str]()
    for step in overview["steps"]:
        categories.update(step["categories"])
        assert sum(step["categories"].values()) == step["duration_ns"]
    kernels, copies, talk = (opened.busy(role) for role in ("kernel", "memcpy", "communication"))
    # What computes or copies at the same time counts first.
    assert categories["kernel"] == 250 * len(kernels)
    assert categories["memcpy"] == 250 * len(copies - kernels)
    assert categories["communication"] == 250 * len(talk - copies - kernels)


def test_operators(opened: OpenedProducer) -> None:
    table = opened.view("operators")
    shown = [each for each in opened.slices if each["cat"] == "cpu_op"]
    launched = {each["args"].get("correlation"): each for each in opened.slices if "runtime" in each["cat"]}
    expected = {}
    for each in shown:
        calls = [call for call in launched.values() if _us(each) <= _us(call) < _us(each) + each["dur"]]
        numbers = {call["args"]["correlation"] for call in calls}
        work = [e for e in opened.slices if opened.producer.role(e) and e["args"].get("correlation") in numbers]
        expected[each["name"]] = (
            1,
            1000 * each["dur"],
            1000 * (each["dur"] - sum(call["dur"] for call in calls)),
            1000 * sum(e["dur"] for e in work),
        )
    assert {
        row["name"]: (row["calls"], row["host_total_ns"], row["host_self_ns"], row["device_total_ns"])
        for row in table["rows"]
    } == expected


def test_kernels(opened: OpenedProducer) -> None:
    table = opened.view("kernels")
    calls, times = Counter[str](), Counter[str]()
    for each in opened.slices:
        on_card = each["cat"] != "collective_comm"
        if on_card and opened.producer.role(each) in ("kernel", "communication"):
            calls[each["name"]] += 1
            times[each["name"]] += int(1000 * each["dur"])
    assert {row["name"]: (row["calls"], row["total_ns"]) for row in table["rows"]} == {
        name: (calls[name], times[name]) for name in calls
    }
    copies = [each for each in opened.slices if opened.producer.role(each) == "memcpy"]
    assert sum(row["total_ns"] for row in table["memory_operations"]) == sum(int(1000 * e["dur"]) for e in copies)
    assert sum(row["bytes"] or 0 for row in table["memory_operations"]) == sum(
        each["args"].get("size", each["args"].get("bytes", 0)) for each in copies
    )


def test_every_drawn_slice_is_on_the_timeline(opened: OpenedProducer) -> None:
    timeline = opened.view("trace")
    begins = sum(each["ph"] == "B" and not each["name"].startswith("callback/") for each in opened.producer.events)
    assert sum(track["slices"] for track in timeline["tracks"]) == len(opened.slices) + begins


def test_memory(opened: OpenedProducer) -> None:
    if opened.producer.memory is None:
        assert opened.unavailable()["memory"].startswith("no memory events were recorded")
    else:
        (device,) = opened.view("memory")["devices"]
        assert (device["name"], device["peak_allocated"]["bytes"]) == opened.producer.memory


def test_counters_of_the_file(opened: OpenedProducer) -> None:
    tracks = [each for each in opened.view("trace")["tracks"] if each["kind"] == "counter" and not each["role"]]
    shown = {name: (len(values), min(values), max(values)) for name, values in opened.producer.counters.items()}
    assert {each["name"]: (each["samples"], each["low"], each["high"]) for each in tracks} == shown


def test_communication(opened: OpenedProducer) -> None:
    talk = [each for each in opened.slices if opened.producer.role(each) == "communication"]
    if talk:
        row = next(r for r in opened.view("distributed")["collectives"] if r["worker"] == opened.producer.worker)
        assert (row["calls"], row["latency_ns"]) == (len(talk), 1000 * sum(each["dur"] for each in talk))
        overlapped = opened.busy("communication") & opened.busy("kernel")
        assert row["exposed_ns"] == row["latency_ns"] - 250 * len(overlapped)
    else:
        reasons = opened.unavailable()
        assert "no communication between ranks" in reasons["distributed"]
