"""An answer as tables: each view has one, typed as declared, with the numbers of its payload."""

from __future__ import annotations

import inspect
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler as ttp
from tests.support.dumps import hung_job
from tests.support.page import MEMORY_TIMELINE
from tests.support.producers.aorta import iteration, line, write
from tests.support.serving import Workload, serving_document
from tests.support.snapshots import snapshot
from torch_tb_profiler.base.errors import MissingExtraError, NotFoundError
from torch_tb_profiler.session import open_session
from torch_tb_profiler.views import all_views

REQUIRED = {
    "begin": 0,
    "end": 10**8,
    "codes": "1,2",
    "device": 0,
    "at": 10**6,
    "query": "a",
    "target": "host",
    "place": 0,
    "cause": "sync",
    "collective": 0,
}
FIRST = {
    "overview": "steps",
    "overview/ranks": "steps",
    "trace": "tracks",
    "idle": "causes",
    "idle/ranks": "causes",
    "critical_path": "targets",
    "critical_path/beside": "targets",
    "distributed": "ranks",
    "diff": "level.operators",
    "diff/part": "operators",
    "memory/snapshot": "stacks",
    "memory/instant": "sites",
    "memory/map": "segments",
    "memory/compare": "sites",
    "memory/fit": "categories",
    "memory/timeline": "columns",
    "trace/tile": "columns",
    "operators/instances": "longest",
    "modules": "rows",
}


@pytest.fixture(scope="module")
def log(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> ttp.Log:
    folder = tmp_path_factory.mktemp("samples")
    for run in ("simulated_8_h100_late_rank", "lightning"):
        (folder / run).mkdir()
        for file in sorted((samples / run).iterdir())[:2]:
            (folder / run / file.name).write_bytes(file.read_bytes())
    for rank in (0, 1):
        write(folder / "iterations", rank, [line(step, iteration(rank), 500, rank=rank) for step in range(2)])
    (folder / "serving").mkdir()
    (folder / "serving" / "w.pt.trace.json").write_bytes(serving_document(Workload()))
    hung_job().write(folder / "hang")
    (folder / "lightning" / "oom.pickle").write_bytes(pickle.dumps(snapshot()))
    (folder / "snapshots").mkdir()
    for rank in (0, 1):
        (folder / "snapshots" / f"rank{rank}_snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    (folder / "lightning" / "w.raw.json").write_text(json.dumps(MEMORY_TIMELINE), encoding="utf-8")
    return ttp.open(str(folder), ttp.Settings(cache_dir=str(tmp_path_factory.mktemp("cache"))))


def ask(log: ttp.Log, slug: str) -> ttp.Result[Any]:
    of_files = ("lightning", "memory/snapshot", "memory/instant", "memory/map", "memory/timeline")
    named = "serving" if slug.startswith("serving") else "simulated_8_h100_late_rank"
    run = log["lightning" if slug.startswith(of_files) else named]
    run = log["iterations"] if slug.startswith("overlap") else run
    run = log["hang"] if slug == "hangs" else run
    pairs = ("memory/compare", "memory/fit")
    run = log["snapshots"] if slug in pairs else run
    method: Any = run
    for part in slug.split("/"):
        method = getattr(method, part)
    given: dict[str, Any] = {"file": 1} if slug == "memory/timeline" else {}
    given |= {"base_run": "iterations", "base_worker": "rank1"} if slug == "overlap/compare" else {}
    given |= {"base_run": "snapshots", "base_worker": "rank1"} if slug in pairs else {}
    given |= {"base_run": "lightning"} if slug.startswith("diff") else {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            rows = run.kernels() if slug.startswith("kernels") else run.operators()
            given[name] = rows.to_dict()["rows"][0]["event"] if name == "event" else REQUIRED[name]
    result: ttp.Result[Any] = method(**given)
    return result


@pytest.mark.parametrize("slug", [view.slug for view in all_views()])
def test_every_view_is_typed_and_has_a_table(log: ttp.Log, slug: str) -> None:
    result = ask(log, slug)
    view = next(view for view in all_views() if view.slug == slug)
    assert type(result.data) is view.payload
    first = result.tables[0]
    assert first == FIRST.get(slug, first)
    for name in result.tables:
        result.to_arrow(name).validate(full=True)
    assert result.to_arrow().num_columns
    assert first in result._repr_html_() or not result.to_arrow().num_rows
    payload: Any = result.to_dict()
    for part in first.split("."):
        payload = payload.get(part, []) if isinstance(payload, dict) else payload
    if payload and isinstance(payload, list) and "children" not in payload[0]:
        assert result.to_arrow().num_rows == len(payload)


def test_the_numbers_are_those_of_the_payload(log: ttp.Log) -> None:
    run = "simulated_8_h100_late_rank"
    result = log[run].operators(group_by="module")
    with open_session(log.path) as session:
        answer = session.view("operators", run, params={"group_by": "module"}, wait=True)
    assert answer.payload is not None and result.to_dict() == json.loads(answer.payload)
    rows = result.to_dict()["rows"]
    table = result.to_arrow()
    for name in ("name", "calls", "host_self_ns", "device_total_ns", "tc_self_ratio"):
        assert table[name].to_pylist() == [row[name] for row in rows]
    frame = result.to_pandas()
    assert frame["host_self_ns"].sum() == result.data.totals.host_self_ns > 0
    assert list(frame["speed.reason"].dropna()) == [
        row["speed"]["reason"] for row in rows if row["speed"]["reason"] is not None
    ]


def test_a_tree_is_a_row_per_node_and_a_column_of_bytes_its_numbers(log: ttp.Log) -> None:
    modules = log["lightning"].modules().to_pandas()
    assert modules["depth"].max() > 0 and "children" not in modules
    tile = log["lightning"].trace.tile(begin=0, end=10**9)
    assert tile.to_arrow()["count"].type == "uint32"
    assert tile.to_arrow().num_rows * 4 == len(tile.data.start)
    categories = log["lightning"].memory.timeline(file=1).to_arrow()
    assert categories.column_names[:2] == ["time", "sizes.0"]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    content = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 9}]}'
    (tmp_path / "w.pt.trace.json").write_text(content)
    operators = ttp.open(str(tmp_path)).run().operators(phase="backward").to_arrow()
    assert operators.num_rows == 0
    assert operators.schema.field("device_self_ns").type == operators.schema.field("calls").type == "int64"
    assert operators.schema.field("tc_self_ratio").type == "double"


def test_words_and_unknown_tables(log: ttp.Log) -> None:
    result = log["lightning"].modules()
    assert result.text.startswith(result.to_dict()["headline"][0]["text"])
    assert repr(result).startswith("<Modules>")
    with pytest.raises(NotFoundError, match="no table 'nothing'") as failure:
        result.to_arrow("nothing")
    assert str(failure.value.hint).startswith("tables: rows, classes")


def test_pandas_is_asked_for_only_where_it_is_wanted(log: ttp.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    result = log["lightning"].operators()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert result.to_arrow().num_rows
    with pytest.raises(MissingExtraError, match="pandas is not installed"):
        result.to_pandas()


def test_the_diff_of_two_snapshots_is_their_comparison(log: ttp.Log) -> None:
    ranks: dict[str, Any] = {"worker": "rank1", "base_run": "snapshots", "base_worker": "rank0"}
    found = log["snapshots"].diff(**ranks)
    assert found.to_dict() == log["snapshots"].memory.compare(**ranks).to_dict()
    with pytest.raises(NotFoundError, match="records only the allocator"):
        log["snapshots"].diff(base_run="lightning")
