"""The native reader of snapshots reads what the Python reader reads, and bounds what hostile files cost."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import struct
from typing import Any, BinaryIO, cast

import numpy as np
import pytest

from tests.support.snapshots import LINEAR, LOSS, entry, frame, snapshot
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest import plain_pickle
from torch_tb_profiler.ingest.memory import snapshot as ingest_snapshot
from torch_tb_profiler.ingest.memory.native import reader
from torch_tb_profiler.ingest.memory.native.reader import UnusualPickleError, open_library, read_native
from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.model.snapshots import MAX_METADATA_TEXTS, NOT_KEPT, RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT

pytestmark = pytest.mark.skipif(open_library() is None, reason="the native reader is not built")

U4, U8 = struct.Struct("<I").pack, struct.Struct("<Q").pack


def native(content: bytes, piece: int = 1 << 30) -> RecordedSnapshot:
    stream = io.BytesIO(content)

    def read_into(target: memoryview) -> int:
        data = stream.read(min(len(target), piece))
        target[: len(data)] = data
        return len(data)

    return read_native(open_library(), read_into)


def python(content: bytes) -> RecordedSnapshot:
    return read_snapshot(cast(BinaryIO, io.BytesIO(content)))


def describe_snapshot(value: RecordedSnapshot) -> dict[str, Any]:
    """Return a snapshot without codes, which two readers choose differently."""
    labels, pools, texts = value.labels, value.pools, value.texts
    shown = [
        (
            int(labels.stream[code]),
            (int(pools.first[labels.pool[code]]), int(pools.second[labels.pool[code]])),
            texts[int(labels.context[code])],
            texts[int(labels.metadata[code])],
        )
        for code in range(len(labels.stream))
    ]
    columns = {
        name: column.tolist()
        for name, column in value.columns().items()
        if name.split(".")[0] in ("segments", "blocks", "history", "devices")
        and not name.endswith((".stack", ".label", ".kind", ".pool"))
    }
    return {
        **columns,
        "kinds": [texts[int(code)] for code in value.segments.kind],
        "labels": [shown[code] for code in value.history.label.tolist()],
        "stacks": [value.stack(code) for code in value.history.stack.tolist()],
        "block stacks": [value.stack(code) for code in value.blocks.stack.tolist()],
        "notes": [texts[int(name)] for name in value.notes.name],
        "note times": value.notes.time.tolist(),
        "facts": value.facts,
    }


def rich() -> dict[str, Any]:
    value = snapshot()
    more = [
        entry("alloc", 100 + i, 20 + i, LINEAR if i % 3 else LOSS, addr=2**63 + 512 * i,
              compile_context=f"{i % 4}/0", user_metadata=f"step {i // 100}", pool_id=(0, i % 2), stream=i % 2)
        for i in range(2500)
    ]  # fmt: skip
    value["device_traces"][0] += more
    value["device_traces"].append([entry("segment_map", 7, 5, [])])
    value["external_annotations"] = [{"name": "step", "stage": "START", "device": 0, "time_us": 11}]
    value["allocator_settings"] |= {"expandable_segments": True, "big": 2**40, "name": "x"}
    return value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_both_readers_read_the_same(protocol: int) -> None:
    content = pickle.dumps(rich(), protocol)
    assert describe_snapshot(native(content)) == describe_snapshot(python(content))
    for piece in (7, 1000):
        assert describe_snapshot(native(content, piece)) == describe_snapshot(python(content))


@pytest.mark.parametrize(
    "last", [0, 2**31 - 1, 2**31, 2**32, 6 << 30, 2**63 - 1, -(2**31), -(2**31) - 1, -(2**63)]
)
def test_sizes_and_times_of_any_distance_are_exact(last: int) -> None:
    """The reader stores them as distances of four bytes, in runs."""
    numbers = [*range(70), last, 5, last, last // 2, 2**40, *range(-70, 0)]
    value = snapshot()
    value["device_traces"][0] = [entry("alloc", n, m, LOSS) for n, m in zip(numbers, numbers[::-1], strict=True)]
    value["device_traces"][0][40].pop("time_us")
    history = native(pickle.dumps(value)).history
    times = numbers[::-1]
    times[40] = int(ABSENT)
    assert (history.size.tolist(), history.time.tolist()) == (numbers, times)


def test_more_stacks_and_labels_than_two_bytes_count_are_exact() -> None:
    value = snapshot()
    order = [*range(66_000), 0, 65_535, 65_536]
    value["device_traces"][0] = [entry("alloc", 1, 2, [frame("f", i)], stream=i) for i in order]
    read = native(pickle.dumps(value))
    assert read.labels.stream[read.history.label].tolist() == order
    assert [read.frames.line[read.stack_codes(code)[0]] for code in read.history.stack.tolist()] == order


def test_the_oldest_form_is_a_list_of_segments() -> None:
    value = snapshot()["segments"]
    for segment in value:
        for each in segment["blocks"]:
            each["history"] = [{"addr": 1, "real_size": 4, "frames": each.pop("frames")}]
    content = pickle.dumps(value)
    assert describe_snapshot(native(content)) == describe_snapshot(python(content))


def test_a_truncated_file_gives_a_prefix() -> None:
    content = pickle.dumps(rich())
    whole, read = native(content), 0
    for cut in [*range(0, len(content), 4999), len(content) - 1]:
        try:
            part = native(content[:cut])
        except TraceError:
            continue
        count = len(part.history.action)
        assert part.facts.incomplete == f"the pickle is truncated at byte {part.facts.bytes}" and count >= read
        assert np.array_equal(part.history.address, whole.history.address[:count])
        assert [part.stack(code) for code in part.history.stack] == [
            whole.stack(code) for code in whole.history.stack[:count]
        ]
        read = count
    assert read == 2510


def test_other_writers_and_gzip_are_read_through_the_public_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    content = pickle.dumps(snapshot())
    assert describe_snapshot(python(gzip.compress(content))) == describe_snapshot(native(content))
    with pytest.raises(UnusualPickleError):
        native(pickle.dumps(snapshot(), 0))
    assert describe_snapshot(python(pickle.dumps(snapshot(), 0))) == describe_snapshot(native(content)) | {
        "facts": python(pickle.dumps(snapshot(), 0)).facts
    }


def test_texts_of_users_are_kept_up_to_a_limit() -> None:
    value = snapshot()
    value["device_traces"][0] = [
        entry("alloc", 1, 1, LINEAR, user_metadata=f"m{i}") for i in range(MAX_METADATA_TEXTS + 10)
    ]
    read = native(pickle.dumps(value))
    texts = [read.texts[int(read.labels.metadata[code])] for code in read.history.label[[0, -1]]]
    assert texts == ["m0", NOT_KEPT]


FRAME = b"}\x94(\x8c\x08filename\x8c\x01fu"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"cos\nsystem\n(S'x'\ntR.", "refused"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "refused"),
        (pickle.dumps(snapshot(), 2)[:-1] + b"cos\nsystem\n.", "refused"),
        (b"\x80\x04" + b"]" * 2_000_000 + b"a" * 2_000_000 + b".", "no memory snapshot"),
        (b"\x80\x04" + b"(" * 2_000_000, "malformed"),
        (b"\x80\x04}" + b")" + b"\x85" * 2_000_000 + b"Ns.", "malformed"),
        (b"\x80\x04N" + b"\x94" * 30_000_000 + b".", "more memory"),
        (b"\x80\x04" + b"N" * 30_000_000, "more memory"),
        (b"\x80\x04X" + U4(2**32 - 1) + b"x", "truncated"),
        (b"\x80\x04\x8d" + U8(2**64 - 1) + b"x" * 100, "truncated"),
        (b"\x80\x04\x8a\xff" + b"x" * 255 + b".", "malformed"),
        (b"\x80\x04(K\x01e.", "malformed"),
        (b"\x80\x04](00e.", "malformed"),
        (b"\x80\x04]](\x86e.", "malformed"),
        (b"\x80\x04](.", "malformed"),
        (b"\x80\x04NN.", "malformed"),
        (b"", "empty"),
        (pickle.dumps({"a": 1}), "not a memory snapshot"),
    ],
)
def test_hostile_files_are_refused_at_little_cost(
    content: bytes, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    with pytest.raises(TraceError, match=error):
        python(content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04N" + b"r" + U4(2**31 - 1) + b".",
        b"\x80\x04}\x940h\x00(\x8c\x06action\x8c\x05alloc\x8c\x04sizeK\x01u.",
        b"\x80\x04" + FRAME + b"0" + b"]" + b"h\x00a" * 600 + b".",
    ],
)
def test_what_no_writer_writes_is_left_to_the_other_reader(content: bytes) -> None:
    with pytest.raises(UnusualPickleError):
        native(content)


def test_one_entry_many_times_counts_once() -> None:
    many = b"\x80\x04}(\x8c\x0ddevice_traces]](}\x94(\x8c\x06action\x8c\x05alloc\x8c\x04sizeK\x01u"
    read = native(many + b"h\x00" * 1_000_000 + b"eau.")
    assert (len(read.history.action), read.facts.skipped) == (1, 1_000_000)


def test_damaged_files_never_point_outside() -> None:
    content, draw = pickle.dumps(rich())[:40_000], random.Random(1)
    for _ in range(120):
        data = bytearray(content)
        for _ in range(draw.choice((1, 4, 16))):
            at = draw.randrange(len(data))
            data[at] = draw.choice(b"(.ueasth0jqr}])\x85\x86\x8a\x8c\x94\x95NKMJ\x00\xff")
        try:
            read = native(bytes(data))
        except (TraceError, UnusualPickleError):
            continue
        assert all(end <= len(read.history.action) for end in read.devices.end)
        describe_snapshot(read)


def test_segments_are_handed_over_before_the_history_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PIECE_BYTES", 1 << 14)
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    content, previews, read = pickle.dumps(rich()), [], []
    stream = io.BytesIO(content)

    def take(part: RecordedSnapshot) -> None:
        previews.append(part)
        read.append(stream.tell())

    whole = read_snapshot(cast(BinaryIO, stream), preview=take)
    (part,) = previews
    assert read[0] < len(content) // 2 and part.facts.preview and not whole.facts.preview
    assert len(part.history.action) == 0 and len(whole.history.action) > 2000
    for name in ("blocks.size", "blocks.state", "segments.size", "segments.address"):
        assert np.array_equal(part.columns()[name], whole.columns()[name])
    assert [part.stack(code) for code in part.blocks.stack] == [whole.stack(code) for code in whole.blocks.stack]


def test_the_first_free_of_an_address_ends_its_allocation() -> None:
    value = snapshot()
    value["device_traces"] = [
        [entry(action, 8, time, [], addr=address) for time, (action, address) in enumerate(entries)]
        for entries in (
            [("alloc", 1), ("free_requested", 1), ("free_completed", 1), ("free_completed", 2), ("alloc", 1)],
            [("free_completed", 1), ("alloc", 2), ("alloc", 2), ("free_completed", 2), ("free_requested", 2)],
        )
    ]
    for read in (native, python):
        assert read(pickle.dumps(value)).history.freed.tolist() == [-1, 0, -1, -2, -1, -2, -1, -1, 7, -1]


def test_a_file_too_large_for_python_says_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_BYTES", 1 << 10)
    for switch, remedy in (("0", "unset TORCH_PROFILER_NATIVE"), ("", "install a wheel")):
        monkeypatch.setenv("TORCH_PROFILER_NATIVE", switch)
        state = "turned off by TORCH_PROFILER_NATIVE=0" if switch else "not part of this installation"
        monkeypatch.setattr(ingest_snapshot, "describe_state", lambda state=state: state)
        monkeypatch.setattr(ingest_snapshot, "load_library", lambda: None)
        with pytest.raises(TraceError, match=state) as caught:
            python(pickle.dumps(snapshot()))
        hint = caught.value.hint or ""
        assert remedy in hint and "max_entries" in hint
