"""The handler that torch.profiler calls when a trace is ready."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.training.compile_record import start_recording

if TYPE_CHECKING:
    from torch_tb_profiler.summary import Summary

_log = logging.getLogger("torch_tb_profiler")

SUMMARY_BYTES = 200_000_000
"""Largest trace, in bytes of JSON, that is summarized at once: training waits a few seconds for it."""


class Handler:
    """The `on_trace_ready` of `torch.profiler.profile` that writes traces and prints a summary of each.

    From its creation on, it records where the kernels of torch.compile come from, and writes that beside each
    trace.

    It never raises into the training loop: errors are logged as warnings by "torch_tb_profiler". `files` are the
    traces it has written.
    """

    def __init__(self, folder: str | os.PathLike[str], worker: str | None, summary: bool) -> None:
        self.folder = Path(folder)
        self.worker = worker
        self.summary = summary
        self.files: list[Path] = []
        self._recorder = start_recording()

    def __call__(self, prof: Any) -> None:
        """Write the trace of `prof`, a `torch.profiler.profile` whose recording has ended."""
        try:
            path, size = self._write(prof)
        except Exception as error:  # an error in torch or of the disk must not stop the training
            _log.warning("Could not write the trace to %s: %s", self.folder, error, exc_info=True)
            return
        self.files.append(path)
        if not self.summary or _global_rank() not in (None, 0):
            return
        try:
            sys.stderr.write("\n".join(self._summary_lines(path, size)) + "\n")
        except Exception as error:
            _log.warning("%s was written but could not be summarized: %s", path, error, exc_info=True)

    def _write(self, prof: Any) -> tuple[Path, int]:
        """Write the compressed trace; return its path and the bytes of its JSON. It is named when complete."""
        import gzip

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.worker or _default_worker()}.{time.time_ns()}.pt.trace.json.gz"
        plain, compressed = Path(f"{path}.json.part"), Path(f"{path}.part")
        try:
            prof.export_chrome_trace(str(plain))
            self._write_compile_record(path)
            size = plain.stat().st_size
            with open(plain, "rb") as source, gzip.open(compressed, "wb", compresslevel=5) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            compressed.replace(path)
        finally:
            for leftover in (plain, compressed):
                with suppress(FileNotFoundError):
                    leftover.unlink()
        return path, size

    def _write_compile_record(self, trace: Path) -> None:
        """Write what torch.compile logged since the last trace beside a trace; a failure costs only that."""
        record = trace.with_name(trace.name.removesuffix(".pt.trace.json.gz") + ".compiled.log")
        try:
            self._recorder.write(record)
        except OSError as error:
            _log.warning("Could not write the compile record %s: %s", record, error)

    def _summary_lines(self, path: Path, size: int) -> Iterator[str]:
        """Yield five lines about the trace, or two if reading it would delay the training."""
        from torch_tb_profiler.base.format import format_bytes

        yield f"Trace written: {path} ({format_bytes(path.stat().st_size)})"
        if size > SUMMARY_BYTES:
            yield f"It is too large to summarize during training; run: torch-tb-profiler summary {path}"
            return
        summary = _summarize(path)
        yield summary.headline[0] if summary.headline else summary.reasons.get("step", "No steps were recorded.")
        yield _step_line(summary)
        yield advice_line(summary)
        yield f"For details: tensorboard --logdir {self.folder}"


def handler(folder: str | os.PathLike[str], worker: str | None = None, *, summary: bool = True) -> Handler:
    """Return an `on_trace_ready` for `torch.profiler.profile` that writes compressed traces to `folder`.

        with profile(schedule=..., on_trace_ready=ttp.handler("log/my_run")) as prof:

    Create it before the model is compiled: then it also writes where the kernels of torch.compile come from
    (`<worker>.<n>.compiled.log`, at most 64 MB in a process).

    folder   the run's folder in the log folder; created if missing
    worker   name of the worker; by default `rank<n>` in a distributed job, else host and process ID
    summary  whether to print five lines about each trace to stderr (on rank 0 only). Training waits while the
             trace is read; traces of more than 200 MB of JSON are not read
    """
    return Handler(folder, worker, summary)


def _global_rank() -> int | None:
    """Return the rank in the job: torch's own, or else the one that launchers set; None outside of a job."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    variable = os.environ.get("RANK", "")
    return int(variable) if variable.isdecimal() else None


def _default_worker() -> str:
    rank = _global_rank()
    return f"{socket.gethostname()}_{os.getpid()}" if rank is None else f"rank{rank}"


def _summarize(path: Path) -> Summary:
    from torch_tb_profiler.api.log import Log
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import open_session

    # No worker process next to a training job. The parsed trace is cached, so TensorBoard opens it at once.
    settings = dataclasses.replace(Settings.from_environment(), executor="serial")
    with Log(open_session(str(path), settings)) as log:
        return log.run().summary()


def _step_line(summary: Summary) -> str:
    from torch_tb_profiler.base.format import format_duration, format_ratio
    from torch_tb_profiler.base.grammar import capitalize
    from torch_tb_profiler.views.overview.words import CATEGORY_NAMES

    if summary.step is None:
        return "Step time unknown: " + summary.reasons.get("step", "no complete step")
    parts = sorted(((time or 0.0, name) for name, time in summary.step.breakdown.items()), reverse=True)
    shown = ", ".join(
        f"{CATEGORY_NAMES.get(name, name)} {format_ratio(time / summary.step.mean_ns)}"
        for time, name in parts[:4]
        if time
    )
    return f"{capitalize(summary.step.share_base)} takes {format_duration(summary.step.mean_ns)}: {shown}"


def advice_line(summary: Summary) -> str:
    """Return what to change first, or why nothing is advised."""
    if not summary.advice:
        return summary.reasons["advice"]
    first = summary.advice[0]
    return f"Start here: {first.title}{f' ({first.gain})' if first.gain else ''}"
