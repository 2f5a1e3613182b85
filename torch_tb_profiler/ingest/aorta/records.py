"""A line of metrics as a value: times in ms since the start of its iteration."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from torch_tb_profiler.base.errors import TraceError

Whole = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]


class Range(msgspec.Struct):
    """Work between two events of a stream; `metadata` of a collective names its `function`."""

    stream: str
    start_ms: float
    end_ms: float
    tag: str = ""
    metadata: dict[str, Any] = {}


class Marker(msgspec.Struct):
    """A moment of a stream."""

    stream: str
    time_ms: float
    tag: str = ""


class Overlap(msgspec.Struct):
    """What the recorder itself made of the ranges, ms; a name that is missing was 0."""

    per_stream_ms: dict[str, float] = {}
    overlap_ms: dict[str, float] = {}


class Profile(msgspec.Struct):
    """One iteration; `index` is the N of `ProfilerStep#N`."""

    index: Whole
    total_ms: float
    ranges: list[Range] = []
    markers: list[Marker] = []
    overlap: Overlap = msgspec.field(default_factory=Overlap)


class Record(msgspec.Struct):
    """One line."""

    global_step: Whole
    profile: Profile
    rank: Whole | None = None
    world_size: Whole | None = None
    epoch: Whole | None = None
    step: Whole | None = None
    loss: float | None = None
    grad_norm: float | None = None
    lr: float | None = None
    rocm_smi_output: str | None = None


_decode = msgspec.json.Decoder(Record).decode


def decode_record(line: bytes) -> Record:
    """Raises TraceError if the line is no iteration. NaN, which Python writes for a loss, is read as it is."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError as error:
        raise TraceError("the line is nested too deeply") from error
    try:
        return msgspec.convert(json.loads(line), Record)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the line is no iteration: {error}") from error
