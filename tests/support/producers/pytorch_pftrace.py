"""Draws events as PyTorch writes them with `export_chrome_trace("x.pftrace")`, in both of its ways.

"slices": everything is a track event, without categories. "stages": categories are written, and work of a GPU are
stages of its queues, launches apart. A group is all its begins, then all its ends in the same order.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from typing import Any, Literal

from tests.support.producers.pftrace import field, varint

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
    groups: Sequence[Sequence[dict[str, Any]]], form: Literal["slices", "stages"] = "slices"
) -> bytes:
    """Events of a chrome trace, a group each of the host, of calls, of the GPU."""
    tables = _Tables([event for group in groups for event in group])
    packets = [field(60, field(1, 1) + field(3, field(1, 1) + field(6, "python")))]
    for (pid, tid), uuid in tables.tracks.items():
        packets.append(field(60, field(1, uuid) + field(5, 1) + field(4, field(1, pid) + field(2, tid))))
    interned = b"".join(field(2, field(1, id) + field(2, name)) for name, id in tables.names.items())
    if form == "stages":
        interned += b"".join(field(1, field(1, id) + field(2, name)) for name, id in tables.categories.items())
        stages = dict(enumerate(_STAGES, 1))
        queues = {100 + tid: f"[{tid:05d}] stream {tid}" for _, tid in tables.tracks}
        interned += b"".join(field(24, field(1, id) + field(2, name)) for id, name in {**stages, **queues}.items())
    packets.append(field(10, 1) + field(13, 1) + field(12, interned))
    for group in groups:
        slices = [each for each in group if form == "slices" or each["cat"] not in DEVICE]
        packets += [_begin(each, tables, form) for each in slices]
        packets += [
            field(8, _ns(each)[1]) + field(10, 1)
            + field(11, field(9, 2) + field(11, tables.tracks[each["pid"], each["tid"]]))
            for each in slices
        ]  # fmt: skip
        packets += [_stage(each, tables) for each in group if each not in slices]
    content = b"".join(field(1, packet) for packet in packets)
    return gzip.compress(content, 1) if form == "stages" else content


def _begin(event: dict[str, Any], tables: _Tables, form: str) -> bytes:
    slice_ = (
        field(9, 1) + field(11, tables.tracks[event["pid"], event["tid"]]) + field(10, tables.names[event["name"]])
    )
    if form == "stages":
        slice_ += field(3, tables.categories[event["cat"]])
    slice_ += b"".join(_annotation(4, value, key) for key, value in event["args"].items())
    return field(8, _ns(event)[0]) + field(10, 1) + field(13, 2) + field(11, slice_)


def _stage(event: dict[str, Any], tables: _Tables) -> bytes:
    args = dict(event["args"])
    start, end = _ns(event)
    stage = field(1, args.pop("correlation")) + field(2, end - start) + field(11, args.pop("device"))
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
