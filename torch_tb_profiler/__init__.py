"""torch-tb-profiler: see where a PyTorch model spends time and memory.

import torch_tb_profiler as ttp

log = ttp.open("log")
log["resnet50"].operators(group_by="module").to_pandas()    a view as a data frame
log["resnet50"].columns().kernels                           the kernels of the trace, as an Arrow table

profile(on_trace_ready=ttp.handler("log/resnet50"))         record, with a summary in five lines
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_tb_profiler.api import Columns, Log, Result, Run
    from torch_tb_profiler.base.errors import ProfilerError
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.training import handler, trainer_callback

__all__ = [
    "Columns",
    "Log",
    "ProfilerError",
    "Result",
    "Run",
    "Settings",
    "handler",
    "open",
    "trainer_callback",
]

_MODULES = {
    "Columns": "api",
    "Log": "api",
    "ProfilerError": "base.errors",
    "Result": "api",
    "Run": "api",
    "Settings": "base.settings",
    "handler": "training",
    "trainer_callback": "training",
}

_REMOVED = {
    "consts": "settings are environment variables (docs/storage.md)",
    "io": "files of any storage are opened by `torch_tb_profiler.open(url)`, or with fsspec",
    "profiler": "traces are read by `torch_tb_profiler.open(path)` and asked by its runs (docs/python.md)",
    "run": "runs are the values of `torch_tb_profiler.open(path)` (docs/python.md)",
    "utils": "nothing replaces it: it had helpers of the old plugin alone",
}
"""Modules of torch-tb-profiler 0.4 that code elsewhere imports: what to use instead."""


def __getattr__(name: str) -> Any:
    # TensorBoard imports the package at every start, so numpy and the rest are imported on first use.
    if name == "__version__":
        from importlib.metadata import version

        return version("torch-tb-profiler")
    if name in _REMOVED:
        # An AttributeError's message would be replaced by Python's own.
        raise ImportError(f"{__name__}.{name} was a module of torch-tb-profiler 0.4: {_REMOVED[name]}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def open(path: str, settings: Settings | None = None) -> Log:
    """Open a log folder, a URL, or a trace file and list its runs.

    settings  by default those of the environment variables
    Raises ProfilerError if it can't be listed.
    """
    from torch_tb_profiler.api import Log
    from torch_tb_profiler.session import open_session

    return Log(open_session(path, settings))
