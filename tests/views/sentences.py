"""Every sentence that the views say of the real runs: `python -m tests.views.sentences` writes the table anew."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.corpus import real_traces
from tests.support.jobs import ready_member
from tests.views.figures import numbers, unheld
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.view import DumpsView, Members, NoParams, RunView, Tab, TraceView
from torch_tb_profiler.views import all_tabs
from torch_tb_profiler.views._shared.text import Phrase, plain
from torch_tb_profiler.views.diff.build import TAB as DIFF
from torch_tb_profiler.views.diff.build import build as diff
from torch_tb_profiler.views.diff.payload import DiffParams
from torch_tb_profiler.views.distributed.build import TAB as DISTRIBUTED
from torch_tb_profiler.views.distributed.build import build as distributed

TABLE = Path(__file__).parent / "sentences.tsv"

Row = tuple[str, str, str, str]
"""Run, view, field, sentence."""

ROWS = 3
"""Of a table within a payload, so many rows are read."""


def sentences(corpus: Path, beyond: list[Row] | None = None) -> Iterator[Row]:
    """Yield the sentences of each run: of its first file in every view, of all its files in the views of several.

    What a view says twice is listed once.

    Those with a time or size that the payload does not hold are put into `beyond`, too.
    """
    for folder in sorted(path for path in (corpus / "traces").iterdir() if path.is_dir()):
        files = [
            trace
            for path in sorted(folder.iterdir())
            if path in real_traces.files(corpus)
            for trace in real_traces.ranks(path).values()
        ]
        if not files:
            continue
        for tab in all_tabs():
            payload = _answer(tab, files)
            fields: dict[str, str] = {}
            for field, sentence in texts(payload):
                fields.setdefault(sentence, field)
            rows = [(folder.name, tab.slug, field, sentence) for sentence, field in fields.items()]
            if beyond is not None and rows:
                held = numbers(payload)
                beyond += [row for row in rows if any(unheld(held, row[3]))]
            yield from rows


def _answer(tab: Tab, files: list[Trace]) -> object:
    if tab.reason(files[0]) is not None:
        return None
    if isinstance(tab.view, TraceView):
        return tab.view.build(files[0], tab.view.params())
    if isinstance(tab.view, DumpsView):
        return None
    if isinstance(tab.view, RunView):
        assert tab.slug == DISTRIBUTED.slug, "no run of the corpus has what another such view needs"
        members = (
            ready_member(f"worker{number}", number, trace)
            for number, trace in enumerate(files)
            if tab.reason(trace) is None
        )
        return distributed(Members(members), NoParams())
    if len(files) > 1:
        assert tab.slug == DIFF.slug
        one_run = trace_rank(files[0]) == trace_rank(files[1])
        return diff(TracePair(files[:1], files[1:2], one_run), DiffParams())
    return None


def texts(payload: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, text) of all sentences in a payload."""
    if isinstance(payload, tuple) and payload and all(isinstance(each, Phrase) for each in payload):
        yield field, plain(payload)
    elif isinstance(payload, list | tuple):
        for each in payload[:ROWS]:
            yield from texts(each, field)
    elif isinstance(payload, msgspec.Struct):
        for name in payload.__struct_fields__:
            yield from texts(getattr(payload, name), f"{field}.{name}" if field else name)


def read_table() -> list[Row]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, dialect="excel-tab"))
    return [(run, view, field, sentence) for run, view, field, sentence in rows[1:]]


if __name__ == "__main__":
    with TABLE.open("w", newline="", encoding="utf-8") as table:
        writer = csv.writer(table, dialect="excel-tab", lineterminator="\n")
        writer.writerow(("run", "view", "field", "sentence"))
        writer.writerows(sentences(Path(os.environ["TRACE_CORPUS"])))
