"""Files of rocprofv3 that are damaged, or made to break the reader: a clear error, or all that can be read."""

from __future__ import annotations

import io
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.ingest.rocprof.test_read import database
from tests.ingest.test_mutations import BYTES, FIELDS, Mutation, mangle, survives
from tests.support.producers.rocpd import UUID, write_rocpd
from tests.support.producers.rocprof import document, draw_training, rocprof_json
from tests.support.traces import read_bytes
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest import Progress, read_trace
from torch_tb_profiler.ingest.rocprof import database as sqlite
from torch_tb_profiler.ingest.rocprof import split
from torch_tb_profiler.model.trace import Trace

RUN = draw_training(2)
EVENTS = len(RUN.calls) + len(RUN.dispatches) + len(RUN.copies)
NAMES = 4
"""Metadata events: a process, a GPU and its two streams."""


def kinds(trace: Trace) -> set[str]:
    return {note.kind for note in trace.health}


def test_an_endless_sql_view_is_not_queried(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "x.db", RUN)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP VIEW rocpd_region")
        connection.execute(
            "CREATE VIEW rocpd_region AS "
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        )
    assert len(read_bytes(path.read_bytes())) == EVENTS + NAMES


def test_a_computed_column_is_not_computed(tmp_path: Path) -> None:
    """One value would take a gigabyte."""
    path = write_rocpd(tmp_path / "x.db", RUN)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"DROP TABLE rocpd_region{UUID}")
        connection.execute(
            f"CREATE TABLE rocpd_region{UUID} (id INTEGER PRIMARY KEY, start BIGINT, end BIGINT, "
            "name_id INTEGER AS (zeroblob(1000000000)), pid INTEGER, tid INTEGER, event_id INTEGER)"
        )
        connection.execute(f"INSERT INTO rocpd_region{UUID} (start, end) VALUES (1, 2)")
    trace = read_bytes(path.read_bytes())
    assert len(trace) == EVENTS - len(RUN.calls) + 1 + NAMES
    assert "no_name" in kinds(trace)


def test_a_sqlite_error_with_invalid_utf8_is_an_error_of_the_file() -> None:
    """Python's module fails to decode it."""
    content = database(RUN)
    damaged = content.replace(b"CREATE VIEW", b"CREATE \xd6IEW", 1)
    assert damaged != content
    with pytest.raises(TraceError, match="the database cannot be read: its schema is damaged"):
        read_bytes(damaged)


def test_every_chunk_of_every_table_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are read before the first calls report it, too; each record has a row in the table of events."""
    rows, run, seen = 30, draw_training(50), list[Progress]()
    monkeypatch.setattr(sqlite, "CHUNK_ROWS", rows)
    content, events = database(run), len(run.calls) + len(run.dispatches) + len(run.copies)
    read_trace(io.BytesIO(content), size=len(content), report=seen.append)
    arranging = [each.events for each in seen if each.stage == "arranging"]
    assert arranging == sorted(arranging)
    assert sum(done < rows for done in arranging) >= events // rows > 15
    assert len(set(arranging)) > events // rows


def test_more_rows_than_a_file_can_hold_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    content = database(RUN)
    monkeypatch.setattr(sqlite, "_MIN_ROW_BYTES", len(content) // 5)
    assert "database_damaged" in kinds(read_bytes(content))


def test_pages_that_form_a_circle_end() -> None:
    content = bytearray(database(draw_training(300)))
    page = int.from_bytes(content[16:18], "big")
    inner = [
        position for position in range(page, len(content), page) if content[position] == 5
    ]  # interior pages of tables
    assert inner
    for position in inner:
        content[position + 8 : position + 12] = (position // page + 1).to_bytes(4, "big")
    trace = survives(bytes(content))
    assert trace is None or "database_damaged" in kinds(trace)


def test_a_truncated_database_is_read_or_refused_with_a_reason() -> None:
    content = database(draw_training(100))
    remaining = 0
    for share in range(1, 20):
        trace = survives(content[: len(content) * share // 20])
        if trace is not None:
            remaining += 1
            assert kinds(trace) >= {"truncated"}
    assert remaining


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0rocpd_", b"SQLite format 3\0" + b"rocpd_" * 5000])
def test_a_file_that_is_not_a_database_is_refused(content: bytes) -> None:
    with pytest.raises(TraceError):
        read_bytes(content)


def test_a_database_beyond_the_limit_is_refused_before_it_is_copied() -> None:
    content = database(RUN)
    with pytest.raises(TooLargeError):
        read_trace(io.BytesIO(content), size=len(content), limit=len(content) - 1)


def test_a_truncated_document_keeps_its_records() -> None:
    content = rocprof_json(RUN)
    records = content.index(b'"buffer_records": {')
    complete = len(read_bytes(content))
    found = set()
    for cut in range(records, len(content), 293):
        trace = survives(content[:cut])
        if trace is not None:
            assert "truncated" in kinds(trace)
            found.add(len(trace))
    assert len(found) > 5 and max(found) <= complete


@pytest.mark.parametrize("indent", [None, 1, 60])
def test_only_a_document_without_its_last_bytes_is_truncated(
    indent: int | None,
) -> None:
    """The tool writes the list of each kind that it knows; most are empty, those at the end of the file, too."""
    complete = json.dumps(document(RUN), indent=indent).encode()
    assert kinds(read_bytes(complete)) == set()
    for end in (b"}", b"]", b"}", b"}", b"]"):
        complete = complete.rstrip().removesuffix(end)
        cut = read_bytes(complete)
        assert (kinds(cut), len(cut)) == ({"truncated"}, EVENTS + NAMES)


@pytest.mark.parametrize("filler", [b'"' + b"a" * 100, b"[" * 100, b"{" * 100, b" " * 100])
def test_a_record_without_an_end_ends_the_file(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "MAX_TEXT_BYTES", 1 << 20)
    content = rocprof_json(RUN)
    position = content.index(b'"hip_api"')
    endless = content[:position] + b'"hip_api": [{' + filler[:1] + filler[1:] * (4 << 20 >> 6)
    assert kinds(read_bytes(endless)) & {"endless_text", "truncated"}


def test_a_description_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "MAX_DESCRIPTION_BYTES", 1 << 20)
    with pytest.raises(TraceError, match="never ends"):
        read_bytes(b'{"rocprofiler-sdk-tool": [{"a": [' + b"1, " * (1 << 20))


def test_one_bad_record_is_skipped_alone() -> None:
    content = rocprof_json(RUN).replace(b'"start_timestamp": 3600000000001000', b'"start_timestamp": "soon"')
    trace = read_bytes(content)
    assert len(trace) == EVENTS - 1 + NAMES
    assert kinds(trace) == {"skipped_event"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "rocpd 3", "rocpd 4"])
def test_no_damage_crashes(name: str, long: bool) -> None:
    complete = rocprof_json(RUN) if name == "json" else database(RUN, name.removeprefix("rocpd "))
    chance = random.Random(name)
    mutations: tuple[Mutation, ...] = BYTES + FIELDS if name == "json" else BYTES
    for _ in range(1000 if long else 60):
        survives(mangle(complete, mutations, chance))
