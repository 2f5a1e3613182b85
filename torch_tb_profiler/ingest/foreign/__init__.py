"""Files of other tools that lie in log folders: named, with what opens them, and never read whole."""

from __future__ import annotations

from torch_tb_profiler.ingest.foreign.heads import (
    is_amd_metrics,
    is_ascend,
    is_nsight,
    is_nvidia_metrics,
    is_other_perfetto,
    is_rocprof_table,
    is_speedscope,
    is_viztracer,
    is_xprof,
)
from torch_tb_profiler.ingest.formats import ForeignFormat

__all__ = ["FORMATS"]

_JSON = (".json", ".json.gz")
_ASCEND_TABLES = (
    "/operator_memory.csv", "/memory_record.csv", "/npu_module_mem.csv", "/kernel_details.csv",
    "/operator_details.csv", "/op_statistic.csv", "/api_statistic.csv", "/step_trace_time.csv",
)  # fmt: skip

FORMATS = (
    ForeignFormat("XProf profile of JAX or TensorFlow", (".xplane.pb",), None, "open it with XProf"),
    ForeignFormat("XProf trace of JAX or TensorFlow", _JSON, is_xprof, "open it with XProf"),
    ForeignFormat("VizTracer trace", _JSON, is_viztracer, "open it with vizviewer"),
    ForeignFormat("speedscope profile (py-spy)", _JSON, is_speedscope, "open it at speedscope.app"),
    ForeignFormat("Nsight Systems report", (".nsys-rep", ".qdrep"), None, "open it with Nsight Systems"),
    ForeignFormat("Nsight Systems database", (".sqlite", ".db"), is_nsight, "open its report with Nsight Systems"),
    ForeignFormat(
        "Ascend database", (".db",), is_ascend, "its `trace_view.json` opens here; open it with MindStudio Insight"
    ),
    ForeignFormat("Nsight Compute report", (".ncu-rep",), None, "open it with Nsight Compute"),
    ForeignFormat("Gaudi hardware trace", (".hltv",), None, "open it with Habana's trace viewer"),
    ForeignFormat(
        "configuration of the Gaudi profiler",
        ("/prof_config.json",),
        None,
        "it says what to record and holds no recording",
    ),
    ForeignFormat(
        "Perfetto trace",
        (".pftrace", ".perfetto-trace", ".pftrace.gz"),
        is_other_perfetto,
        "open it at ui.perfetto.dev",
    ),
    ForeignFormat(
        "counters of rocprofv3 without their trace",
        ("counter_collection.csv", "counter_collection.csv.gz"),
        None,
        "put them into the folder of the trace whose kernels they count; with traces of several ranks, say the "
        "rank in their names",
    ),
    ForeignFormat(
        "table of rocprof",
        (".csv", ".csv.gz"),
        is_rocprof_table,
        "record with `rocprofv3 --output-format rocpd`: its database opens here",
    ),
    ForeignFormat("OTF2 trace", (".otf2",), None, "open it with Vampir"),
    ForeignFormat(
        "GPU metrics without times (NVIDIA)",
        (".csv", ".prom"),
        is_nvidia_metrics,
        "record with times: `nvidia-smi dmon -o DT` or `nvidia-smi --query-gpu=timestamp,... --format=csv`",
    ),
    ForeignFormat(
        "GPU metrics without times (AMD)",
        (".csv", ".json"),
        is_amd_metrics,
        "record with times, as a table: `amd-smi metric --watch 1 --csv`",
    ),
    ForeignFormat("table of Ascend's profiler", _ASCEND_TABLES, None, "its `trace_view.json` opens here"),
)
"""The first that fits names a file."""
