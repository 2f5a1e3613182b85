"""Samples of each tool beside a run: each file is a separate run of counters, never a rank of that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.gpu_metrics import test_amd_smi as amd
from tests.ingest.gpu_metrics import test_dcgm as dcgm
from tests.ingest.gpu_metrics import test_nvidia_smi as nvidia
from tests.support.traces import document, event
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

FILES = {
    "query.csv": ([nvidia.HEADER, *nvidia.LINES], nvidia.EXPECTED),
    "dmon.csv": (nvidia.MONITOR, nvidia.MONITOR_EXPECTED),
    "amd.csv": ([amd.HEADER, *amd.LINES], amd.EXPECTED),
    "gpus.prom": (dcgm.LINES, dcgm.EXPECTED),
}
WITHOUT_TIMES = {
    "entities.csv": "#Entity   GPUTL  POWER\n",
    "use.json": '{"card0": {"GPU use (%)": "0"}}',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "w.1.pt.trace.json").write_bytes(document([event("gpu0 kernel gemm 10 20 stream=1")]))
    for name, (lines, _) in FILES.items():
        (run / name).write_text("\n".join(lines), encoding="utf-8")
    for name, text in WITHOUT_TIMES.items():
        (run / name).write_text(text)
    return tmp_path


def test_each_file_is_a_separate_run(folder: Path) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
    runs = {run.name: [worker.name for worker in run.workers] for run in catalog.runs}
    assert runs == {"run": ["w"], **{f"run/{name}": [name.partition(".")[0]] for name in FILES}}
    assert catalog.others_headline == "2 files of other tools"
    assert {file.path: each.advice.split(":")[0] for each in catalog.others for file in each.files} == {
        "run/entities.csv": "record with times",
        "run/use.json": "record with times, as a table",
    }


@pytest.mark.parametrize("name", FILES)
def test_the_timeline_has_the_counters_of_the_file(folder: Path, name: str) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        answer = session.view("trace", run=f"run/{name}", wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    tracks: list[dict[str, Any]] = json.loads(answer.payload)["tracks"]
    actual = {
        each["name"]: (each["samples"], each["low"], each["high"]) for each in tracks if each["kind"] == "counter"
    }
    expected = {series: [value for _, value in samples] for series, samples in FILES[name][1].items()}
    assert actual == {series: (len(values), min(values), max(values)) for series, values in expected.items()}
