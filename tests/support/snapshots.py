"""Memory snapshots as PyTorch writes them, small: two devices, a history with an out-of-memory error."""

from __future__ import annotations

from typing import Any


def frame(name: str, line: int, file: str = "train.py") -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


LINEAR = [frame("forward", 12, "model.py"), frame("<module>", 3)]
LOSS = [frame("loss", 40), frame("<module>", 4)]


def block(size: int, state: str, frames: list[Any], requested: int | None = None) -> dict[str, Any]:
    request = {} if requested is None else {"requested_size": requested}
    return {"address": 1, "size": size, "state": state, "frames": frames, **request}


def entry(action: str, size: int, time: int, frames: list[Any], **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": 8192, "size": size, "stream": 0, "time_us": time, "frames": frames, **more}


def snapshot() -> dict[str, Any]:
    """Return a snapshot. Device 0: 4096 reserved, 1024 + 512 in use, 256 awaiting. Device 1: one free segment."""
    first = [
        block(1024, "active_allocated", LINEAR, 1000),
        block(256, "active_awaiting_free", LOSS, 256),
        block(768, "inactive", []),
    ]
    second = [block(512, "active_allocated", LOSS, 500), block(1536, "inactive", [])]
    pool = {"stream": 0, "segment_pool_id": (0, 0)}
    segments = [
        {"device": 0, "address": 2**63 + 4096, "total_size": 2048, "segment_type": "small",
         "blocks": first, **pool},
        {"device": 0, "address": 8192, "total_size": 2048, "segment_type": "large", "blocks": second, **pool},
        {"device": 1, "address": 0, "total_size": 64, "segment_type": "small",
         "blocks": [block(64, "inactive", [])], **pool},
    ]  # fmt: skip
    history = [
        entry("segment_alloc", 2048, 10, LINEAR),
        entry("alloc", 1000, 11, LINEAR, addr=2**63 + 4096),
        entry("segment_alloc", 2048, 12, LOSS),
        entry("alloc", 2000, 13, LOSS),
        entry("oom", 10**9, 14, LOSS, device_free=77),
        entry("free_requested", 2000, 15, LOSS),
        entry("free_completed", 2000, 16, LOSS),
        entry("alloc", 500, 17, LOSS),
        entry("snapshot", 0, 18, []),
    ]
    return {
        "segments": segments,
        "device_traces": [history, []],
        "allocator_settings": {"gc": 0.5, "roundup": None},
    }
