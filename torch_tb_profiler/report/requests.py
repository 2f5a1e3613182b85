"""The parts of views that the page requests: those it draws at first, and those one click away.

The parameters must equal those that the page sends, as it looks up an answer by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Payload = Mapping[str, Any]

MAX_ROWS = 20
"""Rows of a table whose details a report holds."""

# Limits that the page sends.
_CURVE_POINTS = "1200"
_LIVE_GROUPS = "400"
_LISTED_EVENTS = "50"
_PAGE_ROWS = "100"
_PAGE = {"first": "0", "limit": _PAGE_ROWS}


class PartRequest(NamedTuple):
    """A request for a view or a part of one, with its parameters."""

    slug: str
    params: Mapping[str, str]


def initial_parts(slug: str, payload: Payload) -> Iterable[PartRequest]:
    """Yield the parts that a tab draws as it opens."""
    return _INITIAL[slug](payload) if slug in _INITIAL else ()


def one_click_parts(slug: str, payload: Payload) -> Iterable[PartRequest]:
    """Yield the other groupings of a tab, and the details of its first rows."""
    return _ONE_CLICK[slug](payload) if slug in _ONE_CLICK else ()


def memory_file_part(file: int, kind: str) -> PartRequest:
    """Return what the page requests first of a memory file, `file` of its run."""
    return PartRequest(
        f"memory/{kind}", {"file": str(file), **({"points": _CURVE_POINTS} if kind == "timeline" else {})}
    )


def snapshot_parts(file: int, payload: Payload) -> Iterable[PartRequest]:
    """Yield what the page shows of a memory snapshot, `file` of its run: its segments, and its moments."""
    shown = {"file": str(file), "device": str(payload["device"])}
    yield PartRequest("memory/map", shown)
    moments = [payload["peak_entry"], None]
    moments += [peak["entry"] for peak in (payload["step_peak"], payload["outside_peak"]) if peak is not None]
    moments += [failure["entry"] for failure in payload["out_of_memory"][-1:]]
    for entry in dict.fromkeys(moments):
        at = {} if entry is None else {"entry": str(entry)}
        yield PartRequest("memory/instant", {**shown, "limit": _PAGE_ROWS, **at})


def _overview(payload: Payload) -> Iterable[PartRequest]:
    yield PartRequest("overview/preview", {})
    yield PartRequest("overview/ranks", {})


def _request_idle(payload: Payload) -> Iterable[PartRequest]:
    for part in ("flame", "launches", "queue", "bandwidth", "sequences"):
        yield PartRequest(f"idle/{part}", {})
    if payload["exposed_communication_ns"] > 0:
        yield PartRequest("idle/ranks", {})


def _critical_path(payload: Payload) -> Iterable[PartRequest]:
    if any(category["name"] == "communication" for category in payload["path"]["categories"]):
        yield PartRequest("critical_path/beside", {})
    yield PartRequest("critical_path/ranks", {})


def _serving(payload: Payload) -> Iterable[PartRequest]:
    yield PartRequest("serving/origins", {})
    yield PartRequest("serving/ranks", {})


def _memory(payload: Payload) -> Iterable[PartRequest]:
    for device in payload["devices"][:1]:
        yield from _device_memory(device["name"])


def _device_memory(device: str) -> Iterable[PartRequest]:
    yield PartRequest("memory/curve", {"device": device, "points": _CURVE_POINTS})
    yield PartRequest("memory/live", {"device": device, "group_by": "operator", "limit": _LIVE_GROUPS})
    yield PartRequest("memory/events", {"device": device, "sort": "size", "descending": "true", **_PAGE})


def _request_other_memory(payload: Payload) -> Iterable[PartRequest]:
    for device in payload["devices"]:
        yield from _device_memory(device["name"])
        for group in ("module", "stack", "size"):
            yield PartRequest("memory/live", {"device": device["name"], "group_by": group, "limit": _LIVE_GROUPS})
        yield PartRequest("memory/operators", {"device": device["name"]})


def _request_operators(payload: Payload) -> Iterable[PartRequest]:
    for time in ("device", "host"):
        for row in _top_rows(payload["rows"], f"{time}_self_ns"):
            params = {"event": str(row["event"]), "time": time}
            yield PartRequest("operators/instances", params)
            yield PartRequest("operators/stacks", params)
    for group in ("shape", "module", "annotation"):
        yield PartRequest("operators", {"group_by": group})


def _request_kernels(payload: Payload) -> Iterable[PartRequest]:
    for row in _top_rows(payload["rows"], "total_ns"):
        yield PartRequest("kernels/instances", {"event": str(row["event"])})
        if row["origin_places"] > 1:
            yield PartRequest("kernels/origins", {"event": str(row["event"])})
    yield PartRequest("kernels", {"group_by": "launch"})


def _roofline(payload: Payload) -> Iterable[PartRequest]:
    for group in ("shape", "kernel", "module"):
        yield PartRequest("roofline", {"group_by": group})


def _request_causes(payload: Payload) -> Iterable[PartRequest]:
    for cause in payload["sums"]:
        yield PartRequest("idle/gaps", {"cause": cause["cause"], "limit": _LISTED_EVENTS})
    for row in payload["causes"][:MAX_ROWS]:
        if row["subject"] is not None:
            yield PartRequest(
                "idle/gaps", {"cause": row["cause"], "subject": row["subject"], "limit": _LISTED_EVENTS}
            )
    for by in ("emptied_by", "operator", "module", "frame"):
        yield PartRequest("idle", {"by": by})


def _modules(payload: Payload) -> Iterable[PartRequest]:
    return _request_module_parts("modules", payload)


def _lightning(payload: Payload) -> Iterable[PartRequest]:
    return _request_module_parts("lightning", payload)


def _request_module_parts(tab: str, payload: Payload) -> Iterable[PartRequest]:
    for time in ("device", "host") if payload["has_device"] else ("host",):
        yield PartRequest(f"{tab}/flame", {"time": time})
    level = payload["rows"]
    while level and len(level) <= MAX_ROWS:
        for row in level:
            yield PartRequest(f"{tab}/instances", {"place": str(row["place"]), "limit": _LISTED_EVENTS})
        level = [child for row in level for child in row["children"]]


def _request_targets(payload: Payload) -> Iterable[PartRequest]:
    for target in payload["targets"][:MAX_ROWS]:
        if target["step_ns"] is None:
            yield PartRequest("critical_path/what_if", {"target": target["target"]})
    for by in ("operator", "module", "line"):
        yield PartRequest("critical_path/groups", {"by": by})


def _request_large_job(payload: Payload) -> Iterable[PartRequest]:
    """Yield the map, the straggler and the first table of a job whose ranks come page by page."""
    if len(payload["ranks"]) < payload["rank_count"]:
        worker = payload["verdict"]["worker"]
        yield PartRequest("distributed/ranks", {"search": worker or "", "limit": "1"})
        yield _rank_map("late", worker)
        yield PartRequest("distributed/operations", _PAGE)


def _rank_map(show: str, worker: str | None) -> PartRequest:
    return PartRequest("distributed/map", {"show": show, "by": "rank", **({"mark": worker} if worker else {})})


def _request_collectives(payload: Payload) -> Iterable[PartRequest]:
    if len(payload["ranks"]) < payload["rank_count"]:
        for show in ("computation", "exposed", "other"):
            yield _rank_map(show, payload["verdict"]["worker"])
        for table in ("ranks", "groups", "families"):
            yield PartRequest(f"distributed/{table}", _PAGE)
    yield PartRequest("distributed/collectives", {"sort": "start", "descending": "false", **_PAGE})
    yield PartRequest("distributed/collectives", {"sort": "skew", "descending": "true", **_PAGE})


def _parts(payload: Payload) -> Iterable[PartRequest]:
    for part in payload["level"]["parts"][:MAX_ROWS]:
        if part["parts"]:
            yield PartRequest("diff/part", {"path": part["path"]})


def _top_rows(rows: list[dict[str, Any]], time: str) -> list[dict[str, Any]]:
    """Return the `MAX_ROWS` rows with the most of a time."""
    return sorted((row for row in rows if row[time]), key=lambda row: -row[time])[:MAX_ROWS]


_Requests = dict[str, Callable[[Payload], Iterable[PartRequest]]]

_INITIAL: _Requests = {
    "overview": _overview,
    "idle": _request_idle,
    "critical_path": _critical_path,
    "memory": _memory,
    "serving": _serving,
    "distributed": _request_large_job,
}

_ONE_CLICK: _Requests = {
    "operators": _request_operators,
    "kernels": _request_kernels,
    "roofline": _roofline,
    "idle": _request_causes,
    "critical_path": _request_targets,
    "modules": _modules,
    "lightning": _lightning,
    "distributed": _request_collectives,
    "memory": _request_other_memory,
    "diff": _parts,
}
