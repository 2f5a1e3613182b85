"""The fields that are read of an iteration's line. Times are ms since the start of the iteration."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from torch_tb_profiler.base.errors import TraceError

ExactInteger = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""An integer that a JSON writer with doubles writes exactly."""


class StreamRange(msgspec.Struct):
    """The work between two events of a stream; `metadata` of a collective has its `function`."""

    stream: str
    start_ms: float
    end_ms: float
    tag: str = ""
    metadata: dict[str, Any] = {}


class StreamMarker(msgspec.Struct):
    """A point in time on a stream."""

    stream: str
    time_ms: float
    tag: str = ""


class RecordedOverlap(msgspec.Struct):
    """The recorder's own sums over the ranges, in ms; a missing name means 0. `segments_of` reads its segments."""

    per_stream_ms: dict[str, float] = {}
    overlap_ms: dict[str, float] = {}
    active_segments: Any = None


class ActiveSegment(msgspec.Struct):
    """A time in which the same streams are active."""

    start_ms: float
    end_ms: float
    active_streams: list[str]


class IterationProfile(msgspec.Struct):
    """The streams of one iteration; `index` is the N of `ProfilerStep#N`."""

    index: ExactInteger
    total_ms: float
    ranges: list[StreamRange] = []
    markers: list[StreamMarker] = []
    overlap: RecordedOverlap = msgspec.field(default_factory=RecordedOverlap)


class IterationRecord(msgspec.Struct):
    """A line of the file: an iteration with its metrics and profile."""

    global_step: ExactInteger
    profile: IterationProfile
    rank: ExactInteger | None = None
    world_size: ExactInteger | None = None
    epoch: ExactInteger | None = None
    step: ExactInteger | None = None
    loss: float | None = None
    grad_norm: float | None = None
    lr: float | None = None
    rocm_smi_output: Any = None
    rocm_smi_error: Any = None
    rocm_smi_exit_code: Any = None


_decode = msgspec.json.Decoder(IterationRecord).decode


def decode_record(line: bytes) -> IterationRecord:
    """Return the iteration in a line; raise TraceError if it isn't one.

    NaN is accepted, which isn't JSON, but Python writes it for a loss.
    """
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError as error:
        raise TraceError("the line is nested too deeply") from error
    try:
        return msgspec.convert(json.loads(line), IterationRecord)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the line is not an iteration: {error}") from error


def segments_of(overlap: RecordedOverlap) -> list[ActiveSegment] | None:
    """Return the recorder's segments; None if it wrote something else in their place, which costs nothing else."""
    try:
        return msgspec.convert(overlap.active_segments or [], list[ActiveSegment])
    except msgspec.ValidationError:
        return None
