"""Counters of rocprofv3 beside a trace of PyTorch: found in its folder, joined, and read anew when they change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.model.work.operator_events import kernel, launch, operator
from tests.support.traces import document
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

RELU = "void relu<float, 4>(float*)"
TRACE = document(
    [
        operator("lib::own", 0, 9, dims=[[10]], types=["float"]),
        launch(1, 1),
        kernel(RELU, 20, 5, 1),
        operator("lib::own", 30, 9, dims=[[10]], types=["float"]),
        launch(31, 2),
        kernel(RELU, 40, 5, 2),
    ]
)


def table(fetched: float, written: float = 1, name: str = RELU) -> str:
    lines = ['"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"']
    for dispatch in (1, 2):
        lines.append(f'{dispatch},"{name}","FETCH_SIZE",{fetched}')
        lines.append(f'{dispatch},"{name}","WRITE_SIZE",{written}')
    return "\n".join(lines)


def folder(path: Path, **files: str) -> Path:
    (path / "run").mkdir()
    (path / "run/host.1.pt.trace.json").write_bytes(TRACE)
    for name, text in files.items():
        (path / "run" / f"{name}_counter_collection.csv").write_text(text)
    return path


def answer(session: Session, view: str = "roofline") -> dict[str, Any]:
    payload = session.view(view, "run", wait=True).payload
    assert payload is not None
    answered: dict[str, Any] = json.loads(payload)
    return answered


def notes(session: Session) -> list[str]:
    return [note["message"] for note in answer(session, "overview")["health"]]


def test_counters_in_the_folder_of_a_trace_are_its_own(tmp_path: Path) -> None:
    with Session([Root(str(folder(tmp_path, x=table(3))))], Settings()) as session:
        assert [len(run.workers) for run in session.scan().runs] == [1]
        assert session.catalog.others == ()
        (row,) = answer(session)["rows"]
        assert (row["name"], row["bytes"], row["measured"]) == ("lib::own", 2 * 4 * 1024, True)
        counters = answer(session)["counters"]
        assert counters["source"].startswith("Counters of rocprofv3 in files beside the trace")
        assert [(each["operator"], each["calls"], each["bytes"]) for each in counters["rows"]] == [
            ("lib::own", 2, 8192)
        ]
        assert any("joined with its kernels by their order" in note for note in notes(session))


def test_counters_that_change_make_all_figures_anew(tmp_path: Path) -> None:
    path = folder(tmp_path, x=table(3)) / "run/x_counter_collection.csv"
    with Session([Root(str(tmp_path))], Settings()) as session:
        session.scan()
        assert answer(session)["rows"][0]["bytes"] == 8192
        path.write_text(table(300))
        session.scan()
        assert answer(session)["rows"][0]["bytes"] == 2 * 301 * 1024
        os.remove(path)
        session.scan()
        assert answer(session)["counters"] is None
        assert answer(session)["rows"][0]["measured"] is False


def test_an_unusable_counter_file_costs_a_note_only(tmp_path: Path) -> None:
    root = folder(tmp_path, broken="no table", other=table(3, name="softmax"))
    with Session([Root(str(root))], Settings()) as session:
        session.scan()
        assert answer(session)["counters"] is None
        messages = notes(session)
        assert any(
            note.startswith("skipped a counter file next to the trace: the file is not a counter table")
            for note in messages
        )
        assert any("they are of other kernels" in note for note in messages)


def test_counters_without_a_trace_are_named_with_what_to_do(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/x_counter_collection.csv").write_text(table(3))
    with Session([Root(str(tmp_path))], Settings()) as session:
        catalog = session.scan()
    assert [run.name for run in catalog.runs] == ["run"]
    (others,) = catalog.others
    assert others.kind == "counters of rocprofv3 without their trace"
