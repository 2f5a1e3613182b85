"""Each sentence of Roofline on how near to its peak the device works: where it holds, and where it doesn't."""

from __future__ import annotations

from typing import Any

from tests.model.work.operator_events import (
    BF16,
    counter_range,
    instruction_counters,
    kernel,
    launch,
    operator,
    traffic_counters,
)
from tests.support.claims import Claim, ReadSentences, read_sentences
from tests.support.traces import read
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.roofline.build import hardware_counters

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
CLOCK = {"ph": "C", "name": "SM Clock [MHz]", "pid": "GPU 0 Counters", "tid": 0, "ts": 0, "args": {"value": 1464}}


def of(us: float = 80, *more: dict[str, Any], size: int = 1000, device: dict[str, Any] = H100) -> ReadSentences:
    """Read the sentences about a product of 2 GFLOP (with 1000 rows) whose kernel takes so many us."""
    dims = {"dims": [[size, 1000], [1000, 1000]], "types": [BF16, BF16]}
    events = [operator("aten::mm", 0, 50, **dims), launch(10, 1), kernel("gemm", 20, us, 1), *more]
    return lambda: read_sentences("roofline", read(events, deviceProperties=[device]))


def counted_trace(counters: dict[str, Any]) -> Trace:
    """Return a recording of counters of one kernel instead of its times."""
    host = [operator("aten::mm", 1, 15, dims=[[10, 20], [20, 30]], types=["float", "float"]), launch(2, 1)]
    return read([*host, counter_range("sgemm_32x32_nn", 0, counters)])


def timed_trace(*host: dict[str, Any]) -> Trace:
    """Return a kernel of 10 us with counters, as rocprofv3 records it, and what the host did."""
    counters: dict[str, Any] = {"counter FETCH_SIZE": 1024.0, "counter WRITE_SIZE": 1024.0}
    card = {"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 192 << 30, "numSms": 304}
    return read([*host, kernel("gemm", 20, 10, 1, **counters)], deviceProperties=[card])


def counted(counters: dict[str, Any]) -> ReadSentences:
    return lambda: read_sentences("roofline", counted_trace(counters))


def timed(*host: dict[str, Any]) -> ReadSentences:
    return lambda: read_sentences("roofline", timed_trace(*host))


def source(trace: Trace) -> ReadSentences:
    """Read who measured the counters of a trace."""

    def say() -> str:
        counters = hardware_counters(trace)
        assert counters is not None
        return counters.source

    return say


FLOPS = instruction_counters(ffma=6500)

CLAIMS = [
    Claim(
        "MFU is {least}{mfu} on {device}{edited}{modeled}.",
        r"MFU is 2% on H100 SXM\.",
        of(),
        "the step takes twice as long",
        of(180),
    ),
    Claim(
        "At its roofline, {name} would take {then} instead of {busy}.",
        r"At its roofline, mm would take 2\.02 µs instead of 80\.0 µs\.",
        of(),
        "it has ten times the rows",
        of(size=10_000),
    ),
    Claim(
        "No device work matches.",
        "No device work matches.",
        lambda: read_sentences("roofline", read([operator("aten::mm", 0, 50)])),
        "a kernel is recorded",
        of(),
    ),
    Claim(
        "No roofline: {reason}. Enter the rates under Device.",
        r"No roofline: the peak rates of 'ARTEMIS' aren't known\. Enter",
        of(device={"id": 0, "name": "ARTEMIS"}),
        "the device is known",
        of(),
    ),
    Claim(
        "No matmul or convolution with known FLOPs was recorded{modeled}.",
        "No matmul or convolution with known FLOPs was recorded",
        lambda: read_sentences("roofline", read([kernel("alone", 20, 80, 1)], deviceProperties=[H100])),
        "one is",
        of(),
    ),
    Claim(
        "{counter} averaged {mhz} MHz while the device was busy ({samples}).",
        r"SM Clock \[MHz\] averaged 1,464 MHz while the device was busy \(1 sample\)\.",
        of(80, CLOCK),
        "the clock is another one",
        of(80, {**CLOCK, "args": {"value": 1_830}}),
    ),
    Claim(
        "The peak rates assume {rated} MHz. At {share} of that clock, {kind} reaches at most {flops} TFLOP/s.",
        r"assume 1,830 MHz\. At 80% of that clock, bf16 reaches at most 791\.5? TFLOP/s|at most 792 TFLOP/s",
        of(80, CLOCK),
        "the clock is the rated one",
        of(80, {**CLOCK, "args": {"value": 1_830}}),
    ),
    Claim(
        "Hardware counters measured {flops} GFLOP in {kernels}{of}{most}.",
        r"Hardware counters measured 0\.00001\d+ GFLOP in 1 kernel, 100% of them in ",
        counted({**FLOPS, **traffic_counters(4000, 1200)}),
        "they count no FLOPs",
        counted(traffic_counters(4000, 1200)),
    ),
    Claim(
        "The recorded hardware counters don't include the FLOPs of {kernels}.",
        "The recorded hardware counters don't include the FLOPs of 1 kernel.",
        counted(traffic_counters(4000, 1200)),
        "they do",
        counted({**FLOPS, **traffic_counters(4000, 1200)}),
    ),
    Claim(
        "Kernel times aren't recorded together with counters.",
        "Kernel times aren't recorded together with counters.",
        counted(FLOPS),
        "each dispatch has its time beside its counters",
        timed(),
    ),
    Claim(
        "Measured by CUPTI's range profiler; the n-th range belongs to the n-th launch.",
        "Measured by CUPTI's range profiler; the n-th range belongs to the n-th launch.",
        source(counted_trace(FLOPS)),
        "rocprofv3 counted them",
        source(timed_trace()),
    ),
    Claim(
        "Measured by rocprofv3 for each dispatch of this recording.",
        "Measured by rocprofv3 for each dispatch of this recording.",
        source(timed_trace()),
        "CUPTI counted them",
        source(counted_trace(FLOPS)),
    ),
    Claim(
        "The operators that launched them aren't recorded.",
        "The operators that launched them aren't recorded.",
        timed(),
        "they are",
        timed(operator("aten::mm", 0, 15, dims=[[100, 100], [100, 100]], types=[BF16, BF16]), launch(2, 1)),
    ),
]

NO_CLAIMS = {
    "The clock that its peak rates assume isn't known.": "why nothing is said",
    ", {share} of them in {name}": "a part of the sentence on counters",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
