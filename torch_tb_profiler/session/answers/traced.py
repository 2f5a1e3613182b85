"""Find the traces of other runs whose processes recorded the iterations of a file of metrics.

artifacts/rank_00_metrics.jsonl                      the file: worker rank0 of run `artifacts`
artifacts/torch_profiler/rank0/...pt.trace.json      a trace of the same process, in a run of its own
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.discovery.origin_files import is_metrics_file
from torch_tb_profiler.model.origin_records import PlacedIterations
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.targets import TargetNames, Targets
from torch_tb_profiler.view import TracedIterations

MAX_REQUESTED = 8
"""Most traces that are read because a page shows the iterations of their processes."""

TracedFile = tuple[TargetNames, PlacedIterations]
"""A trace, and the iterations that were joined with it."""


class TracedFiles:
    """The traces beside files of metrics, by what reading them has shown."""

    def __init__(self, files: RequestedFiles, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def find(self, metrics: Sequence[ListedFile], request: bool) -> tuple[Mapping[str, list[TracedFile]], int]:
        """Return the traces by the URI of their metrics, and how many of them are being read.

        request  read traces that are not cached, at most `MAX_REQUESTED`; else what isn't known yet is left out
        """
        found: dict[str, list[TracedFile]] = defaultdict(list)
        wanted = {file.id.uri for file in metrics if is_metrics_file(file.path)}
        requested = loading = 0
        for run in self._targets.runs if wanted else ():
            for worker in self._targets.workers(run):
                for span in worker.spans:
                    beside = {each.path: each.id.uri for each in span.file.origins if each.id.uri in wanted}
                    if not beside:
                        continue
                    if request and requested < MAX_REQUESTED:
                        requested += 1
                        self._targets.request(span.file)
                        loading += self._files.state(span.file.id).state in ("waiting", "loading")
                    summary = self._files.cached_summary(span.file.id)
                    placed = None if summary is None else summary.iterations
                    if placed is not None and placed.path in beside:
                        names = TargetNames(run.name, worker.name, span.name)
                        found[beside[placed.path]].append((names, placed))
        return found, loading


def traced_iterations(traces: Sequence[TracedFile], recording: int) -> tuple[TracedIterations, ...]:
    """Return where each trace has the iterations of one recording."""
    return tuple(
        TracedIterations(
            *names,
            {
                number: (begin, end)
                for number, begin, end in zip(placed.number, placed.begin, placed.end, strict=True)
                if begin < end
            },
        )
        for names, placed in traces
        if placed.recording == recording
    )
