"""Files of other tools are named on every surface, with what opens them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from werkzeug.test import Client

from tests.discovery.test_catalog import TRACE, put
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.http import App
from torch_tb_profiler.session import Root, Session

EVENT = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
XPROF = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [EVENT]}
AMD, NVIDIA = "GPU metrics without times (AMD)", "GPU metrics without times (NVIDIA)"
TABLE = "table of rocprof"
THREAD_TRACE = "thread trace of rocprofv3 (--att)"
FILES: dict[str, tuple[bytes, str]] = {
    "jax/plugins/profile/2024/host.xplane.pb": (b"\x0a\x01", "XProf profile of JAX or TensorFlow"),
    "jax/plugins/profile/2024/host.trace.json.gz": (
        json.dumps(XPROF).encode(),
        "XProf trace of JAX or TensorFlow",
    ),
    "viz/result.json": (json.dumps({"traceEvents": [{**EVENT, "cat": "FEE"}]}).encode(), "VizTracer trace"),
    "spy.json": (
        b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}',
        "speedscope profile (py-spy)",
    ),
    "a.nsys-rep": (b"?", "Nsight Systems report"),
    "gaudi/x.hltv": (b"?", "Gaudi hardware trace"),
    "gaudi/prof_config.json": (b"{}", "configuration of the Gaudi profiler"),
    "x.pftrace": (b"\x0a\x02\x08\x01", "Perfetto trace"),
    "smi.csv": (b"device,Temperature (Sensor edge) (C),GPU use (%)\n", AMD),
    "smi.json": (b'{"card0": {"GPU use (%)": "0"}}', AMD),
    "amd.csv": (b"gpu,gfx_activity,socket_power\n0,95,350\n", AMD),
    "amd.json": (b'[{"timestamp": 1772939616, "gpu": 0, "usage": {"gfx_activity": 3}}]', AMD),
    "no_time.csv": (b"index, utilization.gpu [%], power.draw [W]\n", NVIDIA),
    "dmon.csv": (b"#Entity   GPUTL  POWER\n", NVIDIA),
    "smi_dmon.csv": (b"# gpu    pwr  gtemp  mtemp\n# Idx      W      C      C\n", NVIDIA),
    "smi_time.csv": (b"#Time        gpu    pwr  gtemp  mtemp\n", NVIDIA),
    "dcgm.prom": (b"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n", NVIDIA),
    "npu/operator_memory.csv": (b"Name,Size(KB)\n", "table of Ascend's profiler"),
    "rocm/7_memory_allocation_trace.csv": (
        b'"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"\n',
        TABLE,
    ),
    "rocm/7_agent_info.csv": (b'"Node_Id","Logical_Node_Id","Agent_Type","Cpu_Cores_Count"\n', TABLE),
    "rocm/7_kernel_stats.csv": (b'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n', TABLE),
    "att/ui_output_agent_4_dispatch_2/filenames.json": (
        b'{"gfxip": 9, "gfxv": "vega", "thread_trace": true, "wave_filenames": {"0": {}}}',
        THREAD_TRACE,
    ),
    "att/stats_ui_output_agent_4_dispatch_2.csv": (
        b'"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","Source"\n',
        THREAD_TRACE,
    ),
    "att/4_1_shader_engine_0_2.att": (b"?", "raw thread trace of rocprofv3 (--att)"),
    "rocm/7_results.otf2": (b"?", "OTF2 trace"),
}
NOT_FOREIGN = {
    "notes.csv": b"name,value\n",
    "readme.csv": b"# GPU memory: notes\n",
    "gpu.csv": b"gpu,price\n",
    "kinds.csv": b'"Kind","Agent_Id"\n"a","Start_Timestamp","End_Timestamp"\n',
    "calls.csv": b'"Name","Calls","Price"\n',
    "cards.json": b'{"card": {"GPU": 1}}',
    "config.json": b"{}",
    "filenames.json": b'{"wave_filenames": []}',
    "att/ui_output_agent_4_dispatch_2/code.json": b'{"code": [["s_nop", 0, 1]]}',
    "latent_prof_config.json": b"{}",
    "empty.pftrace": b"",
    "text.pftrace": b"\n{ this is text",
    "model.db": b"?",
}


def database(path: Path, table: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table} (start INTEGER)")
    connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, (content, _) in FILES.items():
        put(tmp_path, path, content=content)
    for path, content in NOT_FOREIGN.items():
        put(tmp_path, path, content=content)
    put(tmp_path, "run/w.1.pt.trace.json")
    database(tmp_path / "nsys.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL")
    database(tmp_path / "ascend_pytorch_profiler_0.db", "CANN_API")
    database(tmp_path / "other.db", "people")
    return tmp_path


EXPECTED = {
    **{path: kind for path, (_, kind) in FILES.items()},
    "nsys.sqlite": "Nsight Systems database",
    "ascend_pytorch_profiler_0.db": "Ascend database",
}


def test_each_file_of_another_tool_has_its_kind_and_no_other_file_has(folder: Path) -> None:
    with Session([Root(str(folder))], Settings()) as session:
        catalog = session.scan()
    assert {file.path: each.kind for each in catalog.others for file in each.files} == EXPECTED
    assert [run.name for run in catalog.runs] == ["run"]
    assert catalog.others_headline == f"{len(EXPECTED)} files of other tools"


def test_the_surfaces_say_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(folder), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    listed = json.loads(out)["other_files"]
    assert {row["file"]: row["kind"] for row in listed} == EXPECTED
    assert f"{len(EXPECTED)} files of other tools" in err
    assert main(["check", str(folder)]) == 0
    assert "other   a.nsys-rep: Nsight Systems report; open it with Nsight Systems\n" in capsys.readouterr().out
    with Session([Root(str(folder))], Settings()) as session:
        session.scan()
        body = Client(App(session)).get("/runs").json
    assert body is not None
    assert body["others"]["headline"] == f"{len(EXPECTED)} files of other tools"
    assert sum(kind["count"] for kind in body["others"]["kinds"]) == len(EXPECTED)


def test_a_folder_of_traces_says_nothing_of_other_tools(tmp_path: Path) -> None:
    put(tmp_path, "run/w.1.pt.trace.json", "run/trace.json")
    with Session([Root(str(tmp_path))], Settings()) as session:
        assert session.scan().others_headline is None
        body = Client(App(session)).get("/runs").json
    assert body is not None and body["others"] is None


def test_a_path_to_such_a_file_says_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview", str(folder / "x.pftrace")]) == 1
    assert "file of another tool (Perfetto trace)" in capsys.readouterr().err


def test_a_trace_of_another_tool_opens_if_it_is_named(folder: Path) -> None:
    with Session([Root(str(folder / "viz" / "result.json"))], Settings()) as session:
        catalog = session.scan()
        assert catalog.others == () and len(catalog.runs) == 1
        assert session.view("trace", wait=True).payload is not None


def test_traces_packed_under_the_folder_of_xprof_are_read_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "plugins" / "profile" / "w.pt.trace.json.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(TRACE))
    with Session([Root(str(tmp_path))], Settings()) as session:
        assert len(session.scan().runs) == 1
