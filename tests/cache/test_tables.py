"""Tables of arrays and plain values are read as they were written, as views of the file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.cache.tables import read_table, write_table

Int64 = npt.NDArray[np.int64]


class Range(NamedTuple):
    begin: Int64
    end: Int64


class SampleTable(msgspec.Struct, frozen=True):
    row: npt.NDArray[np.int32]
    chosen: npt.NDArray[np.bool_]
    times: Int64
    ranges: dict[int, Range]
    names: tuple[str, ...]
    share: float
    nothing: Int64 | None = None


def table() -> SampleTable:
    times = np.arange(6).reshape(2, 3).T  # not contiguous
    ranges = {3: Range(np.array([1]), np.empty(0, np.int64))}
    return SampleTable(
        np.array([4, -1], np.int32), np.array([True, False, True]), times, ranges, ("a", "é"), np.nan
    )


def written(value: object) -> bytes:
    content = io.BytesIO()
    write_table(value, content)
    return content.getvalue()


def plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=lambda each: (str(each.dtype), each.tolist()))


def test_a_table_is_read_as_it_was_written() -> None:
    found = read_table(written(table()), SampleTable)
    assert isinstance(found, SampleTable)
    assert isinstance(found.ranges[3], Range)
    assert np.isnan(found.share)
    assert plain(msgspec.structs.replace(found, share=0.0)) == plain(msgspec.structs.replace(table(), share=0.0))
    with pytest.raises(ValueError):
        found.times[0] = 1  # of the file


def test_plain_values_and_tuples_of_arrays() -> None:
    assert read_table(written(-(2**63)), int) == -(2**63)
    first, second = read_table(written((np.arange(3), np.empty((0, 4)))), tuple[Int64, Any])
    assert first.tolist() == [0, 1, 2]
    assert isinstance(second, int) or second.shape == (0, 4)


@pytest.mark.parametrize("type_", [Range, int, tuple[int, int]])
def test_content_of_another_type_is_an_error(type_: Any) -> None:
    with pytest.raises(ValueError):
        read_table(written(table()), type_)


def test_any_cut_or_changed_byte_is_an_error(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 1 << 20)
    assert cache.save_table("key", "t", table())
    (path,) = tmp_path.glob("*.table")
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        assert cache.load_table("key", "t", lambda: SampleTable) is None
        assert not path.exists()
        path.write_bytes(content[:at])
        assert cache.load_table("key", "t", lambda: SampleTable) is None
    path.write_bytes(content)
    loaded = cache.load_table("key", "t", lambda: SampleTable)
    assert loaded is not None and loaded[0].names == ("a", "é")


def test_tables_in_one_file_are_read_one_by_one(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 1 << 20)
    assert cache.save_tables("key", {"a": table(), "n": 7, "times": np.arange(5), "nothing": None})
    assert cache.save_table("key", "later", 8) and cache.save_table("key", "nothing later", None)
    loaded = cache.load_table("key", "a", lambda: SampleTable)
    assert loaded is not None and loaded[0].names == ("a", "é")
    names = ("n", "later", "nothing", "nothing later", "absent")
    found = [cache.load_table("key", name, lambda: int | None) for name in names]
    assert found == [(7,), (8,), (None,), (None,), None]
    times = cache.load_table("key", "times", lambda: Int64)
    assert times is not None and times[0].tolist() == [0, 1, 2, 3, 4]
    assert times[0].ctypes.data % 64 == 0


def test_any_cut_or_changed_byte_of_tables_in_one_file_is_an_error(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 1 << 20)
    assert cache.save_tables("key", {"a": 5, "b": (1, 2)})
    (path,) = tmp_path.glob("*.tables")
    content = path.read_bytes()

    def read() -> list[object]:
        return [cache.load_table("key", "a", lambda: int), cache.load_table("key", "b", lambda: tuple[int, int])]

    assert read() == [(5,), ((1, 2),)]
    unnoticed = 0
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        found = read()
        if found == [(5,), ((1, 2),)]:
            assert content[at] == 0  # between tables
            unnoticed += 1
        else:
            assert not path.exists() and None in found and {*found} <= {None, (5,), ((1, 2),)}
        path.write_bytes(content[:at])
        assert read() == [None, None]
    assert 0 < unnoticed < 2 * 64
    (tmp_path / "other.tables").write_bytes(content)
    assert cache.load_table("other", "a", lambda: int) is None
    assert not (tmp_path / "other.tables").exists()


def test_an_entry_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    """Two tables of a trace have the same type, and two traces the same tables: only the name tells them apart."""
    cache = Cache(str(tmp_path), 1 << 20)
    columns = {"row": np.arange(3)}
    for key, name in (("one", "a"), ("one", "b"), ("two", "a")):
        assert cache.save_table(key, name, table())
        assert cache.save_columns(key, name, columns)
        assert cache.save_json(key, name, b"[1]")
        assert cache.save_reduced(key, name, b"\1\2")

    def read(key: str, name: str) -> list[bool]:
        results = (
            cache.load_table(key, name, lambda: SampleTable),
            cache.load_columns(key, name),
            cache.load_json(key, name),
            cache.load_reduced(key, name, mapped=True),
        )
        return [result is not None for result in results]

    for other in ("one.b", "two.a"):
        assert read("one", "a") == [True] * 4
        contents = {path: path.read_bytes() for path in tmp_path.glob("one.a.*")}
        for path in contents:
            (tmp_path / path.name.replace("one.a", other)).replace(path)
        assert read("one", "a") == [False] * 4
        assert not list(tmp_path.glob("one.a.*"))
        for path, content in contents.items():
            path.write_bytes(content)
