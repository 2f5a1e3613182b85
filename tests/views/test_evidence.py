"""Each number or name that opens something opens what it speaks of: every link of every view of the samples."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from torch_tb_profiler.base.errors import NotFoundError, UndecidedError
from torch_tb_profiler.base.format import format_bytes, format_duration
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Session, open_session
from torch_tb_profiler.views import SLUGS

Rows = list[dict[str, Any]]

_DURATION = re.compile(r"[\d.,]+ (?:ns|µs|ms|s)")
_SIZE = re.compile(r"[\d.,]+ [KMGT]?i?B")
_KNOWN = {
    "critical_path": {"path"},
    "diff": {"only", "part", "q", "table"},
    "distributed": {"collective", "q", "table"},
    "kernels": {"operator", "select"},
    "lightning": {"q", "show"},
    "memory": {"at", "device", "q", "state"},
    "modules": {"group_by", "place"},
    "operators": {"select"},
    "roofline": {"select"},
    "trace": {"area", "at", "event", "moment", "path", "python", "worker"},
}
"""What links may say of a tab."""


@pytest.fixture(scope="module")
def session(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    settings = Settings(executor="serial", cache_dir=str(tmp_path_factory.mktemp("cache")))
    with open_session(str(samples), settings) as session:
        yield session


class FirstWorker:
    """The first worker of a run, asked as the page asks."""

    def __init__(self, session: Session, run: str, worker: str) -> None:
        self._session, self._run, self.worker = session, run, worker

    def ask(self, slug: str, **params: str) -> dict[str, Any]:
        answer = self._session.view(slug, self._run, self.worker, params=params, wait=True)
        assert answer.payload is not None, (slug, params, answer.state)
        payload: dict[str, Any] = json.loads(answer.payload)
        return payload

    def links(self) -> Iterator[tuple[str, str, str]]:
        """Yield (view, words, what they open)."""
        for slug in SLUGS:
            try:
                payload = self.ask(slug)
            except (NotFoundError, UndecidedError):
                continue  # which the page says instead
            yield from ((slug, *found) for found in _phrases(payload))


def _phrases(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if isinstance(value.get("link"), str):
            yield value.get("text", ""), value["link"]
        for part in value.values():
            yield from _phrases(part)
    elif isinstance(value, list):
        for part in value:
            yield from _phrases(part)


def _tree(rows: Rows) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        yield from _tree(row["children"])


def compared_numbers(recording: FirstWorker, words: str, tab: str, state: Mapping[str, str]) -> str | None:
    """Return what the words are compared with, None for nothing. AssertionError if it is something else."""
    if tab == "trace" and "event" in state:
        event = recording.ask("trace/event", event=state["event"])
        if _DURATION.fullmatch(words):
            # A time per step opens the longest of the calls that it is the mean of.
            assert words == format_duration(event["duration_ns"]) or _as_ns(words) < event["duration_ns"]
            return "duration of a slice"
        return "slice"
    if tab == "trace" and "area" in state and words.endswith(" slices"):
        begin, end = state["area"].split("-")
        python = {name: value for name, value in state.items() if name == "python"}
        slices = recording.ask("trace/selection", begin=begin, end=end, **python)["slices"]
        assert words == f"{slices:,} slices"
        return "slices of a window"
    if tab == "trace" and "at" in state and _DURATION.fullmatch(words):
        first, last = map(int, state["at"].split("-"))
        assert _as_ns(words) <= last - first
        return "stretch"
    if tab == "memory" and "at" in state and _SIZE.fullmatch(words):
        live = recording.ask("memory/live", at=state["at"], device=state["device"])
        used, held = live["allocated_bytes"], live["reserved_bytes"]
        assert words in (format_bytes(used), format_bytes(held - used))
        return "memory at an instant"
    if "select" in state:
        assert any(row["name"] == state["select"] for row in recording.ask(tab)["rows"])
        return "row"
    if tab == "kernels" and "operator" in state:
        assert recording.ask(tab, operator=state["operator"])["rows"]
        return "kernels of an operator"
    if tab == "modules" and "place" in state:
        assert int(state["place"]) in [row["place"] for row in _tree(recording.ask(tab)["rows"])]
        return "module"
    if tab == "distributed" and "collective" in state:
        answer = recording.ask("distributed/collective", collective=state["collective"])
        assert answer["participants"]
        return "collective"
    return None


def _as_ns(words: str) -> float:
    value, unit = words.split()
    return float(value.replace(",", "")) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


@pytest.mark.slow
def test_every_link_of_the_samples_opens_what_it_speaks_of(session: Session) -> None:
    held: Counter[str | None] = Counter()
    wrong = []
    for run in session.catalog.runs:
        if not run.workers:
            continue  # flight recorders alone
        recording = FirstWorker(session, run.name, run.workers[0].name)
        for view, words, link in recording.links():
            tab, _, query = link.partition("?")
            state = dict(parse_qsl(query))
            assert tab in SLUGS and state.keys() <= _KNOWN.get(tab, set()) | {"late", "sort"}, link
            try:
                held[compared_numbers(recording, words, tab, state)] += 1
            except AssertionError as error:
                wrong.append(f"{run.name} {view}: {words!r} opens {link}: {error}")
    assert wrong == []
    kinds = {
        "duration of a slice",
        "slice",
        "slices of a window",
        "stretch",
        "memory at an instant",
        "row",
        "kernels of an operator",
        "module",
    }
    assert kinds <= held.keys(), held
