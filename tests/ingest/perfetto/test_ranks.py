"""A job of several ranks as PyTorch's `.pftrace`: each answer about it is that of the JSON of the same events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import CULPRIT, Job, ddp
from tests.support.producers.pytorch_pftrace import BOOTED, DEVICE, Form, pytorch_pftrace
from tests.support.traces import document
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

RANKS = 3
JOB = Job(RANKS, ddp(RANKS), straggler=1)


def with_categories(content: bytes) -> list[dict[str, Any]]:
    """Return a rank's events with PyTorch's categories: in its first files nothing else says what an event is."""
    events = json.loads(content)["traceEvents"]
    more: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "cpu_op": lambda each: {"Input Dims": []},
        "cuda_runtime": lambda each: {"cbid": 211},
        "kernel": lambda each: {"stream": each["tid"]},
    }
    return [
        {**each, "args": {**(more[each["cat"]](each) if each["cat"] in more else {}), **each["args"]}}
        for each in events
    ]


EVENTS = {rank: with_categories(content) for rank, content in JOB.documents().items()}
PARTS = (
    "distributed",
    "distributed/ranks",
    "distributed/steps",
    "distributed/operations",
    "distributed/collectives",
)


def groups(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the events grouped as PyTorch writes them: of the host, calls of the runtime, work of the device."""
    calls = [each for each in events if each["cat"] == "cuda_runtime"]
    device = [each for each in events if each["cat"] in DEVICE]
    return [[each for each in events if each["cat"] not in ("cuda_runtime", *DEVICE)], calls, device]


def answers(folder: Path) -> dict[str, Any]:
    """Return each part of the answer about the job, without what names the clock and the files."""
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        found: dict[str, Any] = {}
        for part in PARTS:
            payload = session.view(part, worker="rank0", wait=True).payload
            assert payload is not None, part
            found[part] = json.loads(payload)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[str, Any]]:
    """Return the answer for JSON that has the time of day, and for JSON that doesn't."""
    found = {}
    for reported in (False, True):
        folder = tmp_path_factory.mktemp("json")
        clock = {"baseTimeNanoseconds": BOOTED} if reported else {}
        for rank, events in EVENTS.items():
            (folder / f"rank{rank}.pt.trace.json").write_bytes(document(events, **clock))
        found[reported] = answers(folder)
    return found


@pytest.mark.parametrize("form", ["slices", "stages", "submitted"])
def test_the_job_equals_that_of_the_json(tmp_path: Path, form: Form, expected: dict[bool, dict[str, Any]]) -> None:
    for rank, events in EVENTS.items():
        (tmp_path / f"rank{rank}.pftrace").write_bytes(pytorch_pftrace(groups(events), form))
    assert answers(tmp_path) == expected[form == "submitted"]


def test_the_job_has_stragglers_and_waiting(expected: dict[bool, dict[str, Any]]) -> None:
    for job in expected.values():
        assert CULPRIT in json.dumps(job["distributed"])
        assert [rank["rank"] for rank in job["distributed"]["ranks"]] == list(range(RANKS))
        assert all(job[part]["rows"] for part in PARTS[1:])
