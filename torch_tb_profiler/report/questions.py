"""What the page asks of the parts of its views: what it draws at once, and what one click opens.

The parameters are those that the page sends, word for word: an answer is found by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Payload = Mapping[str, Any]

ROWS = 20
"""Rows of a table whose details a report holds."""


class Part(NamedTuple):
    """A part of a view, or the view itself, with parameters."""

    slug: str
    params: Mapping[str, str]


def at_once(slug: str, payload: Payload) -> Iterable[Part]:
    """What is drawn with a tab as it opens."""
    return _AT_ONCE[slug](payload) if slug in _AT_ONCE else ()


def one_click(slug: str, payload: Payload) -> Iterable[Part]:
    """Other groupings of a tab, and the details of its first rows."""
    return _ONE_CLICK[slug](payload) if slug in _ONE_CLICK else ()


def _overview(payload: Payload) -> Iterable[Part]:
    yield Part("overview/preview", {})
    yield Part("overview/ranks", {})


def _idle(payload: Payload) -> Iterable[Part]:
    for part in ("flame", "launches", "queue", "bandwidth", "sequences"):
        yield Part(f"idle/{part}", {})
    if payload["exposed_communication_ns"] > 0:
        yield Part("idle/ranks", {})


def _memory(payload: Payload) -> Iterable[Part]:
    for device in payload["devices"][:1]:
        yield from _memory_of(device["name"])


def _memory_of(device: str) -> Iterable[Part]:
    yield Part("memory/curve", {"device": device, "points": "1200"})
    yield Part("memory/live", {"device": device, "group_by": "operator", "limit": "400"})
    page = {"first": "0", "limit": "100"}
    yield Part("memory/events", {"device": device, "sort": "size", "descending": "true", **page})


def _other_memory(payload: Payload) -> Iterable[Part]:
    for device in payload["devices"]:
        yield from _memory_of(device["name"])
        for group in ("module", "stack", "size"):
            yield Part("memory/live", {"device": device["name"], "group_by": group, "limit": "400"})
        yield Part("memory/operators", {"device": device["name"]})


def _operators(payload: Payload) -> Iterable[Part]:
    for time in ("device", "host"):
        for row in _most(payload["rows"], f"{time}_self_ns"):
            asked = {"event": str(row["event"]), "time": time}
            yield Part("operators/instances", asked)
            yield Part("operators/stacks", asked)
    for group in ("shape", "module", "annotation"):
        yield Part("operators", {"group_by": group})


def _kernels(payload: Payload) -> Iterable[Part]:
    for row in _most(payload["rows"], "total_ns"):
        yield Part("kernels/instances", {"event": str(row["event"])})
    yield Part("kernels", {"group_by": "launch"})


def _roofline(payload: Payload) -> Iterable[Part]:
    for group in ("shape", "kernel", "module"):
        yield Part("roofline", {"group_by": group})


def _causes(payload: Payload) -> Iterable[Part]:
    for cause in payload["sums"]:
        yield Part("idle/gaps", {"cause": cause["cause"], "limit": "50"})
    for row in payload["causes"][:ROWS]:
        if row["subject"] is not None:
            yield Part("idle/gaps", {"cause": row["cause"], "subject": row["subject"], "limit": "50"})
    for by in ("emptied_by", "operator", "module", "frame"):
        yield Part("idle", {"by": by})


def _modules(payload: Payload) -> Iterable[Part]:
    return _of_modules("modules", payload)


def _lightning(payload: Payload) -> Iterable[Part]:
    return _of_modules("lightning", payload)


def _of_modules(tab: str, payload: Payload) -> Iterable[Part]:
    for time in ("device", "host") if payload["has_device"] else ("host",):
        yield Part(f"{tab}/flame", {"time": time})
    level = payload["rows"]
    while level and len(level) <= ROWS:
        for row in level:
            yield Part(f"{tab}/instances", {"place": str(row["place"]), "limit": "50"})
        level = [child for row in level for child in row["children"]]


def _targets(payload: Payload) -> Iterable[Part]:
    for target in payload["targets"][:ROWS]:
        if target["step_ns"] is None:
            yield Part("critical_path/what_if", {"target": target["target"]})
    for by in ("operator", "module", "line"):
        yield Part("critical_path/groups", {"by": by})


_PAGE = {"first": "0", "limit": "100"}


def _large_job(payload: Payload) -> Iterable[Part]:
    """Of a job whose ranks are answered page by page: the map, the rank that is named, the first table."""
    if len(payload["ranks"]) < payload["rank_count"]:
        worker = payload["verdict"]["worker"]
        yield Part("distributed/ranks", {"search": worker or "", "limit": "1"})
        yield _map("late", worker)
        yield Part("distributed/operations", _PAGE)


def _map(show: str, worker: str | None) -> Part:
    return Part("distributed/map", {"show": show, "by": "rank", **({"mark": worker} if worker else {})})


def _collectives(payload: Payload) -> Iterable[Part]:
    if len(payload["ranks"]) < payload["rank_count"]:
        for show in ("computation", "exposed", "other"):
            yield _map(show, payload["verdict"]["worker"])
        for table in ("ranks", "groups", "families"):
            yield Part(f"distributed/{table}", _PAGE)
    yield Part("distributed/collectives", {"sort": "start", "descending": "false", **_PAGE})
    yield Part("distributed/collectives", {"sort": "skew", "descending": "true", **_PAGE})


def _parts(payload: Payload) -> Iterable[Part]:
    for part in payload["level"]["parts"][:ROWS]:
        if part["parts"]:
            yield Part("diff/part", {"path": part["path"]})


def _most(rows: list[dict[str, Any]], time: str) -> list[dict[str, Any]]:
    """The rows with most of a time."""
    return sorted((row for row in rows if row[time]), key=lambda row: -row[time])[:ROWS]


_Asks = dict[str, Callable[[Payload], Iterable[Part]]]

_AT_ONCE: _Asks = {"overview": _overview, "idle": _idle, "memory": _memory, "distributed": _large_job}

_ONE_CLICK: _Asks = {
    "operators": _operators,
    "kernels": _kernels,
    "roofline": _roofline,
    "idle": _causes,
    "critical_path": _targets,
    "modules": _modules,
    "lightning": _lightning,
    "distributed": _collectives,
    "memory": _other_memory,
    "diff": _parts,
}
