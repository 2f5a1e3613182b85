"""Dumps in every form, damaged ones, and hostile ones, by each reader."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import pytest

from tests.support.dumps import DrawnJob, hung_job
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.flight_recorder import content, looks_like_dump
from torch_tb_profiler.ingest.flight_recorder.native.shorten import shorten
from torch_tb_profiler.ingest.flight_recorder.read import read_dump
from torch_tb_profiler.model.flight_recorder import RecorderDump


def read(data: bytes, rank: int = 0) -> RecorderDump:
    return read_dump(io.BytesIO(data), rank)


class Evil:
    called = False

    def __reduce__(self) -> Any:
        return (setattr, (Evil, "called", True))


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_gives_the_same_dump(protocol: int) -> None:
    job = hung_job()
    assert read(pickle.dumps(job.content(0), protocol=protocol)) == read(job.data(0))


def test_json_holds_the_same_but_stacks() -> None:
    job = hung_job()
    pickled, json = read(job.data(0)), read(job.json(0))
    assert [call._replace(frames=()) for call in pickled.pending] == json.pending
    assert (pickled.history, pickled.members, pickled.entries) == (json.history, json.members, json.entries)
    assert read(DrawnJob(2).json(0)).entries == 0  # no `entries` at all


def test_the_fast_reader_and_the_careful_one_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    data = hung_job().data(0)
    fast = content.read_content(data)
    monkeypatch.setattr(content, "_is_plain", lambda _: False)
    assert content.read_content(data) == fast


def hostile() -> dict[str, tuple[bytes, str]]:
    deep = b"\x80\x02}" + b")" + b"\x85" * 60_000 + b"Ns."
    entries = hung_job().content(0)
    far = entries["entries"]
    return {
        "a class": (pickle.dumps({"version": "2", "entries": [Evil()]}, protocol=2), "refused"),
        "a memo bomb": (b"\x80\x02}r\xff\xff\xff\x7fX\x07\x00\x00\x00versionX\x01\x00\x00\x002s.", ""),
        "a key that is a deep tuple": (deep, "key that is not text"),
        "a negative length": (b"\x80\x02}T\xff\xff\xff\xff.", "opcode"),
        "a text longer than the file": (b"\x80\x02}X" + struct.pack("<I", 2**31) + b"v.", "truncated"),
        "nothing": (b"", "empty"),
        "half of it": (hung_job().data(0)[:-200], "truncated"),
        "half of the JSON": (hung_job().json(0)[:-20], "damaged"),
        "nested JSON": (b'{"entries":' + b"[" * 100_000, "damaged"),
        "no dump": (pickle.dumps([1, 2, 3]), "isn't a flight recorder's dump"),
        "an entry without a name": (
            pickle.dumps({**entries, "entries": [{"record_id": 0}]}, protocol=2), "isn't one of a flight recorder"
        ),
        "a number far away": (
            pickle.dumps(
                {**entries, "entries": [far[0], {**far[1], "collective_seq_id": 2**40}]},
                protocol=2,
            ),
            "sequence number",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", hostile())
def test_a_hostile_or_damaged_file_is_refused_with_a_reason(name: str) -> None:
    data, reason = hostile()[name]
    if not reason:  # harmless once it is bounded: the memo is a dict, or its index is refused
        assert read(data).entries == 0
        return
    with pytest.raises(TraceError, match=reason):
        read(data)
    assert not Evil.called


def test_the_fast_reader_gets_no_memo_bomb_and_no_deep_tuple() -> None:
    assert content._is_plain(hung_job().data(0))
    assert not content._is_plain(hostile()["a memo bomb"][0])
    assert not content._is_plain(hostile()["a key that is a deep tuple"][0])
    assert not content._is_plain(hostile()["a class"][0])


def test_a_dump_is_recognized_by_its_first_bytes() -> None:
    job = hung_job()
    assert looks_like_dump(job.data(0)[:65536]) and looks_like_dump(job.json(0)[:65536])
    assert not looks_like_dump(b'{"schemaVersion": 1, "traceEvents": []}')
    assert not looks_like_dump(pickle.dumps({"segments": [], "device_traces": []}))


def test_gloo_counts_the_calls_that_it_leaves_out() -> None:
    job = DrawnJob(2, backend="gloo").call("all_reduce")
    assert not read(job.data(0)).unrecorded
    status = job.content(0)
    status["pg_status"]["0"] = {"last_enqueued_collective": 2, "last_completed_collective": 1}
    assert read(pickle.dumps(status, protocol=2)).unrecorded
    status["pg_status"]["0"] = {"last_enqueued_collective": 2, "last_completed_collective": 2}
    assert not read(pickle.dumps(status, protocol=2)).unrecorded


# ---- the native reader ----------------------------------------------------------------------------------


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    if shorten(hung_job().data(0)) is None:
        pytest.skip("the native reader isn't built")


def busy_job() -> DrawnJob:
    """Return a job whose rank 0 has every kind of call: finished, pending, queued, messages, and a batch."""
    job = DrawnJob(4, {"tp": [0, 1], "pp": [0, 3]})
    for number in range(6):
        job.call("all_reduce", elements=number % 2 + 1).call("all_gather", group="tp")
        job.message("send", 0, 3, group="pp").message("recv", 3, 0, group="pp")
    job.batch(0, [("send", 1), ("recv", 2)]).batch(0, [("send", 1), ("recv", 2)], done=False)
    job.call("all_reduce", [0], done=False).call("broadcast", [0], done=False)
    return job.call("all_gather", [0], group="tp", done=False)


def readable(dump: RecorderDump) -> dict[str, Any]:
    """Return what a dump says; the two readers number the signatures in another order."""
    calls = {
        name: [dump.signatures[code - 1] if code else None for code in history.codes]
        for name, history in dump.history.items()
    }
    ends = {name: (history.first, history.done) for name, history in dump.history.items()}
    return {**vars(dump), "history": calls, "signatures": ends}


@pytest.mark.parametrize("lost", [0, 7])
@pytest.mark.usefixtures("native")
def test_the_native_reader_finds_what_the_other_one_does(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    for job in (busy_job().lose(0, lost), hung_job(), hung_job(culprit=0), DrawnJob(1)):
        data = job.data(0)
        assert shorten(data) is not None
        fast = readable(read(data))
        with monkeypatch.context() as without:
            without.setenv("TORCH_PROFILER_NATIVE", "0")
            assert fast == readable(read(data))


@pytest.mark.usefixtures("native")
def test_a_call_that_finished_out_of_turn_does_not_hide_the_pending_one(monkeypatch: pytest.MonkeyPatch) -> None:
    job = DrawnJob(1)
    for number in range(9):
        job.call("all_reduce", done=number != 4)
    dump = read(job.data(0))
    assert [call.number for call in dump.pending] == [5] and dump.history["0"].done == 4
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "0")
    assert readable(read(job.data(0))) == readable(dump)


@pytest.mark.usefixtures("native")
def test_most_finished_collectives_never_become_objects() -> None:
    job = DrawnJob(1)
    for _ in range(500):
        job.call("all_reduce")
    short = shorten(job.data(0))
    assert short is not None and (len(short.entries), len(short.finished), short.count) == (2, 3 * 498, 500)


@pytest.mark.parametrize("name", hostile())
@pytest.mark.usefixtures("native")
def test_what_no_recorder_writes_is_left_to_the_careful_reader(name: str) -> None:
    data, reason = hostile()[name]
    if reason:
        with pytest.raises(TraceError, match=reason):
            read(data)


@pytest.mark.usefixtures("native")
def test_a_list_that_refers_to_itself_or_doubles_ends_soon() -> None:
    loop = b"\x80\x02}q\x00(X\x07\x00\x00\x00versionX\x01\x00\x00\x002X\x07\x00\x00\x00entries]q\x01h\x01au."
    assert shorten(loop) is None
    doubling = b"\x80\x02}q\x00(X\x01\x00\x00\x00a]q\x01" + b"".join(
        b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(1, 60)
    )
    assert shorten(doubling + b"X\x07\x00\x00\x00entries]u.") is None
