"""Causes planted in a loop that trains here and now, found in its traces; no clock but the traces' own."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.traces import read_bytes
from tests.support.views import words
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.intervals import Int64, Intervals, covered_time, merge, total
from torch_tb_profiler.base.markers import is_data_loading
from torch_tb_profiler.model.kinds import Kind, event_intervals, event_kinds, event_spans
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import open_session

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLANTED = {
    "slow_loader": "data_loading",
    "host_delay": "operator:tokenize",
    "small_operators": "operator:aten::add_",
    "lock": "wait",
    "copies": "operator:aten::copy_",
}
WAITS = re.compile(r"_thread\.lock|threading\.py\(\d+\): (?:wait|join)")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logdir = tmp_path_factory.mktemp("planted")
    script = [sys.executable, str(EXAMPLES / "plant_causes.py"), "--logdir", str(logdir)]
    done = subprocess.run(script, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("| `") == len(PLANTED)
    return logdir / "0"


def ask(logdir: Path, slug: str, run: str, **params: str) -> dict[str, Any]:
    with open_session(str(logdir)) as session:
        payload = session.view(slug, run=run, params=params, wait=True).payload
    return json.loads(payload or b"null")  # type: ignore[no-any-return]


def planted_ns(trace: Trace, target: str) -> float:
    """Return what the slices of a target take of a typical step, on the thread of the steps."""
    names = [trace.strings[code] for code in trace.events.name.tolist()]
    kind, spans = event_kinds(trace), steps(trace)
    main = next(row for row, name in enumerate(names) if name.startswith("ProfilerStep#"))

    def mine(row: int) -> bool:
        if target == "data_loading":
            return is_data_loading(names[row]) and kind[row] != Kind.PYTHON
        return names[row] == target.partition(":")[2] and kind[row] in (Kind.CPU_OP, Kind.ANNOTATION)

    of_thread = trace.events.thread == trace.events.thread[main]
    rows = [row for row in range(len(trace)) if of_thread[row] and (target == "wait" or mine(row))]
    if target == "wait":
        taken = waiting([names[row] for row in rows], *event_spans(trace, np.array(rows)))
    else:
        taken = event_intervals(trace, np.array(rows, np.int32))
    assert total(taken) > 0
    typical = step_kinds(trace).typical
    return float(covered_time(taken, spans.starts, spans.ends)[typical].sum()) / int(typical.sum())


def waiting(names: list[str], starts: Int64, ends: Int64) -> Intervals:
    """Return when the innermost slice is a wait of threading.Event or Thread.join, or their lock."""
    slices = sorted(zip(starts.tolist(), (-ends).tolist(), names, strict=True))
    waits: list[tuple[float, float, str]] = []
    open_slices, now = [(math.inf, "")], 0.0
    for start, negative_end, name in [*slices, (max(ends), 0, "")]:
        while open_slices[-1][0] <= start:
            waits.append((now, open_slices[-1][0], open_slices[-1][1]))
            now, _ = open_slices.pop()
        waits.append((now, start, open_slices[-1][1]))
        open_slices.append((-negative_end, name))
        now = start
    begins, until = np.array([each[:2] for each in waits if WAITS.search(each[2])]).astype(np.int64).T
    return merge(begins, until)


@pytest.mark.parametrize("name", PLANTED)
def test_the_saving_equals_the_planted_host_time(recorded: Path, name: str) -> None:
    trace = read_bytes(next((recorded / name).iterdir()).read_bytes())
    planted, answer = planted_ns(trace, PLANTED[name]), ask(recorded, "critical_path", name)
    row = ask(recorded, "critical_path/what_if", name, target=PLANTED[name])
    step = answer["path"]["duration_ns"]
    # A step of the host alone is as much shorter as what is gone.
    assert step - row["step_ns"][-1] == pytest.approx(planted, rel=0.02, abs=1_000)
    gains = {each["target"]: step - each["step_ns"][-1] for each in answer["targets"] if each["step_ns"]}
    assert gains[PLANTED[name]] == pytest.approx(planted, rel=0.02, abs=1_000)
    # Nothing that is not inside it can take more of a step than what takes over half of it.
    if planted > 0.55 * step:
        largest = max(gains, key=lambda target: gains[target] if target != "host" else 0)
        assert largest == PLANTED[name]


@pytest.mark.parametrize("name", PLANTED)
def test_a_cpu_only_trace_has_no_device_figures(recorded: Path, name: str) -> None:
    answer = ask(recorded, "critical_path", name)
    assert answer["explained"] is None
    assert "no device work is recorded" in words(answer["reasons"]["explained"])
    messages = "".join(phrase["text"] for phrase in (*answer["headline"], *answer["explanation"]))
    assert "Only the host was recorded" in messages
    assert not any(word in messages for word in ("The host bounds", "kernel", "GPU"))
    assert {category["group"] for category in answer["path"]["categories"]} == {"host"}
