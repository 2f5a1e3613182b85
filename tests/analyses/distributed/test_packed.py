"""The operations of ranks in 52 bytes each, without loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import Job, ddp
from torch_tb_profiler.analyses.distributed.operations import (
    OPERATION,
    OPERATION_KIND,
    PACKED_ROW,
    WIDE_PACKED_ROW,
    Operations,
    concatenate_operations,
    pack_operations,
    unpack_operations,
)
from torch_tb_profiler.model.trace import ABSENT

_LENGTHS = ("latency", "exposed", "stall", "window")
_TIMES = st.integers(-(2**40), 2**62)


@st.composite
def tables(draw: st.DrawFn, longest: int = 2**33) -> Operations:
    """Some operations, with and without a time, of few kinds."""
    table = np.zeros(draw(st.integers(0, 6)), OPERATION)
    small = st.integers(-1, 2)
    for row in table:
        for name in ("group", "step", "collective", "backend", "dtype", "timing"):
            row[name] = draw(small)
        for name in ("source", "target", "bytes_in", "bytes_out", "message"):
            row[name] = draw(st.sampled_from([ABSENT, 0, 2**40]))
        row["bus"] = draw(st.sampled_from([float("nan"), 0.0, 1e12]))
        row["sequence"], row["issue"] = draw(st.sampled_from([ABSENT, 7])), draw(_TIMES)
        row["start"] = row["end"] = ABSENT
        row["latency"] = row["exposed"] = row["window"] = ABSENT
        if draw(st.booleans()):
            row["start"] = draw(_TIMES)
            row["end"] = row["start"] + draw(st.integers(0, longest))
            for name in _LENGTHS:
                row[name] = draw(st.integers(0, longest))
    return table


@given(st.lists(tables(), max_size=4))
def test_what_is_packed_is_unpacked_to_the_bit(drawn: list[Operations]) -> None:
    packed = [pack_operations(table) for table in drawn]
    for table, own in zip(drawn, packed, strict=True):
        assert unpack_operations(own).tobytes() == table.tobytes()
        assert len(own) == len(table)
    joined = concatenate_operations(packed)
    whole = np.concatenate([np.zeros(0, OPERATION), *drawn])
    for name, column in {
        **joined.columns,
        **{name: each[joined.kind] for name, each in joined.kinds.items()},
    }.items():
        assert column.tobytes() == whole[name].tobytes(), name


@pytest.mark.parametrize(("longest", "width"), [(2**32 - 1, 52), (2**32, 72)])
@pytest.mark.parametrize("name", ["end", *_LENGTHS])
def test_an_operation_takes_52_bytes_unless_a_time_needs_more(name: str, longest: int, width: int) -> None:
    table: Operations = np.zeros(3, OPERATION)
    table[name][1] = longest
    packed = pack_operations(table)
    assert len(packed.rows) == 3 * width and PACKED_ROW.itemsize == 52 and WIDE_PACKED_ROW.itemsize == 72
    assert unpack_operations(packed).tobytes() == table.tobytes()


def test_what_operations_have_in_common_is_kept_once() -> None:
    """Three buckets over ten steps: three sizes."""
    (member,) = Job(2, ddp(2), steps=10).members(only=[0])
    assert member.result is not None
    assert len(member.result.operations) == 30
    assert len(member.result.operations.kinds) == 3 * OPERATION_KIND.itemsize
