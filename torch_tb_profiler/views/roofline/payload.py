"""What the roofline answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.roofline.summary import Bound
from torch_tb_profiler.analyses.roofline.table import GroupBy
from torch_tb_profiler.views._shared.text import Text


class RooflineParams(msgspec.Struct, frozen=True):
    """`group_by`: operator, shape (operator + input shapes), kernel, family (of kernels) or module; filters are
    step and device.

    peaks  another device of the data base ("H100 SXM"), or figures of one's own ("bf16=989.4,hbm=3352": TFLOP/s by
           type, fp32 of the vector units; 10^9 bytes/s of device memory and links)
    """

    group_by: GroupBy = "operator"
    step: str = ""
    device: int | None = None
    peaks: str = ""


class RooflineRow(msgspec.Struct, frozen=True):
    """Calls that share a row; null is unknown.

    event        row of the trace of the first call
    short_name   of a kernel, at most 48 characters, unlike any other's of the trace; of what else the name
    device_ns    sum of the durations of their device events; over all rows and `unlinked_ns` all device time
    busy_ns      time in which any device event of a call ran
    flops, bytes  of the calls of which they are known
    intensity    FLOPs for each byte
    flops_per_s, bytes_per_s  of the same calls, while they ran
    roof_ns      the least time that the calls of which it is known could take; a lower bound where FLOPs or bytes
                 are unknown
    efficiency   roof_ns over what these calls took; above 1 where a cache served them, or bytes are estimated
    saved_ns     what they took beyond roof_ns
    bound        compute, memory, latency, launch, communication or unknown
    unit, type   of the longest call: matrix or vector, and the type that its peak is listed under
    estimated    some bytes are a guess from the arguments
    measured     hardware counters tell FLOPs or bytes of some calls
    captured     FLOPs or bytes of some calls are from their inputs when the graph was captured that replays them
    reason       why something is unknown
    """

    event: int
    name: str
    short_name: str
    input_shape: str | None
    calls: int
    device_ns: int
    busy_ns: int
    flops: float | None
    bytes: float | None
    intensity: float | None
    flops_per_s: float | None
    bytes_per_s: float | None
    roof_ns: float | None
    efficiency: float | None
    saved_ns: float | None
    bound: Bound
    unit: str | None
    type: str | None
    estimated: bool
    measured: bool
    captured: bool
    reason: str | None


class OtherRows(msgspec.Struct, frozen=True):
    """Rows with less device time that are left out."""

    rows: int
    calls: int
    device_ns: int


class DevicePeaks(msgspec.Struct, frozen=True):
    """What a device of the trace can do at most: dense, at the rated boost clock.

    recorded  the name in the trace
    name      in the data base; null if it is not there, and `reason` says why
    matrix, vector  FLOP/s by type of the inputs; memory, link: bytes/s
    matched   how it was found; source: the vendor's document, or who set the figures
    checked   figures (types, "hbm", "link") that another source confirms; the others rest on `source` alone
    clock_mhz at which the matrix peaks hold; recorded_mhz: mean of the trace's own counter while the device worked
    clock     what the recorded clock means for the peak; null where none is recorded
    """

    device: int
    recorded: str | None
    name: str | None
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    memory: float | None
    link: float | None
    matched: str | None
    source: str | None
    checked: tuple[str, ...]
    reason: str | None
    clock_mhz: float | None
    recorded_mhz: float | None
    clock: Text | None


class CounterRow(msgspec.Struct, frozen=True):
    """Kernels of one name, launched in one operator within one outermost operator; null is unknown.

    event        row of the trace of the first range with counters
    operator     the innermost one around the launch; null if there is none, or ranges could not be joined
    calls        ranges
    values       sums of the counters, in the order of `Counters.names`
    flops, bytes what the counters say; `reason` why they do not
    modeled_flops, modeled_bytes  what the shapes of the calls say; `modeled_reason` why they do not
    """

    event: int
    name: str
    short_name: str
    operator: str | None
    outermost: str | None
    calls: int
    values: list[float | None]
    flops: float | None
    bytes: float | None
    modeled_flops: float | None
    modeled_bytes: float | None
    reason: str | None
    modeled_reason: str | None


class RooflineCounters(msgspec.Struct, frozen=True):
    """Hardware counters by kernel and operator; most FLOPs first, then most calls.

    source    which tool counted, and what joined its counts with the kernels
    names     of the counters
    ranges    counted kernels
    left_out  rows that are not sent
    note      why the ranges could not be joined to operators; null if they are
    """

    source: str
    names: list[str]
    rows: list[CounterRow]
    ranges: int
    left_out: int
    note: str | None


class TokenRate(msgspec.Struct, frozen=True):
    """Tokens that went through the model in all iterations of a serving engine, by the names of its annotations.

    prompt, generating  of prompts, and of requests that generate
    duration_ns  from the start of the first iteration to the end of the last one's work
    """

    per_second: float
    prompt: int
    generating: int
    iterations: int
    duration_ns: int


class RooflinePayload(msgspec.Struct, frozen=True):
    """How fast operators and kernels run, compared with the peak of the devices.

    headline     MFU with its coverage, and what could be saved most
    coverage     share of the device time whose FLOPs or bytes are known, 0..1; null without device time
    mfu, hfu     share of the peak that the model's FLOPs, and those executed, used during the steps
    model_flops, executed_flops, recomputed_flops  of matrix operators, during the steps
    peak_ns      time that the model's FLOPs would take at the peak
    step_ns      length of the steps, or of the trace where none is recorded
    unlinked_ns  device time that no recorded operator launched; in `rows` of kernels or families
    tokens       of the whole trace, whatever the filters; null where it does not tell
    counters     of all kernels, whatever the filters; null in a trace without any
    steps        what the filter can be set to
    note         why the devices of the user's file are left out, null if they are not
    reasons      field -> why it is null
    """

    headline: Text
    rows: list[RooflineRow]
    others: OtherRows | None
    group_by: str
    coverage: float | None
    mfu: float | None
    hfu: float | None
    model_flops: float
    executed_flops: float
    recomputed_flops: float
    peak_ns: float
    step_ns: int
    modeled_ns: int
    device_ns: int
    unlinked_ns: int
    tokens: TokenRate | None
    counters: RooflineCounters | None
    devices: list[DevicePeaks]
    steps: list[str]
    note: str | None
    reasons: Mapping[str, Text]
