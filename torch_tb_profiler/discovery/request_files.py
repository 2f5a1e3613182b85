"""Files of OpenTelemetry spans that hold the requests of an inference engine, and which traces they belong to.

run/rank0.1.pt.trace.json      the trace
run/otlp.jsonl                 spans of its requests; also spans.json, vllm_spans.jsonl.gz, otel-traces.json

They belong to all traces of their run, as one server writes them for all of its ranks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import parse_file_name
from torch_tb_profiler.discovery.origin_files import run_folder

MAX_FILES = 64
"""Most files of spans that belong to one run; the Collector rotates its file."""

_REQUESTS = re.compile(
    r"(?:^|/)(?:[^/]*[-_.])?(?:otlp|otel|spans)(?:[-_.][^/]*)?\.jsonl?(?:\.gz)?$", re.IGNORECASE
)


def is_request_file(path: str) -> bool:
    """Return whether the name of a file says that it holds OpenTelemetry spans."""
    return _REQUESTS.search(path) is not None


def with_request_files(files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]) -> list[ListedFile]:
    """Return the files in their order, where each trace has the files with the requests of its run.

    is_trace  whether a file is a trace; called only if its name leaves that open
    """
    beside: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if is_request_file(file.path) and not is_trace(file):
            beside[run_folder(file.path)].append(file)
    if not beside:
        return list(files)

    def with_own(file: ListedFile) -> ListedFile:
        own = beside.get(run_folder(file.path), [])
        name = parse_file_name(file.name)
        if not own or name is None or not (name.certain or is_trace(file)):
            return file
        return file.with_requests(sorted(own, key=lambda each: each.path)[:MAX_FILES])

    return [with_own(file) for file in files]
