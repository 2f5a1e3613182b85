"""Tables of rocprofv3: equal to its other formats where they hold what these hold."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import pytest

from tests.ingest.rocprof.test_read import expected_slices, slices
from tests.support.producers.rocprof import (
    BOOT,
    GPU,
    GPU_INDEX,
    chrome,
    draw_training,
    rocprof_json,
)
from tests.support.producers.rocprof_tables import tables
from tests.support.traces import read_bytes
from tests.support.views import ask
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest import ignore_progress, read_trace
from torch_tb_profiler.ingest.rocprof import tables as reader
from torch_tb_profiler.ingest.streams import JoinedFiles
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

RUN = draw_training(3)
TABLES = tables(RUN)


def join_tables(tables: dict[str, str]) -> Trace:
    """Join tables into one row, as they lie beside each other."""
    return read_bytes("".join(tables.values()).encode())


def without_bytes(found: Any) -> dict[tuple[Any, ...], int]:
    return {key[:7]: count for key, count in found.items()}


def kinds(trace: Trace) -> dict[str, int]:
    return {note.kind: note.count for note in trace.health}


def counting(flush: Callable[[Any], None], row_counts: list[int]) -> Callable[[Any], None]:
    """Record how many rows are in memory whenever they are put into columns."""

    def flushed(tables: Any) -> None:
        row_counts.append(len(tables._rows))
        flush(tables)

    return flushed


@pytest.mark.parametrize("rows", [2, 1 << 16])
def test_parsed_slices_are_the_recorded_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "CHUNK_ROWS", rows)
    trace = join_tables(TABLES)
    assert without_bytes(slices(trace)) == without_bytes(expected_slices(RUN))
    assert (trace.producer, trace.clock, kinds(trace)) == ("rocprofv3", "boot", {})
    assert steps(trace).names == ("0", "1", "2")
    assert (device_launches(trace)[1] >= 0).all()
    codes, texts = trace.arg_codes("message")
    assert {texts[code] for code in codes[codes >= 0].tolist()} == {"step 0", "step 1", "step 2", "forward"}


@pytest.mark.parametrize("order", [tuple(TABLES), ("hip_api_trace", "agent_info", *reversed(TABLES))])
def test_the_overview_equals_that_of_the_other_formats(order: tuple[str, ...]) -> None:
    actual = ask(join_tables({name: TABLES[name] for name in order}), "overview")
    for other in (chrome(RUN), rocprof_json(RUN)):
        theirs = ask(read_bytes(other), "overview")
        for key in ("steps", "average", "headline", "trace_start_ns"):
            assert actual.get(key) == theirs.get(key)
    (device,) = actual["devices"]
    assert (device["id"], device["name"]) == (GPU_INDEX, "AMD Instinct MI300X")


UNKNOWN = {"bytes", "bandwidth", "memory_bytes"}
"""What the tables do not hold."""


def remove_unknown(answer: Any) -> Any:
    """Remove what is unknown, and the numbers of events, which depend on their order."""
    if isinstance(answer, dict):
        return {key: remove_unknown(value) for key, value in answer.items() if key not in {*UNKNOWN, "event"}}
    if isinstance(answer, list):
        return [remove_unknown(each) for each in answer]
    return re.sub(r"event=\d+", "", answer) if isinstance(answer, str) else answer


@pytest.mark.parametrize("view", ["overview", "kernels", "critical_path", "idle", "memory"])
def test_all_answers_equal_those_of_json_except_bytes(view: str) -> None:
    actual, theirs = "".join(TABLES.values()).encode(), rocprof_json(RUN)
    assert remove_unknown(ask(read_bytes(actual), view)) == remove_unknown(ask(read_bytes(theirs), view))


def test_before_rocm_7_work_is_on_queues() -> None:
    actual, theirs = join_tables(tables(RUN, streams=False)), read_bytes(rocprof_json(RUN, streams=False))
    assert without_bytes(slices(actual)) == without_bytes(slices(theirs))


def test_columns_of_old_versions_and_of_the_converter_are_found_by_name() -> None:
    first = (
        '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",'
        '"Private_Segment_Size","Group_Segment_Size","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",'
        '"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
        '"KERNEL_DISPATCH",1,139690710949888,15,"transpose(float*, int)",0,671599758568,671599825328,16,32,4,4,1,'
        "1024,1024,1\n"
    )
    trace = read_bytes(first.encode())
    ((key, count),) = slices(trace).items()
    assert (key[:5], key[6], count) == (
        ("kernel", "transpose(float*, int)", "1/139690710949888", 671599758568, 66760), "[256,256,1]", 1,
    )  # fmt: skip
    assert trace.arg_int("shared memory")[-1] == 32
    assert trace.arg_int("scratch memory")[-1] == 16
    second = TABLES["kernel_trace"].replace("LDS_", "Lds_").replace("VGPR", "Vgpr").replace("SGPR", "Sgpr")
    head, _, rows = second.partition("\n")
    guided = "".join(f'"{guid}",{row}\n' for guid in ("a", "b") for row in rows.splitlines())
    calls = TABLES["hip_api_trace"].partition("\n")
    both_guids = "".join(f'"{guid}",{row}\n' for guid in ("b", "a") for row in calls[2].splitlines())
    both = read_bytes(f'"Guid",{head}\n{guided}"Guid",{calls[0]}\n{both_guids}'.encode())
    of, launch = device_launches(both)
    assert len(of) == 2 * len(RUN.dispatches)
    assert len(set(launch.tolist())) == len(of)


@pytest.mark.parametrize(
    ("label", "index", "named"),
    [
        ("Agent {}", GPU_INDEX, True),
        ("Agent {}", GPU, True),
        ("{}", GPU, True),
        ("{}", GPU_INDEX, False),
        ("GPU {}", 0, True),
        ("GPU {}", 1, False),
        ("Agent {}", 9, False),
        ("Agent {}", 0, False),
    ],
)
def test_a_device_has_the_number_of_its_label_and_its_agents_name(label: str, index: int, named: bool) -> None:
    trace = join_tables(tables(RUN, label=label, index=index))
    (device,) = ask(trace, "overview")["devices"]
    assert (device["id"], device["name"] == "AMD Instinct MI300X") == (index, named)


def test_no_device_is_named_if_its_numbering_is_ambiguous() -> None:
    agents = TABLES["agent_info"].splitlines()
    other = agents[-1].replace(f"{GPU},{GPU_INDEX}", "1,2").replace("MI300X", "MI210")
    doubtful = {**TABLES, "agent_info": "\n".join([*agents, other]) + "\n"}
    (device,) = ask(join_tables(doubtful), "overview")["devices"]
    assert (device["id"], device["name"]) == (GPU_INDEX, None)


def test_a_copy_is_on_its_target_gpu_or_else_its_source_gpu() -> None:
    rows = {
        "MEMORY_COPY_HOST_TO_DEVICE": ('"Agent 0","Agent 2"', "2/0", "Memcpy HtoD (Host -> Device)"),
        "DEVICE_TO_HOST": ('"Agent 3","Agent 0"', "3/0", "Memcpy DtoH (Device -> Host)"),
        "DEVICE_TO_DEVICE": ('"Agent 3","Agent 4"', "4/0", "Memcpy DtoD (Device -> Device)"),
        "SOMETHING": ('"Agent 3","Agent 4"', "3/0", "MEMORY_COPY_SOMETHING"),
    }
    head = TABLES["memory_copy_trace"].partition("\n")[0]
    text = "".join(f'"MEMORY_COPY","{direction}",0,{ends},1,5,9\n' for direction, (ends, _, _) in rows.items())
    found = {(key[1], key[2]) for key in slices(read_bytes(f"{head}\n{text}".encode()))}
    assert found == {(name, place) for _, place, name in rows.values()}


def test_a_line_that_is_not_a_row_is_noted_and_skipped() -> None:
    complete = TABLES["kernel_trace"]
    rows = complete.splitlines()
    damaged = "\r\n".join(
        ["\ufeff" + rows[0], rows[1], '"KERNEL_DISPATCH","Agent 1",1', "", *rows[2:], rows[-1][:40]]
    )
    trace = read_bytes(damaged.encode())
    assert slices(trace) == slices(read_bytes(complete.encode()))
    assert kinds(trace) == {"line_unreadable": 2}


def test_a_number_beyond_63_bits_counts_as_missing() -> None:
    head, row, *_ = TABLES["kernel_trace"].splitlines()
    endless = row.replace(str(BOOT + RUN.dispatches[0].start), "9" * 30)
    trace = read_bytes("\n".join([head, row, endless]).encode())
    assert sum(slices(trace).values()) == 2
    assert len(ask(trace, "kernels")["rows"]) == 1
    assert ask(trace, "kernels")["rows"][0]["total_ns"] == RUN.dispatches[0].end - RUN.dispatches[0].start


def test_the_bytes_of_rows_in_memory_and_the_columns_of_a_header_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row_counts: list[int] = []
    monkeypatch.setattr(reader, "CHUNK_BYTES", 300)
    monkeypatch.setattr(reader._TableReader, "_flush", counting(reader._TableReader._flush, row_counts))
    text = TABLES["kernel_trace"]
    assert slices(read_bytes(text.encode()))
    assert 0 < max(row_counts) < len(RUN.dispatches)
    wide = [f',"c{number}"' for number in range(300)]
    head, *rows = text.splitlines()
    with pytest.raises(TraceError):
        read_bytes("\n".join([head + "".join(wide), *(row + ",0" * len(wide) for row in rows)]).encode())


def test_agents_alone_or_a_header_alone_are_an_error() -> None:
    for text in (TABLES["agent_info"], TABLES["kernel_trace"].partition("\n")[0], TABLES["hip_api_trace"][:70]):
        with pytest.raises(TraceError):
            read_bytes(text.encode())
    with pytest.raises(TooLargeError):
        content = "".join(TABLES.values()).encode()
        read_trace(io.BytesIO(content), size=len(content), report=ignore_progress, limit=1000)


@pytest.mark.parametrize("packed", [(), ("kernel_trace",), tuple(TABLES)])
def test_joined_files_may_be_compressed_or_truncated(packed: tuple[str, ...]) -> None:
    def content(name: str) -> bytes:
        text = TABLES[name].rstrip("\n").encode()  # cut off behind its last row
        return gzip.compress(text[:40]) + gzip.compress(text[40:]) if name in packed else text

    def opened(name: str) -> BinaryIO:
        return io.BytesIO(content(name))

    stream = JoinedFiles([partial(opened, name) for name in TABLES])
    assert slices(read_trace(io.BufferedReader(stream))) == slices(join_tables(TABLES))


def test_a_damaged_compressed_file_is_an_error() -> None:
    damaged = gzip.compress(TABLES["kernel_trace"].encode())[:-30]
    with pytest.raises(TraceError, match="damaged"):
        read_trace(io.BufferedReader(JoinedFiles([lambda: io.BytesIO(damaged)])))
