"""A coverage-guided fuzzer of the reader and of what is made of every trace.

    python -m tests.reliability.fuzz_reader CORPUS -max_total_time=60

Any bytes give a trace or a TraceError: no other exception, no crash, no hang, no flood of memory. What it finds
goes into tests/reliability/corpus, which the tests read every time.
"""

from __future__ import annotations

import io
import os
import pkgutil
import signal
import sys
from importlib import import_module
from typing import NoReturn

LIMIT = 64 << 20

BESIDE = b"\n--beside--\n"
"""Parts a trainer's file from the file of PyTorch beside it, which is read for its first two ranks."""

HANG_SECONDS = 60
"""Of processor time: how long an input waits for a processor on a busy machine says nothing about the reader."""

WALL_SECONDS = 1200
"""After which libFuzzer ends a run that hangs outside of Python, where no signal is handled."""


def read(content: bytes) -> None:
    """Pass one input through the reader, the analyses that run at once, and back out of a file of columns."""
    from functools import partial

    from torch_tb_profiler.base.errors import TraceError
    from torch_tb_profiler.cache.arrow import read_trace_file, write_trace
    from torch_tb_profiler.ingest import ignore_progress, read_trace
    from torch_tb_profiler.ingest.composer.companions import add_pytorch_files
    from torch_tb_profiler.session.jobs import analyze

    own, mark, pytorch = content.partition(BESIDE)
    try:
        trace = read_trace(io.BytesIO(own), size=len(own), limit=LIMIT)
        if mark:
            beside = [(number, partial(io.BytesIO, pytorch)) for number in (0, 1)]
            trace = add_pytorch_files(trace, partial(io.BytesIO, own), beside, report=ignore_progress, limit=LIMIT)
    except TraceError:
        return
    analyze(trace)
    written = io.BytesIO()
    write_trace(trace, written)
    again = read_trace_file(written.getvalue())
    assert len(again) == len(trace)
    assert again.args.keys() == trace.args.keys()


def _hangs(number: int, frame: object) -> NoReturn:
    raise RuntimeError(f"this input takes more than {HANG_SECONDS} s of processor time")


def read_in_time(content: bytes) -> None:
    """Call `read`; raise an error if it hangs."""
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    read(content)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def main() -> None:
    import atheris

    # It is guided by the coverage of Python code; native/fuzz.c is the fuzzer of the native reader.
    os.environ["TORCH_PROFILER_NATIVE"] = "0"
    with atheris.instrument_imports(include=["torch_tb_profiler"]):
        import torch_tb_profiler.cache.arrow
        import torch_tb_profiler.session.jobs  # noqa: F401
        from torch_tb_profiler import ingest

        # Importers import their parser on first use, which would be too late for the instrumentation.
        for module in pkgutil.walk_packages(ingest.__path__, f"{ingest.__name__}."):
            if ".native." not in module.name:
                import_module(module.name)

    program, *options = sys.argv
    limits = ["-rss_limit_mb=3000", f"-timeout={WALL_SECONDS}", "-max_len=40000"]
    atheris.Setup([program, *limits, *options], read_in_time)
    signal.signal(signal.SIGVTALRM, _hangs)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
