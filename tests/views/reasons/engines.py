"""Why rates of an engine, figures of a device or a snapshot are unknown: where they are, and where they aren't."""

from __future__ import annotations

import io
import pickle
from typing import Any, Literal

from msgspec import structs

from tests.model.hardware.test_peaks import device
from tests.support.claims import Claim, ReadSentences
from tests.support.serving import Workload, serve, without_device
from tests.support.snapshots import entry, snapshot
from tests.support.traces import draw
from tests.support.views import ask
from tests.views.memory.test_snapshot_compare import SMALL, compare, fit, peaking
from tests.views.memory.test_snapshot_failures import BASE, FORWARD, FULL, MIB, shown_failure
from tests.views.memory.test_snapshot_failures import STEP as FAILED_STEP
from tests.views.memory.test_snapshot_history import history
from tests.views.reasons.fields import on_card
from tests.views.reasons.tabs import COPY, EARLIER, KERNEL, LAUNCH, STEP, THE_KERNEL
from torch_tb_profiler.analyses.memory.snapshot.ranks import SnapshotDigest
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.ingest.memory.snapshot import as_trace, read_snapshot
from torch_tb_profiler.model.hardware.peaks import find_peaks
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import SnapshotParams
from torch_tb_profiler.views.memory.snapshot.ranks import build_ranks, reduce_snapshot
from torch_tb_profiler.views.serving.words import missing_arrivals_reason, missing_queue_reason

PRODUCT = "gpu0 kernel ampere_h16816gemm_128x64_nn 75 50 correlation=2 device=0 stream=7"
"""A kernel whose name carries the instruction."""


def rates(field: str, trace: Trace) -> ReadSentences:
    """Read why a rate of an engine is unknown."""
    return lambda: ask(trace, "serving")["rates"]["reasons"].get(field, "")


def labeled(label: str, count: int = 20) -> Trace:
    """Draw so many iterations with this label."""
    return draw("\n".join(f"host user_annotation {label} {20 * i} 10" for i in range(count)))


def decoding(count: int) -> Trace:
    """Draw so many iterations that decode."""
    return labeled("step[DECODE~bs=2]", count)


def drawn(field: str, *lines: str) -> ReadSentences:
    """Read why a figure of a device is unknown, or what limits it."""
    return lambda: utilizations(draw("\n".join(lines)))[0].unknown.get(field, "")


def of_snapshot(field: str, cut: int = 0, **changed: Any) -> ReadSentences:
    """Read why a field about device 0 of a snapshot is null; `cut`: of a file without its last bytes."""

    def say() -> str:
        value = snapshot()
        for name, change in changed.items():
            change(value) if callable(change) else value.__setitem__(name, change)
        content = pickle.dumps(value)
        found = read_snapshot(io.BytesIO(content[: len(content) - cut]))
        return plain(build_snapshot(found, SnapshotParams()).reasons.get(field, ()))

    return say


def failure(field: str, value: dict[str, Any], **params: Any) -> ReadSentences:
    """Read why a field about a drawn snapshot is null."""
    return lambda: plain(shown_failure(value, **params).reasons.get(field, ()))


CUT_OFF = structs.replace(SMALL, facts=structs.replace(SMALL.facts, incomplete="it is cut off"))
"""A snapshot whose file is incomplete."""


def compared(base: RecordedSnapshot, candidate: RecordedSnapshot) -> ReadSentences:
    """Read why the sites of two snapshots can't be compared."""
    return lambda: plain(compare(base, candidate).reasons.get("sites", ()))


def fitted(**params: Any) -> ReadSentences:
    """Read why it is unknown what fits in the memory of a device."""
    found = SMALL, peaking((100, FAILED_STEP), (64, FORWARD))
    return lambda: plain(fit(*found, batch=8, other_batch=4, **params).reasons.get("room_bytes", ()))


def beside(state: Literal["ready", "loading"], digest: SnapshotDigest | None) -> ReadSentences:
    """Read why the table of ranks has no row of a rank."""
    member = Member("rank0", 0, "1", state, None, digest)
    return lambda: plain(build_ranks(Members([member]), NoParams()).reasons.get("rank0", ()))


FAILED = {
    "segments": FULL,
    "device_traces": [[entry("oom", 40 * MIB, 5, FORWARD, device_free=10 * MIB)]],
}
GONE = {
    "segments": [],
    "device_traces": [
        [
            entry("oom", 40 * MIB, 5, FORWARD, device_free=10 * MIB),
            entry("free_requested", 40 * MIB, 6, FORWARD, addr=BASE),
            entry("free_completed", 40 * MIB, 7, FORWARD, addr=BASE),
            entry("segment_free", 63 * MIB, 10, FORWARD, addr=BASE),
        ]
    ],
}


def without(key: str) -> Any:
    """Return a change of a snapshot that takes a key from all entries of its history."""

    def change(value: dict[str, Any]) -> None:
        for each in value["device_traces"][0]:
            each.pop(key, None)

    return change


def requested(value: dict[str, Any]) -> None:
    """Change a snapshot so that all of its blocks have the size that was asked for."""
    for segment in value["segments"]:
        for each in segment["blocks"]:
            each.setdefault("requested_size", 0)


def unreadable(value: dict[str, Any]) -> None:
    """Change a snapshot so that an entry of its history is none."""
    value["device_traces"][0].append("entry")


def without_blocks(key: str) -> Any:
    """Return a change of a snapshot that takes a key from all its blocks."""

    def change(value: dict[str, Any]) -> None:
        for segment in value["segments"]:
            for each in segment["blocks"]:
                each.pop(key, None)

    return change


CLAIMS = {
    "analyses/shared/utilization.py": [
        Claim(
            "at least: for {} of the kernel time the names don't show it",
            "at least: for 50% of the kernel time the names don't show it",
            drawn("tensor_core_ratio", STEP, LAUNCH, KERNEL, PRODUCT),
            "all names do",
            drawn("tensor_core_ratio", STEP, LAUNCH, PRODUCT),
        ),
        Claim(
            "it counts kernels only: with copies and memsets the device is busy for {} of the same time",
            "with copies and memsets the device is busy for 60% of the same time",
            drawn("utilization", STEP, LAUNCH, KERNEL, COPY),
            "there is no copy",
            drawn("utilization", STEP, LAUNCH, KERNEL),
        ),
        Claim(
            "kernel names don't show the use of Tensor Cores",
            "kernel names don't show the use of Tensor Cores",
            drawn("tensor_core_ratio", STEP, LAUNCH, KERNEL),
            "one does",
            drawn("tensor_core_ratio", STEP, LAUNCH, KERNEL, PRODUCT),
        ),
        Claim(
            "no kernel takes time",
            "no kernel takes time",
            drawn("tensor_core_ratio", STEP, LAUNCH, KERNEL.replace("20 50", "20 0")),
            "one does",
            drawn("tensor_core_ratio", STEP, LAUNCH, KERNEL),
        ),
        Claim(
            "the trace has no `blocks per SM` for these kernels",
            "the trace has no `blocks per SM` for these kernels",
            on_card("sm_efficiency"),
            "it has",
            drawn("sm_efficiency", STEP, LAUNCH, f"{KERNEL} blocks per SM=2.5"),
        ),
        Claim(
            "the trace has no `est. achieved occupancy %` for these kernels",
            "the trace has no `est. achieved occupancy %` for these kernels",
            on_card("achieved_occupancy"),
            "it has",
            drawn("achieved_occupancy", STEP, LAUNCH, f"{KERNEL} est. achieved occupancy %=50"),
        ),
        Claim(
            "there is no {} to measure against",
            "there is no step to measure against",
            drawn("utilization", *EARLIER),
            "the kernel that it launches is recorded",
            drawn("utilization", *EARLIER, THE_KERNEL),
        ),
    ],
    "views/serving/build.py": [
        Claim(
            "fewer than 2 iterations decode",
            "fewer than 2 iterations decode",
            rates("between_tokens_median_ns", decoding(1)),
            "two do",
            rates("between_tokens_median_ns", decoding(2)),
        ),
        Claim(
            "too few iterations, or none that count requests",
            "too few iterations, or none that count requests",
            rates("window", decoding(2)),
            "there are many",
            rates("window", serve(Workload())[0]),
        ),
        Claim(
            "no device work was recorded, so a label's own time counts as busy",
            "no device work was recorded, so a label's own time counts as busy",
            lambda: ask(without_device(Workload()), "serving")["reasons"].get("families", ""),
            "it was",
            lambda: ask(serve(Workload())[0], "serving")["reasons"].get("families", ""),
        ),
    ],
    "views/memory/snapshot/build.py": [
        Claim(
            "no history was recorded (call `torch.cuda.memory._record_memory_history()` before the work)",
            "no history was recorded",
            of_snapshot("entry", device_traces=[[], []]),
            "it was",
            of_snapshot("entry"),
        ),
        Claim(
            "the file has no times (PyTorch before 2.1)",
            "the file has no times",
            of_snapshot("history_time_us", change=without("time_us")),
            "it has",
            of_snapshot("history_time_us"),
        ),
        Claim(
            "no stacks were recorded (call `torch.cuda.memory._record_memory_history()` before the work)",
            "no stacks were recorded",
            of_snapshot("stacks", change=without("frames"), blocks=without_blocks("frames")),
            "those of the history were",
            of_snapshot("stacks", blocks=without_blocks("frames")),
        ),
        Claim(
            "the file does not record requested sizes (PyTorch before 2.1)",
            "the file does not record requested sizes",
            of_snapshot("requested_bytes", blocks=without_blocks("requested_size")),
            "it does",
            of_snapshot("requested_bytes", change=requested),
        ),
        Claim(
            "{} of the file can't be read and {} left out",
            "1 entry of the file can't be read and is left out",
            of_snapshot("skipped", change=unreadable),
            "all can",
            of_snapshot("skipped"),
        ),
        Claim(
            "no steps were recorded (pass `global_record_annotations=True` to "
            "`torch.cuda.memory._record_memory_history` and call `prof.step()`)",
            "no steps were recorded",
            of_snapshot("step_peak"),
            "a step is marked",
            failure("step_peak", history()),
        ),
        Claim(
            "the state at the failure can't be rebuilt: the history doesn't reach the snapshot",
            "the state at the failure can't be rebuilt",
            failure("oom", GONE),
            "its memory is in the snapshot",
            failure("oom", FAILED),
        ),
        Claim(
            "the file doesn't tell how much memory the device has; pass `device_bytes`",
            "the file doesn't tell how much memory the device has",
            failure("other_bytes", FAILED),
            "it is passed",
            failure("other_bytes", FAILED, device_bytes=100 * MIB),
        ),
        Claim(
            "only part of the file could be read: {}; bytes in use and reserved lack what was allocated before "
            "its history",
            "only part of the file could be read",
            of_snapshot("incomplete", cut=40),
            "all of it could",
            of_snapshot("incomplete"),
        ),
    ],
    "model/hardware/peaks.py": [
        Claim(
            "no known {} has {} units",
            "no known H100 .* has 999 units",
            lambda: find_peaks(device("NVIDIA H100 80GB HBM3", 999)).reason or "",
            "it has 132",
            lambda: find_peaks(device("NVIDIA H100 80GB HBM3", 132)).reason or "",
        ),
    ],
    "views/memory/snapshot/compare.py": [
        Claim(
            "only one of the snapshots has stacks, so only totals can be compared",
            "only one of the snapshots has stacks",
            compared(SMALL, peaking((100, []))),
            "both have",
            compared(SMALL, SMALL),
        ),
        Claim(
            "one of the files is incomplete, so its peak may lie in the part that is missing",
            "one of the files is incomplete",
            compared(SMALL, CUT_OFF),
            "both are whole",
            compared(SMALL, SMALL),
        ),
        Claim(
            "the memory of the device isn't recorded; pass `device_bytes`",
            "the memory of the device isn't recorded",
            fitted(),
            "it is passed",
            fitted(device_bytes=1000 * MIB),
        ),
    ],
    "views/memory/snapshot/ranks.py": [
        Claim(
            "the file is still being read",
            "the file is still being read",
            beside("loading", None),
            "it is read, and is no snapshot",
            beside("ready", SnapshotDigest([])),
        ),
        Claim(
            "this recording isn't a memory snapshot",
            "this recording isn't a memory snapshot",
            beside("ready", SnapshotDigest([])),
            "it is one",
            beside("ready", reduce_snapshot(as_trace(SMALL))),
        ),
    ],
    "views/serving/words.py": [
        Claim(
            "with speculative decoding the labels count requests or drafts, not the accepted tokens",
            "with speculative decoding the labels count requests or drafts",
            rates("output_tokens_per_s", labeled("step[TARGET_VERIFY~bs=2]")),
            "the engine decodes",
            rates("output_tokens_per_s", labeled("step[DECODE~bs=2]")),
        ),
        Claim(
            "the recorded requests don't say; {}",
            "the recorded requests don't say; ",
            lambda: missing_arrivals_reason("vLLM", True),
            "no requests are recorded",
            lambda: missing_arrivals_reason("vLLM", False),
        ),
        Claim(
            "a trace doesn't record when requests arrive; {}",
            "a trace doesn't record when requests arrive; start vLLM",
            lambda: missing_arrivals_reason("vLLM", False),
            "it is another engine",
            lambda: missing_arrivals_reason("SGLang", False),
        ),
        Claim(
            "the log covers {} engines, and the trace doesn't say which one it belongs to",
            "the log covers 2 engines",
            lambda: missing_queue_reason(2),
            "there is one",
            lambda: missing_queue_reason(1),
        ),
        Claim(
            "a trace doesn't count requests in the queue; put the server's log beside it as `vllm.log` or "
            "`sglang.log`",
            "a trace doesn't count requests in the queue",
            lambda: missing_queue_reason(1),
            "a log is there, of two engines",
            lambda: missing_queue_reason(2),
        ),
        Claim(
            "export the engine's request spans (OpenTelemetry), and put them beside the trace as `otlp.jsonl`",
            "export the engine's request spans",
            lambda: missing_arrivals_reason(None, False),
            "the engine is known",
            lambda: missing_arrivals_reason("vLLM", False),
        ),
    ],
}

NO_CLAIMS = {
    "where clamp smooth_l1_loss huber_loss mse_loss_backward binary_cross_entropy": "names of operators",
    "the log's times are whole seconds, so requests at the edges of the trace may have arrived in it or not; "
    "set `SGLANG_LOG_MS=1`, or save the log with `docker logs --timestamps`": "files of a log: "
    "tests/session/test_request_files.py",
    "Replay the rest of the decode iterations as CUDA graphs, too": "an advice: tests/views/serving/claims.py",
    "the history is still being read": "while a file is read: tests/ingest/memory/test_native.py",
}
"""Reasons that say nothing that a trace could make false."""
