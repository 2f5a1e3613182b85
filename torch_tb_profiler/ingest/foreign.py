"""Formats of other tools: a listing names their files and what opens them, and reads only their first bytes."""

from __future__ import annotations

import re

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.formats import ForeignFormat
from torch_tb_profiler.ingest.perfetto import is_perfetto, is_pytorch_pftrace, is_rocprof_pftrace
from torch_tb_profiler.ingest.rocprof.sniff import looks_like_tables

__all__ = ["FORMATS"]

_JSON = (".json", ".json.gz")
_ASCEND_TABLES = (
    "/operator_memory.csv", "/memory_record.csv", "/npu_module_mem.csv", "/kernel_details.csv",
    "/operator_details.csv", "/op_statistic.csv", "/api_statistic.csv", "/step_trace_time.csv",
)  # fmt: skip

_XPROF = lazy_regex(rb'"metadata"\s*:\s*\{[^{}]*"highres-ticks"\s*:')
_VIZTRACER = lazy_regex(rb'"viztracer_metadata"\s*:|"cat"\s*:\s*"(?:fee|FEE)"')
_SPEEDSCOPE = lazy_regex(rb'"\$schema"\s*:\s*"https?://(?:www\.)?speedscope\.app/')
_SQLITE = b"SQLite format 3\0"
_NVIDIA_LINE = lazy_regex(
    rb"(?!.*timestamp).*\b(?:utilization\.gpu|power\.draw)\b|# HELP DCGM_FI_|DCGM_FI_\w+\{|#\s*Entity\s+\w+|"
    rb"#\s*(?:Time[,\s]+)?gpu[,\s]+(?:pwr|gtemp|sm|mem|fb|mclk|pclk|pviol|sbecc|rxpci)\b",
    re.IGNORECASE,
)
_ROCPROF = lazy_regex(
    rb'"(?:Kind|Domain)",[^\n]*"Start_Timestamp","End_Timestamp"|"Node_Id","Logical_Node_Id",|'
    rb'"Name","Calls","TotalDurationNs",'
)
_INSTRUCTIONS = lazy_regex(rb'"?CodeObj"?,\s*"?Vaddr"?,\s*"?Instruction"?,\s*"?Hitcount"?', re.IGNORECASE)
_AMD = lazy_regex(
    rb"device,[^\n]*(?:GPU use|Temperature)|gpu,[^\n]*(?:gfx_|socket_power|power_usage)|"
    rb'\s*\{\s*"card\d+"\s*:\s*\{|'
    rb'\s*\[\s*\{\s*"(?:timestamp"\s*:\s*\d+\s*,\s*")?gpu"\s*:\s*\d+\s*,\s*"(?:usage|power|clock|temperature)',
    re.IGNORECASE,
)


def _is_xprof(head: bytes) -> bool:
    return bool(_XPROF.search(head))


def _is_viztracer(head: bytes) -> bool:
    return bool(_VIZTRACER.search(head))


def _is_ascend(head: bytes) -> bool:
    return head.startswith(_SQLITE) and b"CANN_API" in head


def _is_speedscope(head: bytes) -> bool:
    return bool(_SPEEDSCOPE.search(head))


def _is_nsight(head: bytes) -> bool:
    return head.startswith(_SQLITE) and b"CUPTI_ACTIVITY_KIND_" in head


def _is_other_perfetto(head: bytes) -> bool:
    """Return whether a file has Perfetto packets that no importer reads."""
    return is_perfetto(head) and not (is_rocprof_pftrace(head) or is_pytorch_pftrace(head))


def _is_nvidia_metrics(head: bytes) -> bool:
    """Recognize metrics of NVIDIA GPUs without times.

    They come from nvidia-smi without `timestamp`, `dmon` without a date, `dcgmi dmon`, and DCGM's exporter.
    """
    from torch_tb_profiler.ingest.gpu_metrics.dcgm import looks_like_dcgm

    return bool(_NVIDIA_LINE.match(head.partition(b"\n")[0])) and not looks_like_dcgm(head)


def _is_rocprof_table(head: bytes) -> bool:
    """Recognize tables of rocprof and rocprofv3 that aren't read, or only beside others.

    Those are allocations, scratch memory, statistics, and agents.
    """
    return bool(_ROCPROF.match(head)) and not looks_like_tables(head)


def _is_thread_trace(head: bytes) -> bool:
    """Recognize what `rocprofv3 --att` decodes: the index of a folder, or the table of its instructions."""
    return (b'"wave_filenames"' in head and b'"gfxv"' in head) or bool(_INSTRUCTIONS.match(head))


def _is_amd_metrics(head: bytes) -> bool:
    """Recognize rocm-smi (`--csv`, `--json`), amd-smi without `--watch`, and its JSON."""
    return bool(_AMD.match(head))


FORMATS = (
    ForeignFormat("XProf profile of JAX or TensorFlow", (".xplane.pb",), None, "open it with XProf"),
    ForeignFormat("XProf trace of JAX or TensorFlow", _JSON, _is_xprof, "open it with XProf"),
    ForeignFormat("VizTracer trace", _JSON, _is_viztracer, "open it with vizviewer"),
    ForeignFormat("speedscope profile (py-spy)", _JSON, _is_speedscope, "open it at speedscope.app"),
    ForeignFormat("Nsight Systems report", (".nsys-rep", ".qdrep"), None, "open it with Nsight Systems"),
    ForeignFormat(
        "Nsight Systems database", (".sqlite", ".db"), _is_nsight, "open its report with Nsight Systems"
    ),
    ForeignFormat(
        "Ascend database",
        (".db",),
        _is_ascend,
        "its `trace_view.json` opens here; open it with MindStudio Insight",
    ),
    ForeignFormat("Nsight Compute report", (".ncu-rep",), None, "open it with Nsight Compute"),
    ForeignFormat("Gaudi hardware trace", (".hltv",), None, "open it with Habana's trace viewer"),
    ForeignFormat(
        "configuration of the Gaudi profiler",
        ("/prof_config.json",),
        None,
        "it has no recording; `torch-tb-profiler check` says what it asks for",
    ),
    ForeignFormat(
        "Perfetto trace",
        (".pftrace", ".perfetto-trace", ".pftrace.gz"),
        _is_other_perfetto,
        "open it at ui.perfetto.dev",
    ),
    ForeignFormat(
        "counters of rocprofv3 without their trace",
        ("counter_collection.csv", "counter_collection.csv.gz"),
        None,
        "put them in the folder of the trace whose kernels they count; if it has several ranks, put the rank in "
        "their names",
    ),
    ForeignFormat(
        "thread trace of rocprofv3 (--att)",
        ("/filenames.json", ".csv"),
        _is_thread_trace,
        "it times instructions of single kernels: open its folder `ui_output_...` with ROCprof Compute Viewer; "
        "`--kernel-trace` in the same run records the timeline",
    ),
    ForeignFormat(
        "raw thread trace of rocprofv3 (--att)",
        (".att",),
        None,
        "open its folder with ROCprof Compute Viewer, in a build with the trace decoder",
    ),
    ForeignFormat(
        "table of rocprof",
        (".csv", ".csv.gz"),
        _is_rocprof_table,
        "record with `rocprofv3 --output-format rocpd`: its database opens here",
    ),
    ForeignFormat("OTF2 trace", (".otf2",), None, "open it with Vampir"),
    ForeignFormat(
        "GPU metrics without times (NVIDIA)",
        (".csv", ".prom"),
        _is_nvidia_metrics,
        "record with times: `nvidia-smi dmon -o DT` or `nvidia-smi --query-gpu=timestamp,... --format=csv`",
    ),
    ForeignFormat(
        "GPU metrics without times (AMD)",
        (".csv", ".json"),
        _is_amd_metrics,
        "record with times, as a table: `amd-smi metric --watch 1 --csv`",
    ),
    ForeignFormat("table of Ascend's profiler", _ASCEND_TABLES, None, "its `trace_view.json` opens here"),
)
"""The first format that fits names a file."""
