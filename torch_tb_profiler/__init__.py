"""torch-tb-profiler: see where a PyTorch model spends time and memory.

import torch_tb_profiler as ttp

log = ttp.open("log")
log["resnet50"].operators(group_by="module").to_pandas()    a view as a data frame
log["resnet50"].columns().kernels                           the kernels of the trace, as an Arrow table

profile(on_trace_ready=ttp.handler("log/resnet50"))         record, with a summary in five lines
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_tb_profiler.api.columns import Columns
    from torch_tb_profiler.api.log import Log, Run
    from torch_tb_profiler.api.result import Result
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
    "Columns": "api.columns",
    "Log": "api.log",
    "ProfilerError": "base.errors",
    "Result": "api.result",
    "Run": "api.log",
    "Settings": "base.settings",
    "handler": "training",
    "trainer_callback": "training",
}

_REMOVED = {
    "consts": "settings are environment variables now (the README lists them)",
    "io": "`torch_tb_profiler.open(url)` opens traces in any storage; for other files use fsspec",
    "profiler": "`torch_tb_profiler.open(path)` reads traces; its runs have a method per view (docs/python.md)",
    "run": "`torch_tb_profiler.open(path)` holds the runs by name (docs/python.md)",
    "utils": "nothing replaces it: it held helpers of the old plugin",
}
"""Modules of torch-tb-profiler 0.4 that code elsewhere imports: what to use instead."""


def __getattr__(name: str) -> Any:
    # TensorBoard imports the package at every start, so numpy and the rest are imported on first use.
    if name == "__version__":
        from importlib.metadata import version

        return version("torch-tb-profiler")
    if name in _REMOVED:
        # An AttributeError's message would be replaced by Python's own.
        raise ImportError(_removed_text(name))
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def open(path: str, settings: Settings | None = None) -> Log:
    """Open a log folder, a URL, or a trace file and list its runs.

    settings  by default those of the environment variables
    Raises ProfilerError if it can't be listed.
    """
    from torch_tb_profiler.api.log import Log
    from torch_tb_profiler.session import open_session

    return Log(open_session(path, settings))


def _removed_text(name: str) -> str:
    """Return what to use instead of a module of version 0.4."""
    return f"{__name__}.{name} was a module of torch-tb-profiler 0.4: {_REMOVED[name]}"


class _RemovedModules:
    """The last finder of imports: `import torch_tb_profiler.run` says what replaces that module."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        parent, _, child = name.rpartition(".")
        if parent == __name__ and child in _REMOVED:
            raise ModuleNotFoundError(_removed_text(child), name=name)


sys.meta_path.append(_RemovedModules)
