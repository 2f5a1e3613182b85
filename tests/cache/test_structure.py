"""The name of a cache entry changes with what the entry holds, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from enum import Enum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.cache import cache_key
from torch_tb_profiler.cache.structure import structure_of
from torch_tb_profiler.storage import FileId

T = TypeVar("T")


class Color(Enum):
    RED = 1


class Point(msgspec.Struct):
    """A place; this text is no structure."""

    x: Annotated[int, msgspec.Meta(ge=0)]
    label: str | None = None


PAIR = np.dtype([("start", np.int64), ("code", np.int16)])


class Page(msgspec.Struct, Generic[T]):
    rows: list[T]


@dataclass(frozen=True)
class Everything:
    column: npt.NDArray[np.int32]
    points: Mapping[str, Point]
    page: Page[float]
    kind: Literal["b", "a"]
    color: Color
    again: tuple[Point, ...]
    other: Any
    inner: Sequence[Everything]
    _memo: int = 0


def test_the_text_is_the_same_in_every_python() -> None:
    assert structure_of(Everything, Point) == (
        "Everything(column: array[int32], points: Mapping[str, Point(x: int, label: None | str)], "
        "page: Page(rows: list[~T])[float], kind: Literal['a', 'b'], color: Color(RED=1), "
        "again: tuple[Point, ...], other: Any, inner: Sequence[Everything]); Point"
    )
    assert structure_of(Optional[int]) == structure_of(Union[None, int]) == structure_of(int | None)  # noqa: UP007, UP045


@pytest.mark.parametrize(
    "fields",
    [
        [("start", int)],
        [("start", int), ("name", bytes)],
        [("start", float), ("name", str)],
        [("start", int), ("text", str)],
        [("start", int), ("name", str | None)],
        [("start", int), ("name", list[str])],
        [("start", int), ("name", str), ("end", int)],
    ],
)
def test_a_changed_field_changes_the_name_of_an_entry(fields: list[tuple[str, Any]]) -> None:
    file = FileId("/log/w.json", "1-2")
    kept, same = (structure_of(make_dataclass("Row", [("start", int), ("name", str)])) for _ in range(2))
    changed = structure_of(make_dataclass("Row", fields))
    assert cache_key(file, kept) != cache_key(file, changed)
    assert cache_key(file, kept) == cache_key(
        file, structure_of(make_dataclass("Row", [("start", int), ("name", str)]))
    )


def test_a_field_deep_inside_counts() -> None:
    def nested(hint: Any) -> str:
        inner = msgspec.defstruct("Inner", [("x", hint)])
        return structure_of(make_dataclass("Outer", [("rows", dict[str, list[inner]])]))  # type: ignore[valid-type]

    assert nested(int) == nested(int) != nested(str)


def test_the_name_of_an_entry_is_the_same_in_every_process() -> None:
    code = (
        "from torch_tb_profiler.cache import Cache; "
        "from torch_tb_profiler.session.kept.structure import entry_key; "
        "from torch_tb_profiler.storage import FileId; "
        "print(entry_key(Cache('', 0), FileId('/log/w.json', '1-2')))"
    )
    names = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        names.add(
            subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, timeout=PATIENCE)
        )
    assert len(names) == 1


def test_bytes_that_hold_an_array_say_its_layout() -> None:
    assert structure_of(Annotated[bytes, PAIR]) == "bytes[('start', '<i8'), ('code', '<i2')]"
    wider = np.dtype([("start", np.int64), ("code", np.int32)])
    assert structure_of(Annotated[bytes, PAIR]) != structure_of(Annotated[bytes, wider])
