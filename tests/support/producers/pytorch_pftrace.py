"""Draws events as PyTorch writes them with `export_chrome_trace("x.pftrace")`, in both of its ways.

"slices": everything is a track event, without categories. "stages": categories are written, and work of a GPU are
stages of its queues, launches apart. "submitted": the newest; the file begins with the time, stages count from 1,
and nothing but the list of stages in a launch says that it launched them. A group is all its begins, then all its
ends in the same order.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from typing import Any, Literal

from tests.support.producers.pftrace import field, varint

Form = Literal["slices", "stages", "submitted"]
BOOTED = 1_700_000_000_000_000_000
"""Epoch time when the machine of a file with a clock booted, ns."""

DEVICE = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3}
_STAGES = ("Kernel", "Memcpy", "Memset")


def _annotation(number: int, value: Any, key: str | None = None) -> bytes:
    name = field(10, key) if key is not None else b""
    if isinstance(value, list):
        return field(number, name + b"".join(_annotation(12, each) for each in value))
    if isinstance(value, dict):
        return field(number, name + b"".join(_annotation(11, each, inner) for inner, each in value.items()))
    if isinstance(value, float):
        return field(number, name + varint(5 << 3 | 1) + struct.pack("<d", value))
    if isinstance(value, bool):
        return field(number, name + field(2, int(value)))
    return field(number, name + (field(4, value) if isinstance(value, int) else field(6, value)))


def _ns(event: dict[str, Any]) -> tuple[int, int]:
    return round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)


class _Tables:
    """Numbers of names, categories and tracks."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self.names = {name: i for i, name in enumerate(dict.fromkeys(each["name"] for each in events), 1)}
        self.categories = {name: i for i, name in enumerate(dict.fromkeys(each["cat"] for each in events), 1)}
        places = dict.fromkeys((each["pid"], each["tid"]) for each in events)
        self.tracks = {place: i for i, place in enumerate(places, 100)}


def pytorch_pftrace(
    groups: Sequence[Sequence[dict[str, Any]]],
    form: Form = "slices",
    counters: Sequence[tuple[int, str, Sequence[tuple[int, float]]]] = (),
    *,
    packed: bool = False,
) -> bytes:
    """Return events of a chrome trace, a group each of the host, of calls, of the GPU.

    counters  (GPU, name, samples (ns, value))
    packed    the stages of a launch as one field
    """
    tables = _Tables([event for group in groups for event in group])
    packets = []
    if form == "submitted":
        clocks = field(1, field(1, 6) + field(2, 0)) + field(1, field(1, 1) + field(2, BOOTED))
        packets.append(field(8, 0) + field(10, 1) + field(6, clocks))
        groups = _submitted_events(groups)
    packets += [field(60, field(1, 1) + field(3, field(1, 1) + field(6, "python")))]
    for (pid, tid), uuid in tables.tracks.items():
        packets.append(field(60, field(1, uuid) + field(5, 1) + field(4, field(1, pid) + field(2, tid))))
    interned = b"".join(field(2, field(1, id) + field(2, name)) for name, id in tables.names.items())
    if form != "slices":
        interned += b"".join(field(1, field(1, id) + field(2, name)) for name, id in tables.categories.items())
        stages = dict(enumerate(_STAGES, 1))
        queues = {100 + tid: f"[{tid:05d}] stream {tid}" for _, tid in tables.tracks}
        interned += b"".join(field(24, field(1, id) + field(2, name)) for id, name in {**stages, **queues}.items())
    for gpu in sorted({gpu for gpu, _, _ in counters}):
        specs = b"".join(field(1, field(1, id) + field(2, name)) for id, (_, name, _) in enumerate(counters))
        interned += field(47, field(1, gpu + 1) + field(2, specs) + field(3, gpu))
    packets.append(field(10, 1) + field(13, 1) + field(12, interned))
    for group in groups:
        slices = [each for each in group if form == "slices" or each["cat"] not in DEVICE]
        packets += [_begin(each, tables, form, packed) for each in slices]
        packets += [
            field(8, _ns(each)[1]) + field(10, 1)
            + field(11, field(9, 2) + field(11, tables.tracks[each["pid"], each["tid"]]))
            for each in slices
        ]  # fmt: skip
        packets += [_stage(each, tables) for each in group if each not in slices]
    for id, (gpu, _, samples) in enumerate(counters):
        for time, value in samples:
            value_field = (
                field(2, value) if isinstance(value, int) else varint(3 << 3 | 1) + struct.pack("<d", value)
            )
            sample = field(4, gpu + 1) + field(2, field(1, id) + value_field)
            packets.append(field(8, time) + field(10, 1) + field(13, 2) + field(52, sample))
    content = b"".join(field(1, packet) for packet in packets)
    return gzip.compress(content, 1) if form != "slices" else content


def _submitted_events(groups: Sequence[Sequence[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Return the events without correlations: stages have ids of their own, which their launches list."""
    stages = [each for group in groups for each in group if each["cat"] in DEVICE]
    launched: dict[int, list[int]] = {}
    for number, stage in enumerate(stages, 1):
        launched.setdefault(stage["args"]["correlation"], []).append(number)
    numbers = {id(stage): number for number, stage in enumerate(stages, 1)}
    found: list[list[dict[str, Any]]] = []
    for group in groups:
        found.append([])
        for each in group:
            args = dict(each["args"])
            correlation = args.pop("correlation", None)
            submitted = launched.get(correlation, []) if each["cat"] not in DEVICE else []
            found[-1].append({**each, "args": args, "stage": numbers.get(id(each)), "submitted": submitted})
    return found


def _begin(event: dict[str, Any], tables: _Tables, form: str, packed: bool) -> bytes:
    slice_ = (
        field(9, 1) + field(11, tables.tracks[event["pid"], event["tid"]]) + field(10, tables.names[event["name"]])
    )
    if form != "slices":
        slice_ += field(3, tables.categories[event["cat"]])
    slice_ += b"".join(_annotation(4, value, key) for key, value in event["args"].items())
    if stages := event.get("submitted"):
        listed = field(1, b"".join(map(varint, stages))) if packed else b"".join(field(1, id) for id in stages)
        slice_ += field(3000, listed)
    return field(8, _ns(event)[0]) + field(10, 1) + field(13, 2) + field(11, slice_)


def _stage(event: dict[str, Any], tables: _Tables) -> bytes:
    args = dict(event["args"])
    start, end = _ns(event)
    stage = (
        field(1, event["stage"] if "stage" in event else args.pop("correlation"))
        + field(2, end - start)
        + field(11, args.pop("device"))
    )
    stage += (
        field(13, 100 + event["tid"]) + field(14, DEVICE[event["cat"]]) + field(20, tables.names[event["name"]])
    )
    sizes = [args.pop(key, None) for key in ("grid", "block")]
    args.pop("stream", None)
    stage += b"".join(field(6, field(1, key) + field(2, str(value))) for key, value in args.items())
    if sizes[0] is not None:
        launch = b"".join(
            field(number, b"".join(field(axis, count) for axis, count in enumerate(size, 1)))
            for number, size in enumerate(sizes, 1)
            if size is not None
        )
        stage += field(21, launch)
    return field(8, start) + field(10, 1) + field(13, 2) + field(53, stage)
