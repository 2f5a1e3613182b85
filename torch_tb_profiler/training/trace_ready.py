"""What torch.profiler calls when a trace is ready."""

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

if TYPE_CHECKING:
    from torch_tb_profiler.summary import Summary

_log = logging.getLogger("torch_tb_profiler")

SUMMARY_BYTES = 200_000_000
"""JSON of a trace up to which it is read at once: a few seconds, which training waits for."""


class Handler:
    """`on_trace_ready` of `torch.profiler.profile`: writes traces for the tab, and says what is in them.

    Never raises into the training loop: what goes wrong is logged as a warning of the logger "torch_tb_profiler".
    `files` are the traces that it has written.
    """

    def __init__(self, folder: str | os.PathLike[str], worker: str | None, summary: bool) -> None:
        self.folder = Path(folder)
        self.worker = worker
        self.summary = summary
        self.files: list[Path] = []

    def __call__(self, prof: Any) -> None:
        """`prof` is a `torch.profiler.profile` whose recording has ended."""
        try:
            path, size = self._write(prof)
        except Exception as error:  # whatever torch or the disk does, the training goes on
            _log.warning("The trace was not written to %s: %s", self.folder, error, exc_info=True)
            return
        self.files.append(path)
        if not self.summary or _rank() not in (None, 0):
            return
        try:
            sys.stderr.write("\n".join(self._lines(path, size)) + "\n")
        except Exception as error:
            _log.warning("%s is written, but not summarized: %s", path, error, exc_info=True)

    def _write(self, prof: Any) -> tuple[Path, int]:
        """The packed trace, and how much JSON it holds. It has its name once it is whole."""
        import gzip

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.worker or _worker()}.{time.time_ns()}.pt.trace.json.gz"
        plain, packed = Path(f"{path}.json.part"), Path(f"{path}.part")
        try:
            prof.export_chrome_trace(str(plain))
            size = plain.stat().st_size
            with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=5) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            packed.replace(path)
        finally:
            for left in (plain, packed):
                with suppress(FileNotFoundError):
                    left.unlink()
        return path, size

    def _lines(self, path: Path, size: int) -> Iterator[str]:
        """Five lines, or two where reading would hold the training up."""
        from torch_tb_profiler.base.format import format_bytes

        yield f"Trace written: {path} ({format_bytes(path.stat().st_size)})"
        if size > SUMMARY_BYTES:
            yield f"It is large; read it with: torch-tb-profiler summary {path}"
            return
        summary = _summarize(path)
        yield summary.headline[0] if summary.headline else summary.reasons.get("step", "No step is recorded.")
        yield _step(summary)
        yield _advice(summary)
        yield f"See why: tensorboard --logdir {self.folder}"


def handler(folder: str | os.PathLike[str], worker: str | None = None, *, summary: bool = True) -> Handler:
    """An `on_trace_ready` for `torch.profiler.profile` that writes packed traces into `folder`.

        with profile(schedule=..., on_trace_ready=ttp.handler("log/my_run")) as prof:

    folder   a run of the log folder; made if it is not there
    worker   how the worker is called; by default `rank<n>` in a distributed job, else host and process
    summary  whether five lines about each trace go to stderr (of rank 0 alone). Training waits for the trace to be
             read; traces of more than 200 MB of JSON are not read
    """
    return Handler(folder, worker, summary)


def _rank() -> int | None:
    """The rank in the whole job, where there is one: torch's own, else what launchers set."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    given = os.environ.get("RANK", "")
    return int(given) if given.isdecimal() else None


def _worker() -> str:
    rank = _rank()
    return f"{socket.gethostname()}_{os.getpid()}" if rank is None else f"rank{rank}"


def _summarize(path: Path) -> Summary:
    from torch_tb_profiler.api import Log
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import open_session

    # No worker process beside a training job. What is read now opens at once in the tab.
    settings = dataclasses.replace(Settings.from_environment(), executor="serial")
    with Log(open_session(str(path), settings)) as log:
        return log.run().summary()


def _step(summary: Summary) -> str:
    from torch_tb_profiler.base.format import format_duration, format_ratio
    from torch_tb_profiler.views.overview.words import CATEGORY_NAMES

    if summary.step is None:
        return "A step: " + summary.reasons.get("step", "not known")
    parts = sorted(((time or 0.0, name) for name, time in summary.step.breakdown.items()), reverse=True)
    shown = ", ".join(
        f"{CATEGORY_NAMES.get(name, name)} {format_ratio(time / summary.step.mean_ns)}"
        for time, name in parts[:4]
        if time
    )
    return f"{summary.step.whole.capitalize()} takes {format_duration(summary.step.mean_ns)}: {shown}"


def _advice(summary: Summary) -> str:
    if not summary.advice:
        return "Nothing stands out that would be worth a change."
    first = summary.advice[0]
    return f"First: {first.title}{f' ({first.gain})' if first.gain else ''}"
